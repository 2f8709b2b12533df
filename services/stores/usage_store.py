"""The ledger of what models were asked for: one row for each reply, written in the transaction that keeps the reply."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Text, bindparam, cast, func, literal, select, text
from sqlalchemy.types import DateTime

from schemas.usage import UsageGroup
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.tables.agents import usage

DAY = timedelta(days=1)
_ADD = Prepared(
    text(
        """
        INSERT INTO usage (run_id, step, user_id, kind, model, input_tokens, output_tokens, cost, at)
        VALUES (:run_id, :step, :user_id, :kind, :model, :input_tokens, :output_tokens, :cost, :at)
        ON CONFLICT DO NOTHING
        """
    )
)
_TOKENS = usage.c.input_tokens + usage.c.output_tokens
_OF_USER = usage.c.user_id == bindparam("user_id")
_SINCE = Prepared(
    select(
        func.coalesce(func.sum(_TOKENS).filter(_OF_USER), 0).label("user_tokens"),
        func.coalesce(func.sum(usage.c.cost).filter(_OF_USER), 0).label("user_cost"),
        func.coalesce(func.sum(_TOKENS), 0).label("tenant_tokens"),
        func.coalesce(func.sum(usage.c.cost), 0).label("tenant_cost"),
    ).where(usage.c.at > bindparam("since", type_=DateTime(timezone=True)))
)
_GROUPS = {
    "user": usage.c.user_id,
    "model": usage.c.model,
    "kind": usage.c.kind,
    "run": usage.c.run_id,
    "day": cast(func.date_trunc("day", usage.c.at, literal("UTC")), Text),
}


async def add(
    transaction: Transaction,
    *,
    run_id: str,
    step: str,
    user: str,
    kind: str,
    model: str,
    input_tokens: int,
    output_tokens: int,
    cost: float | None,
) -> None:
    """`cost` in US dollars, null where the model's price is not known."""
    row = {"run_id": run_id, "step": step, "user_id": user, "kind": kind, "model": model, "cost": cost}
    tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    await transaction.run(_ADD, {**row, **tokens, "at": transaction.now})


async def last_day(transaction: Transaction, user: str) -> Row:
    """`user_tokens`, `user_cost`, `tenant_tokens`, `tenant_cost` of the last 24 hours."""
    return (await transaction.all(_SINCE, {"user_id": user, "since": transaction.now - DAY}))[0]


async def grouped(
    transaction: Transaction, by: UsageGroup, *, user: str | None, since: datetime, until: datetime
) -> Sequence[Row]:
    """By falling cost and tokens; of one user, or of the whole tenant."""
    group = _GROUPS[by]
    sums = (
        func.sum(usage.c.input_tokens).label("input_tokens"),
        func.sum(usage.c.output_tokens).label("output_tokens"),
        func.sum(usage.c.cost).label("cost"),
        func.count().label("replies"),
    )
    statement = select(group.label("name"), *sums).where(usage.c.at >= since, usage.c.at < until).group_by(group)
    if user is not None:
        statement = statement.where(usage.c.user_id == user)
    order = (func.sum(usage.c.cost).desc().nulls_last(), func.sum(_TOKENS).desc(), group)
    return await transaction.all(statement.order_by(*order).limit(1_000))
