"""What is to become of the calls of one reply: answered at once, run, or asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.agents import AgentConfig
from schemas.identifiers import new_id
from schemas.settings import AgentSettings
from schemas.tools import ToolOutcome, ToolSpec
from services.agents import arguments, policy
from services.agents.registry import ToolRegistry
from services.agents.tool import About, CallContext, Delegating, Delegation, Tool, ToolFailed, refusals
from services.agents.transcript import KeptCall, Transcript
from services.gateways.chat_model import ModelCall

SAME_CALL_TOLD = 3
"""The third equal call is answered with a reminder; one more and the turn has to conclude."""


@dataclass(frozen=True)
class PlannedCall:
    """One call. `outcome` answers it at once; `approval_id` says that somebody is asked before it runs."""

    step: str
    kept: KeptCall
    spec: ToolSpec | None
    outcome: ToolOutcome | None = None
    approval_id: str | None = None
    about: About = field(default_factory=About)
    args_hash: str = ""
    delegation: Delegation | None = None

    @property
    def risk(self) -> str:
        return self.spec.risk if self.spec is not None else "write"


@dataclass(frozen=True)
class Plan:
    """Of one reply. `stop_tools`: the model keeps repeating itself and must conclude."""

    calls: list[PlannedCall]
    stop_tools: bool = False


class Planning:
    """Decides by schema, limits and mode. Rights are looked at when a call runs."""

    def __init__(self, registry: ToolRegistry, settings: AgentSettings) -> None:
        self._registry = registry
        self._settings = settings

    async def plan(
        self,
        requested: Sequence[tuple[str, ModelCall]],
        config: AgentConfig,
        earlier: Transcript,
        granted: set[tuple[str, str]],
        context: CallContext,
    ) -> Plan:
        """`requested` are the calls with the steps under which their outcomes will stand."""
        made = Counter(_same(call) for call in earlier.calls_before(earlier.iteration + 1))
        per_tool = Counter(call.tool for call in earlier.calls_before(earlier.iteration + 1))
        planned: list[PlannedCall] = []
        stop = False
        for place, (step, call) in enumerate(requested):
            if place >= self._settings.calls_per_reply:
                bound = f"PERDURE_AGENTS__CALLS_PER_REPLY={self._settings.calls_per_reply}"
                planned.append(_answered(step, _unread(call), None, f"Too many calls in one reply ({bound})."))
                continue
            delegations = context.delegations + sum(each.delegation is not None for each in planned)
            own = replace(context, step=step, delegations=delegations)
            each = await self._one(step, call, config, granted, own)
            count = made[_same(each.kept)]
            made[_same(each.kept)] += 1
            per_tool[each.kept.tool] += 1
            stop = stop or count >= SAME_CALL_TOLD
            planned.append(self._bounded(each, count, per_tool[each.kept.tool]))
        return Plan(planned, stop)

    def _bounded(self, planned: PlannedCall, earlier_equal: int, of_tool: int) -> PlannedCall:
        if planned.outcome is not None:
            return planned
        if earlier_equal >= SAME_CALL_TOLD - 1:
            said = "You made this very call twice already; its result stands above. Do something else, or conclude."
            return _answered(planned.step, planned.kept, planned.spec, said)
        if of_tool > self._settings.calls_per_tool:
            bound = f"PERDURE_AGENTS__CALLS_PER_TOOL={self._settings.calls_per_tool}"
            return _answered(
                planned.step, planned.kept, planned.spec, f"This tool was called too often in this turn ({bound})."
            )
        return planned

    async def _one(
        self, step: str, call: ModelCall, config: AgentConfig, granted: set[tuple[str, str]], context: CallContext
    ) -> PlannedCall:
        tool = self._registry.get(call.tool) if call.tool in config.tools else None
        if tool is None:
            offered = ", ".join(config.tools) or "none"
            return _answered(step, _unread(call), None, f"There is no tool '{call.tool}'. The tools are: {offered}.")
        spec = tool.spec
        try:
            read = arguments.read(call.arguments, spec)
        except arguments.BadArguments as error:
            return _answered(step, _unread(call), spec, str(error))
        kept = KeptCall(call_id=call.call_id, tool=call.tool, raw=call.arguments, arguments=read)
        wanted = policy.verdict(spec, config.mode, config.always_ask, granted)
        if wanted == "deny":
            return _answered(step, kept, spec, f"Denied: in mode '{config.mode}' the tool '{spec.name}' is not run.")
        if wanted == "run":
            return self._run(step, kept, tool, read, context)
        return await self._asked(step, kept, tool, read, context)

    @staticmethod
    def _run(step: str, kept: KeptCall, tool: Tool, read: dict[str, Any], context: CallContext) -> PlannedCall:
        if not isinstance(tool, Delegating):
            return PlannedCall(step, kept, tool.spec)
        try:
            with refusals():
                return PlannedCall(step, kept, tool.spec, delegation=tool.delegation(context, read))
        except ToolFailed as failed:
            return _answered(step, kept, tool.spec, str(failed))

    async def _asked(
        self, step: str, kept: KeptCall, tool: Tool, read: dict[str, Any], context: CallContext
    ) -> PlannedCall:
        """Nobody is asked about what could not run."""
        try:
            with refusals():
                about = await tool.about(context, read)
        except ToolFailed as failed:
            return _answered(step, kept, tool.spec, str(failed))
        digest = arguments.args_hash(tool.spec.name, read)
        return PlannedCall(step, kept, tool.spec, approval_id=new_id(), about=about, args_hash=digest)


def _answered(step: str, kept: KeptCall, spec: ToolSpec | None, said: str) -> PlannedCall:
    return PlannedCall(step, kept, spec, outcome=ToolOutcome(ok=False, text=said, summary=said))


def _unread(call: ModelCall) -> KeptCall:
    return KeptCall(call_id=call.call_id, tool=call.tool, raw=call.arguments)


def _same(call: KeptCall) -> str:
    return arguments.args_hash(call.tool, call.arguments if call.arguments is not None else {"raw": call.raw})
