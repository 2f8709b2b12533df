"""Agents as they are stored: the draft as it was sent, and how often it was changed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from schemas.agents import AgentDraft, AgentView
from schemas.errors import Conflict
from services.stores.database import Row, Transaction
from services.stores.tables.agents import agents


async def create(transaction: Transaction, agent_id: str, owner: str, draft: AgentDraft) -> AgentView:
    """Conflict("name_taken") when another agent of the tenant has the name."""
    row = {
        "id": agent_id,
        "name": draft.name,
        "version": 1,
        "owner": owner,
        "draft": draft.model_dump(mode="json"),
        "created_at": transaction.now,
        "updated_at": transaction.now,
    }
    await _named_once(transaction, insert(agents).values(**row), draft.name)
    return view(row)


async def change(transaction: Transaction, agent: Row, draft: AgentDraft) -> AgentView:
    values = {
        "name": draft.name,
        "version": agent["version"] + 1,
        "draft": draft.model_dump(mode="json"),
        "updated_at": transaction.now,
    }
    await _named_once(transaction, update(agents).where(agents.c.id == agent["id"]).values(**values), draft.name)
    return view({**agent, **values})


async def _named_once(transaction: Transaction, statement: Any, name: str) -> None:
    try:
        await transaction.execute(statement)
    except IntegrityError as error:
        raise Conflict(f"There is an agent called '{name}' already.", type="name_taken") from error


async def get(transaction: Transaction, agent_id: str, *, for_update: bool = False) -> Row | None:
    statement = select(agents).where(agents.c.id == agent_id, agents.c.removed_at.is_(None))
    return await transaction.one_or_none(statement.with_for_update() if for_update else statement)


async def by_name(transaction: Transaction, name: str) -> Row | None:
    return await transaction.one_or_none(select(agents).where(agents.c.name == name, agents.c.removed_at.is_(None)))


async def newest_first(transaction: Transaction, before: str | None, limit: int) -> list[AgentView]:
    statement = select(agents).where(agents.c.removed_at.is_(None)).order_by(agents.c.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(agents.c.id < before)
    return [view(row) for row in await transaction.all(statement)]


async def remove(transaction: Transaction, agent_id: str) -> None:
    """Its sessions stay readable; no turn begins with it any more."""
    await transaction.execute(update(agents).where(agents.c.id == agent_id).values(removed_at=transaction.now))


def view(row: Any) -> AgentView:
    own = {name: row[name] for name in ("id", "version", "created_at", "updated_at")}
    return AgentView.model_validate({**row["draft"], **own, "owner": f"user:{row['owner']}"})
