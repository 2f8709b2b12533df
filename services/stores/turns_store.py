"""Turns: what each works under, and the steps it has come to. A turn's transcript is its steps' stored results."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, bindparam, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.tables.agents import session_grants, sessions, turns
from services.stores.tables.runs import run_steps, runs

_GET = Prepared(
    select(
        turns,
        runs.c.actor_user,
        runs.c.actor_key,
        runs.c.started_at,
        runs.c.input_ref,
        runs.c.subject,
        runs.c.state,
        runs.c.ended_at,
        sessions.c.incognito,
    )
    .join(runs, runs.c.id == turns.c.run_id)
    .outerjoin(sessions, sessions.c.id == turns.c.session_id)
    .where(turns.c.run_id == bindparam("run_id"))
)
_STEPS = Prepared(
    select(run_steps.c.step, run_steps.c.result).where(
        run_steps.c.run_id == bindparam("run_id"), run_steps.c.result.is_not(None)
    )
)
_STORE_STEPS = Prepared(
    text(
        """
        INSERT INTO run_steps (run_id, step, result)
        SELECT :run_id, each.key, each.value FROM jsonb_each(:results) AS each
        ON CONFLICT (run_id, step) DO UPDATE SET result = excluded.result
        """
    ).bindparams(bindparam("results", type_=JSONB))
)


_STORE_OUTCOME = Prepared(
    text(
        """
        INSERT INTO run_steps (run_id, step, result) VALUES (:run_id, :step, :result)
        ON CONFLICT (run_id, step) DO UPDATE SET result = excluded.result
        WHERE run_steps.result IS NULL OR (run_steps.result->>'effect' = 'unknown' AND :known)
        RETURNING run_id
        """
    ).bindparams(bindparam("result", type_=JSONB), bindparam("known", type_=Boolean))
)


async def create(
    transaction: Transaction,
    run_id: str,
    *,
    agent_id: str,
    session_id: str | None = None,
    parent_run_id: str | None = None,
    depth: int = 0,
    brief: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
) -> None:
    row = {"run_id": run_id, "agent_id": agent_id, "session_id": session_id, "parent_run_id": parent_run_id}
    rest = {"depth": depth, "brief": brief, "config": config, "created_at": transaction.now}
    await transaction.execute(insert(turns).values(**row, **rest))


async def get(transaction: Transaction, run_id: str) -> Row | None:
    """The turn with its actor, its run's state, and whether its session is incognito."""
    return await transaction.one_or_none(_GET, {"run_id": run_id})


async def ancestors(transaction: Transaction, run_id: str) -> list[str]:
    """The turns that delegated to this one and have not ended, the nearest first."""
    statement = text(
        """
        WITH RECURSIVE line(run_id, place) AS (
            SELECT parent_run_id, 1 FROM turns WHERE run_id = :run_id
            UNION ALL SELECT turns.parent_run_id, line.place + 1 FROM line JOIN turns ON turns.run_id = line.run_id
        )
        SELECT runs.id FROM line JOIN runs ON runs.id = line.run_id WHERE runs.ended_at IS NULL ORDER BY place
        """
    )
    return [row["id"] for row in await transaction.all(statement, {"run_id": run_id})]


async def fix_config(transaction: Transaction, run_id: str, config: dict[str, Any]) -> None:
    """What the turn works under from here on, whatever becomes of its agent."""
    await transaction.execute(update(turns).where(turns.c.run_id == run_id).values(config=config))


async def steps(transaction: Transaction, run_id: str) -> dict[str, Any]:
    """Every stored result of the run, by step."""
    return {row["step"]: row["result"] for row in await transaction.all(_STEPS, {"run_id": run_id})}


async def store_steps(transaction: Transaction, run_id: str, results: dict[str, Any]) -> None:
    await transaction.run(_STORE_STEPS, {"run_id": run_id, "results": results})


async def store_outcome(transaction: Transaction, run_id: str, step: str, outcome: dict[str, Any]) -> bool:
    """The one outcome of a call; a known one replaces one that was unknown. False when another attempt's stands."""
    known = outcome["effect"] != "unknown"
    row = {"run_id": run_id, "step": step, "result": outcome, "known": known}
    return await transaction.scalar(_STORE_OUTCOME, row) is not None


async def grants(transaction: Transaction, session_id: str) -> set[tuple[str, str]]:
    """(tool, risk) that somebody approved for the rest of this session."""
    found = await transaction.all(select(session_grants).where(session_grants.c.session_id == session_id))
    return {(row["tool"], row["risk"]) for row in found}


async def grant(transaction: Transaction, session_id: str, tool: str, risk: str, by: str) -> None:
    row = {"session_id": session_id, "tool": tool, "risk": risk, "given_by": by, "created_at": transaction.now}
    await transaction.execute(insert(session_grants).values(**row).on_conflict_do_nothing())
