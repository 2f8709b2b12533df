"""Today's workflows replay every recorded history: an upgrade does not break an execution that is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay import histories
from tests.replay.changed_workflows import ReorderedIngest
from tests.workflows.scenario import Scenario


@pytest.mark.parametrize("path", histories.recorded(), ids=histories.name_of)
async def test_a_recorded_history_replays(path: Path) -> None:
    result = await histories.replayer().replay_workflow(histories.read(path), raise_on_replay_failure=False)
    assert result.replay_failure is None, f"{histories.name_of(path)}: {result.replay_failure}"


@pytest.mark.parametrize(
    "scenario", histories.SCENARIOS, ids=lambda scenario: f"{scenario.contract.name}/{scenario.case}"
)
def test_every_case_is_recorded(scenario: Scenario) -> None:
    assert histories.files_of(scenario), "record it: python -m tests.replay.record"


async def test_a_changed_order_of_activities_is_caught() -> None:
    history = histories.read(histories.FOLDER / "IngestDocument" / "complete.json")
    result = await histories.replayer([ReorderedIngest]).replay_workflow(history, raise_on_replay_failure=False)
    assert result.replay_failure is not None
    assert "chunk_document" in str(result.replay_failure)


async def test_an_open_execution_is_replayed_up_to_where_it_stands() -> None:
    """Cut after the first chunk stage, as an execution that is open during an upgrade would be."""
    whole = histories.read(histories.FOLDER / "IngestDocument" / "complete.json")
    scheduled = [
        index for index, event in enumerate(whole.events) if event.HasField("activity_task_scheduled_event_attributes")
    ]
    open_history = type(whole)(whole.workflow_id, whole.events[: scheduled[3] + 1])
    assert (await histories.replayer().replay_workflow(open_history)).replay_failure is None
    result = await histories.replayer([ReorderedIngest]).replay_workflow(open_history, raise_on_replay_failure=False)
    assert result.replay_failure is not None
