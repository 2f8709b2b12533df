"""What models were asked for, and what that cost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from schemas.usage import UsageGroup, UsageLine, UsageReport
from services.api.authentication import KeyedRoute, Reader
from services.api.state import DatabaseOf
from services.stores import usage_store

router = APIRouter(route_class=KeyedRoute, tags=["usage"])
LATELY = timedelta(days=30)


@router.get("/usage")
async def usage(
    caller: Reader,
    database: DatabaseOf,
    by: UsageGroup = "day",
    since: Annotated[AwareDatetime | None, Query(description="30 days ago without it")] = None,
    until: Annotated[AwareDatetime | None, Query(description="now without it")] = None,
) -> UsageReport:
    """Of this key's user; with an admin's key of the whole tenant."""
    end = until or datetime.now(UTC)
    begin = since or end - LATELY
    user = None if caller.is_admin else caller.actor.user
    async with database.begin(caller.actor.tenant) as transaction:
        rows = await usage_store.grouped(transaction, by, user=user, since=begin, until=end)
    return UsageReport(by=by, items=[UsageLine.model_validate(dict(row)) for row in rows])
