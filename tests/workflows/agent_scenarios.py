"""What can happen to Session, AgentTurn and AskApproval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from activities.failure_mapping import permanent
from schemas.tools import CallPlan
from schemas.workflow_contracts import (
    AGENT_TURN,
    ASK_APPROVAL,
    CANCEL_SIGNAL,
    SESSION,
    WAKE_SIGNAL,
    CancelRequest,
    NextTurn,
    StepResult,
    Thought,
)
from tests.workflows.ingest_scenarios import QDRANT_AWAY
from tests.workflows.scenario import Running, Scenario
from tests.workflows.scripted_activities import until_cancelled

TURN = {"session_id": "session-1"}
FINAL = Thought(final=True)
PENDING, OVER = StepResult(status="pending"), StepResult(status="over", detail="approved")
EXPIRED = StepResult(status="over", detail="expired")
WRITE = CallPlan(step="call:1.0", tool="write_note")
SECOND = CallPlan(step="call:1.1", tool="write_note")
READS = [CallPlan(step=f"call:1.{place}", tool="fetch", alone=False) for place in range(3)]
WRITE_BETWEEN = CallPlan(step="call:1.9", tool="write_note")
ASKED = CallPlan(
    step="call:1.0",
    tool="write_note",
    approval_id="approval-1",
    child_run_id="run-2",
    expires_at=(datetime.now(UTC) + timedelta(days=7)).isoformat(),
)

DELEGATED = CallPlan(step="call:1.0", tool="delegate", alone=False, child_run_id="run-3", delegated=True)


def approval_fields(days: float = 7) -> dict[str, str]:
    expires = datetime.now(UTC) + timedelta(days=days)
    return {"approval_id": "approval-1", "tool": "write_note", "expires_at": expires.isoformat()}


async def cancel_during_thinking(running: Running) -> None:
    await running.activities.called("think")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def cancel_during_call(running: Running) -> None:
    await running.activities.called("call_tool")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def cancel_while_asking(running: Running) -> None:
    await running.activities.called("look_at_approval")
    await running.shows("waiting")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def wake(running: Running) -> None:
    await running.shows("waiting")
    await running.handle.signal(WAKE_SIGNAL)


async def cancel_request(running: Running) -> None:
    await running.shows("waiting")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


SPOKEN = Scenario(AGENT_TURN, "spoken", TURN, {"think": [FINAL]})
CALLED = Scenario(AGENT_TURN, "called", TURN, {"think": [Thought(calls=[WRITE, SECOND]), FINAL]})
BESIDE = Scenario(AGENT_TURN, "beside", TURN, {"think": [Thought(calls=READS), FINAL]})
IN_ORDER = Scenario(
    AGENT_TURN, "in_order", TURN, {"think": [Thought(calls=[READS[0], WRITE_BETWEEN, READS[2], READS[1]]), FINAL]}
)
APPROVED = Scenario(
    AGENT_TURN,
    "approved",
    TURN,
    {"think": [Thought(calls=[ASKED]), FINAL], "look_at_approval": [OVER]},
)
HANDED_ON = Scenario(
    AGENT_TURN,
    "delegated",
    TURN,
    {"think": [Thought(calls=[DELEGATED]), FINAL, FINAL], "call_tool": [StepResult()]},
)
HANDED_ON_AND_LOST = Scenario(
    AGENT_TURN,
    "delegated_and_lost",
    TURN,
    {
        "think": [Thought(calls=[DELEGATED]), FINAL, FINAL],
        "finish_turn": [permanent("internal", "cannot be written"), StepResult()],
    },
)
UNDECIDED = Scenario(
    AGENT_TURN,
    "undecided",
    TURN,
    {
        "think": [Thought(calls=[ASKED]), FINAL],
        "look_at_approval": [OVER, OVER],
        "call_tool": [StepResult(status="undecided"), StepResult()],
    },
)
STEERED = Scenario(
    AGENT_TURN, "steered", TURN, {"think": [FINAL, FINAL], "finish_turn": [StepResult(status="steered"), StepResult()]}
)
STOPPED_THINKING = Scenario(AGENT_TURN, "stopped_thinking", TURN, {"think": [until_cancelled]}, cancel_during_thinking)
STOPPED_CALLING = Scenario(
    AGENT_TURN,
    "stopped_calling",
    TURN,
    {"think": [Thought(calls=[WRITE])], "call_tool": [until_cancelled]},
    cancel_during_call,
)
STOPPED_ASKING = Scenario(
    AGENT_TURN,
    "stopped_asking",
    TURN,
    {"think": [Thought(calls=[ASKED])], "look_at_approval": [PENDING, PENDING]},
    cancel_while_asking,
    skip_time=False,
)
OUT_OF_BUDGET = Scenario(
    AGENT_TURN, "out_of_budget", TURN, {"think": [permanent("budget_exceeded", "no more tokens", step="think:1")]}
)
TURN_NOT_OURS = Scenario(AGENT_TURN, "not_ours", TURN, {"think": [Thought(status="not_ours")]})
TURN_WAITS = Scenario(AGENT_TURN, "engine_returns", TURN, {"think": [Thought(**QDRANT_AWAY.model_dump()), FINAL]})

DECIDED = Scenario(
    ASK_APPROVAL, "decided", approval_fields(), {"look_at_approval": [PENDING, OVER]}, wake, skip_time=False
)
NOBODY = Scenario(ASK_APPROVAL, "nobody", approval_fields(), {"look_at_approval": [PENDING, EXPIRED]})
WITHDRAWN = Scenario(
    ASK_APPROVAL,
    "withdrawn",
    approval_fields(),
    {"look_at_approval": [PENDING, StepResult(status="over", detail="cancelled")]},
    cancel_request,
    skip_time=False,
)
REQUEST_NOT_OURS = Scenario(
    ASK_APPROVAL, "not_ours", approval_fields(), {"look_at_approval": [StepResult(status="not_ours")]}
)

ONE_MESSAGE = Scenario(
    SESSION, "one_message", TURN, {"next_turn": [NextTurn(run_id="run-7"), NextTurn()], "think": [FINAL]}
)
WOKEN = Scenario(
    SESSION,
    "woken",
    TURN,
    {"next_turn": [NextTurn(), NextTurn(run_id="run-7"), NextTurn()], "think": [FINAL]},
    wake,
    skip_time=True,
)
ADOPTED = Scenario(
    SESSION,
    "adopted",
    TURN,
    {
        "next_turn": [NextTurn(run_id="run-7", adopted=True), NextTurn(run_id="run-7", adopted=True), NextTurn()],
        "think": [Thought(status="not_ours"), FINAL],
    },
)
TURN_LOST = Scenario(
    SESSION,
    "turn_lost",
    TURN,
    {
        "next_turn": [NextTurn(run_id="run-7"), NextTurn()],
        "finish_turn": [permanent("internal", "cannot be written")],
        "think": [FINAL],
    },
)

RECORDED = (
    SPOKEN, CALLED, BESIDE, IN_ORDER, APPROVED, HANDED_ON, HANDED_ON_AND_LOST, UNDECIDED, STEERED, STOPPED_THINKING,
    STOPPED_CALLING, STOPPED_ASKING, OUT_OF_BUDGET, TURN_NOT_OURS, TURN_WAITS, DECIDED, NOBODY, WITHDRAWN,
    REQUEST_NOT_OURS, ONE_MESSAGE, WOKEN, ADOPTED, TURN_LOST,
)  # fmt: skip
