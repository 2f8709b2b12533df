"""What is too big for a history is refused at once and by name, wherever it comes from, and stalls nothing."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import INGEST_DOCUMENT, RemoveSpaceInput, StepResult
from services.gateways.temporal_payloads import MAX_PAYLOAD_BYTES, PAYLOAD_TOO_LARGE, perdure_data_converter
from tests.workflows.ingest_scenarios import FIELDS
from tests.workflows.scenario import Scenario, play

pytestmark = pytest.mark.asyncio(loop_scope="session")

converter = perdure_data_converter.payload_converter


async def test_a_payload_at_the_bound_goes_through_and_one_byte_more_does_not() -> None:
    around = len(converter.to_payload(StepResult(detail="")).data)
    fits = StepResult(detail="x" * (MAX_PAYLOAD_BYTES - around))
    assert converter.from_payload(converter.to_payload(fits), StepResult) == fits
    with pytest.raises(ApplicationError, match="64001 bytes") as refused:
        converter.to_payload(StepResult(detail=f"{fits.detail}x"))
    assert (refused.value.type, refused.value.non_retryable) == (PAYLOAD_TOO_LARGE, True)


async def test_old_json_without_newer_fields_still_decodes() -> None:
    payload = converter.to_payload({"tenant": "acme", "run_id": "run-1", "space_id": "space-1"})
    decoded = converter.from_payload(payload, RemoveSpaceInput)
    assert decoded == RemoveSpaceInput(tenant="acme", run_id="run-1", space_id="space-1", removed=0)


async def test_a_workflow_is_not_started_with_too_much(environment: WorkflowEnvironment) -> None:
    too_much = Scenario(INGEST_DOCUMENT, "too_much", {**FIELDS, "from_stage": "x" * 70_000})
    with pytest.raises(ApplicationError, match="pass a reference"):
        await play(environment, too_much)


async def test_a_step_that_would_be_given_too_much_fails_the_execution_instead_of_stalling_it(
    environment: WorkflowEnvironment,
) -> None:
    """The input fits; with the run's end beside it, what `finish` would be given does not."""
    tight = Scenario(
        INGEST_DOCUMENT,
        "tight",
        {**FIELDS, "from_stage": "x" * (MAX_PAYLOAD_BYTES - 170)},
    )
    finished = await play(environment, tight)
    assert isinstance(finished.failure, ApplicationError)
    assert "pass a reference" in finished.failure.message
