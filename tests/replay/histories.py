"""Recorded histories: `histories/<Workflow>/<case>.json`, one event a line, a case's later generations as `<case>.g2.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from infra.run_worker import WORKFLOWS
from infra.temporal_client import plugins
from infra.workflow_runner import sandbox
from tests.workflows import agent_scenarios, answer_scenarios, ingest_scenarios, removal_scenarios
from tests.workflows.scenario import Scenario
from tests.workflows.temporal_server import tracer_provider

FOLDER = Path(__file__).parent / "histories"
SCENARIOS: tuple[Scenario, ...] = (
    *ingest_scenarios.RECORDED,
    *removal_scenarios.RECORDED,
    *answer_scenarios.RECORDED,
    *agent_scenarios.RECORDED,
)
ALL_WORKFLOWS = [workflow for workflows in WORKFLOWS.values() for workflow in workflows]
_OF_ONE_MACHINE = {"stackTrace", "identity", "workerVersion", "binaryChecksum"}


def replayer(workflows: list[type] | None = None) -> Replayer:
    """Replays with the sandbox, converter and tracing that the product's workers have."""
    tracer_provider()
    return Replayer(
        workflows=workflows or ALL_WORKFLOWS,
        workflow_runner=sandbox(),
        plugins=plugins(),
    )


def recorded() -> list[Path]:
    return sorted(FOLDER.glob("*/*.json"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def files_of(scenario: Scenario) -> list[Path]:
    """All executions of all generations of one case."""
    folder = FOLDER / scenario.contract.name
    return [path for path in sorted(folder.glob("*.json")) if path.name.split(".")[0] == scenario.case]


def read(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(name_of(path), path.read_text(encoding="utf-8"))


def write(path: Path, history: WorkflowHistory) -> None:
    events = _without(json.loads(history.to_json())["events"], _OF_ONE_MACHINE)
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"events":[\n' + lines + "\n]}\n", encoding="utf-8")


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(inner, names) for name, inner in value.items() if name not in names}
    if isinstance(value, list):
        return [_without(inner, names) for inner in value]
    return value
