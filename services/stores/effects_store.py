"""Outside effects by their key, reserved before the call (invariant 7)."""

from __future__ import annotations

from sqlalchemy import bindparam, select, text, update

from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.facts import effect_keys

_RESERVE = Prepared(
    text(
        """
        INSERT INTO effect_keys (key, request_hash, state, created_at) VALUES (:key, :request_hash, 'begun', :now)
        ON CONFLICT DO NOTHING RETURNING key
        """
    )
)
_STATE = Prepared(select(effect_keys.c.state).where(effect_keys.c.key == bindparam("key")))


async def reserve(transaction: Transaction, key: str, request_hash: str) -> bool:
    """False when it was reserved before: the effect may have happened, so it is not tried again."""
    row = {"key": key, "request_hash": request_hash, "now": transaction.now}
    return await transaction.scalar(_RESERVE, row) is not None


async def state(transaction: Transaction, key: str) -> str | None:
    found = await transaction.scalar(_STATE, {"key": key})
    return None if found is None else str(found)


async def mark(transaction: Transaction, key: str, state: str) -> None:
    """`done`, `failed` (it is known not to have happened) or `unknown`."""
    await transaction.execute(update(effect_keys).where(effect_keys.c.key == key).values(state=state))
