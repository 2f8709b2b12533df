"""A turn that makes one call again because a person said so: it asks no model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.agents.planning import Plan, PlannedCall
from services.agents.registry import ToolRegistry
from services.agents.transcript import KeptCall, Reply, Transcript, call_step

REPEAT = "repeat"


def is_repeat(brief: Mapping[str, Any] | None) -> bool:
    return brief is not None and REPEAT in brief


def repeated(
    brief: Mapping[str, Any], transcript: Transcript, iteration: int, registry: ToolRegistry
) -> tuple[Reply, Plan]:
    """The call first, and then its outcome as the last word."""
    step = call_step(1, 0)
    if iteration > 1:
        outcome = transcript.outcomes.get(step)
        said = outcome.text if outcome is not None else "The call was not made."
        return Reply(text=said, final=True), Plan([])
    wanted = brief[REPEAT]
    kept = KeptCall(call_id="repeat", tool=wanted["tool"], raw="", arguments=wanted["arguments"])
    tool = registry.get(kept.tool)
    if tool is None:
        return Reply(text=f"The tool '{kept.tool}' is not there any more.", final=True), Plan([])
    return Reply(calls=[kept]), Plan([PlannedCall(step, kept, tool.spec)])
