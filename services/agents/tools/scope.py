"""Which spaces a call reaches: those that were asked for, within those the agent is kept to."""

from __future__ import annotations

from collections.abc import Sequence

from services.agents.tool import CallContext, ToolFailed
from services.stores import spaces_store
from services.stores.database import Database


async def reached(database: Database, context: CallContext, asked: Sequence[str] | None) -> list[str] | None:
    """Ids; null for all that the caller can see. NotFound for a space that is unknown or hidden, ToolFailed for another's."""
    if not asked and context.spaces is None:
        return None
    async with database.begin(context.tenant) as transaction:
        allowed = None
        if context.spaces is not None:
            allowed = await spaces_store.resolve_all(transaction, context.actor, context.spaces)
        wanted = await spaces_store.resolve_all(transaction, context.actor, asked) if asked else allowed
    outside = [space for space in wanted or [] if allowed is not None and space not in allowed]
    if outside:
        raise ToolFailed("This agent does not work in that space.")
    return wanted
