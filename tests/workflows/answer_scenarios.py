"""What can happen to AnswerQuestion."""

from __future__ import annotations

from itertools import repeat

from activities.failure_mapping import permanent
from schemas.workflow_contracts import ANSWER_QUESTION, CANCEL_SIGNAL, CancelRequest, StepResult
from tests.workflows.ingest_scenarios import QDRANT_AWAY
from tests.workflows.scenario import Running, Scenario
from tests.workflows.scripted_activities import until_cancelled

FIELDS = {"answer_id": "answer-1"}


async def cancel_during_generation(running: Running) -> None:
    await running.activities.called("generate_answer")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def cancel_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def operator_cancels_generation(running: Running) -> None:
    await running.activities.called("generate_answer")
    await running.handle.cancel(reason="the operator stops it")


ANSWERED = Scenario(ANSWER_QUESTION, "complete", FIELDS, {"retrieve_passages": [StepResult(counts={"passages": 8})]})
ENGINE_RETURNS = Scenario(ANSWER_QUESTION, "engine_returns", FIELDS, {"retrieve_passages": [QDRANT_AWAY] * 2})
CANCELLED = Scenario(
    ANSWER_QUESTION, "cancelled", FIELDS, {"generate_answer": [until_cancelled]}, cancel_during_generation
)
CANCELLED_BEFORE_GENERATION = Scenario(
    ANSWER_QUESTION, "cancelled_before_generation", FIELDS, {"retrieve_passages": [StepResult(status="cancelled")]}
)
CANCELLED_WHILE_WAITING = Scenario(
    ANSWER_QUESTION,
    "cancelled_while_waiting",
    FIELDS,
    {"retrieve_passages": repeat(QDRANT_AWAY)},
    cancel_while_waiting,
    skip_time=False,
)
OPERATOR_CANCELS = Scenario(
    ANSWER_QUESTION, "operator_cancels", FIELDS, {"generate_answer": [until_cancelled]}, operator_cancels_generation
)
FAILED = Scenario(
    ANSWER_QUESTION, "failed", FIELDS, {"generate_answer": [permanent("model_unavailable", "no answer from the model")]}
)
NOT_OURS = Scenario(ANSWER_QUESTION, "not_ours", FIELDS, {"retrieve_passages": [StepResult(status="not_ours")]})

RECORDED = (
    ANSWERED, ENGINE_RETURNS, CANCELLED, CANCELLED_BEFORE_GENERATION, CANCELLED_WHILE_WAITING, OPERATOR_CANCELS, FAILED,
    NOT_OURS,
)  # fmt: skip
