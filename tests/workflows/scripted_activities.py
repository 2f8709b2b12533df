"""Activities with the real names and types that do what a test says: here the activities are the edge."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, get_type_hints

from temporalio import activity

from activities.agent_activities import AgentActivities
from activities.answer_activities import AnswerActivities
from activities.ingest_activities import IngestActivities
from activities.removal_activities import RemovalActivities
from activities.run_activities import RunActivities
from schemas.workflow_contracts import StepResult

ACTIVITY_CLASSES = (RunActivities, IngestActivities, RemovalActivities, AnswerActivities, AgentActivities)

Outcome = StepResult | Exception | Callable[[], Awaitable[StepResult]]
Script = Mapping[str, Iterable[Outcome]]
"""By activity name, what its calls in turn give; calls after the last one are done."""


def defined_activities(owner: type) -> dict[str, Callable[..., Any]]:
    """The activity methods of a class, by the name that Temporal knows them under."""
    found = {}
    for method in vars(owner).values():
        definition = getattr(method, "__temporal_activity_definition", None)
        if definition is not None:
            found[definition.name] = method
    return found


REAL_ACTIVITIES = {name: method for owner in ACTIVITY_CLASSES for name, method in defined_activities(owner).items()}


class ScriptedActivities:
    def __init__(self, script: Script) -> None:
        unknown = set(script) - set(REAL_ACTIVITIES)
        assert not unknown, f"no such activities: {unknown}"
        self._outcomes: dict[str, Iterator[Outcome]] = {name: iter(outcomes) for name, outcomes in script.items()}
        self._called: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.calls: list[tuple[str, Any]] = []

    def all(self) -> list[Callable[..., Any]]:
        return [self._play(name, method) for name, method in REAL_ACTIVITIES.items()]

    def names_called(self) -> list[str]:
        return [name for name, _ in self.calls]

    def argument_of(self, name: str) -> Any:
        """What the last call of this activity was given."""
        return [argument for called, argument in self.calls if called == name][-1]

    async def called(self, name: str) -> None:
        """Waits until this activity runs."""
        await self._called[name].wait()

    def _play(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def play(input: Any) -> StepResult:
            self.calls.append((name, input))
            self._called[name].set()
            outcome = next(self._outcomes.get(name, iter(())), StepResult())
            if isinstance(outcome, Exception):
                raise outcome
            return outcome if isinstance(outcome, StepResult) else await outcome()

        play.__annotations__ = {"input": get_type_hints(method)["input"], "return": StepResult}
        return activity.defn(name=name)(play)


async def until_cancelled() -> StepResult:
    """Works and beats until Temporal says stop."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.1)
