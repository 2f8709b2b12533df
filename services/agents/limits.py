"""The bounds of one turn: in code, never in a prompt."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.agents import AgentLimits
from schemas.errors import PermanentFailure
from schemas.settings import AgentSettings
from schemas.tools import Spent
from services.agents.transcript import Transcript

VERSION = 1
DAILY = [(whose, what) for whose in ("user", "tenant") for what in ("tokens", "cost")]
EMPTY_REPLIES = 3
"""So many empty replies in one turn end it."""


def last_iteration(limits: AgentLimits, settings: AgentSettings) -> int:
    """On this one tools are withheld, so that the model must conclude."""
    return min(limits.iterations, settings.iterations)


def require_room(transcript: Transcript, limits: AgentLimits, settings: AgentSettings) -> None:
    """PermanentFailure("budget_exceeded") that names the bound, before more is spent."""
    spent = transcript.spent()
    bounds = (
        (spent.tokens, limits.tokens, settings.tokens, "tokens", "PERDURE_AGENTS__TOKENS"),
        (spent.cost, limits.cost, settings.cost, "cost", "PERDURE_AGENTS__COST"),
        (spent.seconds, limits.wall_seconds, settings.wall_seconds, "wall_seconds", "PERDURE_AGENTS__WALL_SECONDS"),
    )
    for used, own, general, name, setting in bounds:
        bound = general if own is None else min(own, general)
        if used >= bound:
            named = f"limits.{name}" if own is not None and own <= general else setting
            raise PermanentFailure("budget_exceeded", f"The turn has used {_shown(used)} of {_shown(bound)} ({named})")
    if sum(not reply.text.strip() and not reply.calls for reply in transcript.replies.values()) >= EMPTY_REPLIES:
        raise PermanentFailure("empty_reply", f"The model gave {EMPTY_REPLIES} empty replies")


def has_daily_bound(settings: AgentSettings) -> bool:
    """Without one nobody needs the sums of the last day."""
    return any(getattr(settings, f"{whose}_{what}_per_day") is not None for whose, what in DAILY)


def require_day(day: Mapping[str, float], settings: AgentSettings) -> None:
    """PermanentFailure("budget_exceeded") when the user, or the whole tenant, has used up the last 24 hours' budget."""
    for whose, what in DAILY:
        bound = getattr(settings, f"{whose}_{what}_per_day")
        used = float(day[f"{whose}_{what}"])
        if bound is not None and used >= bound:
            setting = f"PERDURE_AGENTS__{whose.upper()}_{what.upper()}_PER_DAY"
            said = f"The {whose} has used {_shown(used)} of {_shown(bound)} {what} in 24 hours ({setting})"
            raise PermanentFailure("budget_exceeded", said)


def slice_of(spent: Spent, limits: AgentLimits, settings: AgentSettings, parts: int) -> AgentLimits:
    """What one of `parts` sub-agents may use of what is left; one token at least, so that it can say that it has none."""
    tokens = min(limits.tokens or settings.tokens, settings.tokens) - spent.tokens
    cost = min(limits.cost or settings.cost, settings.cost) - spent.cost
    seconds = min(limits.wall_seconds or settings.wall_seconds, settings.wall_seconds) - spent.seconds
    return AgentLimits(
        iterations=limits.iterations,
        tokens=max(1, tokens // parts),
        cost=max(1e-9, cost / parts),
        wall_seconds=max(1e-3, seconds),
    )


def must_conclude(transcript: Transcript, iteration: int, limits: AgentLimits, settings: AgentSettings) -> bool:
    if iteration >= last_iteration(limits, settings) or any(each.stop_tools for each in transcript.replies.values()):
        return True
    last = transcript.replies.get(iteration - 1)
    return last is not None and last.finish == "length" and not last.calls


def usage(spent: Spent) -> dict[str, float | int]:
    return {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens, "cost": round(spent.cost, 6)}


def _shown(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 or float(amount).is_integer() else f"{amount:.4g}"
