"""What can happen to AnswerQuestion."""

from __future__ import annotations

from itertools import repeat

from activities.failure_mapping import permanent
from schemas.workflow_contracts import ANSWER_QUESTION, CANCEL_SIGNAL, CancelRequest, StepResult
from tests.workflows.ingest_scenarios import QDRANT_AWAY
from tests.workflows.scenario import Running, Scenario
from tests.workflows.scripted_activities import until_cancelled

FIELDS = {"answer_id": "answer-1"}


async def cancel_during_answer(running: Running) -> None:
    await running.activities.called("answer_question")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def cancel_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def operator_cancels_answer(running: Running) -> None:
    await running.activities.called("answer_question")
    await running.handle.cancel(reason="the operator stops it")


ANSWERED = Scenario(ANSWER_QUESTION, "complete", FIELDS, {"answer_question": [StepResult(counts={"passages": 8})]})
ENGINE_RETURNS = Scenario(ANSWER_QUESTION, "engine_returns", FIELDS, {"answer_question": [QDRANT_AWAY] * 2})
CANCELLED = Scenario(ANSWER_QUESTION, "cancelled", FIELDS, {"answer_question": [until_cancelled]}, cancel_during_answer)
CANCEL_SEEN_BY_ACTIVITY = Scenario(
    ANSWER_QUESTION, "cancel_seen_by_activity", FIELDS, {"answer_question": [StepResult(status="cancelled")]}
)
CANCELLED_WHILE_WAITING = Scenario(
    ANSWER_QUESTION,
    "cancelled_while_waiting",
    FIELDS,
    {"answer_question": repeat(QDRANT_AWAY)},
    cancel_while_waiting,
    skip_time=False,
)
OPERATOR_CANCELS = Scenario(
    ANSWER_QUESTION, "operator_cancels", FIELDS, {"answer_question": [until_cancelled]}, operator_cancels_answer
)
FAILED = Scenario(
    ANSWER_QUESTION, "failed", FIELDS, {"answer_question": [permanent("model_unavailable", "no answer from the model")]}
)
NOT_OURS = Scenario(ANSWER_QUESTION, "not_ours", FIELDS, {"answer_question": [StepResult(status="not_ours")]})

RECORDED = (
    ANSWERED, ENGINE_RETURNS, CANCELLED, CANCEL_SEEN_BY_ACTIVITY, CANCELLED_WHILE_WAITING, OPERATOR_CANCELS, FAILED,
    NOT_OURS,
)  # fmt: skip
