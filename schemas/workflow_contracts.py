"""The typed contract of each workflow: what the API and the relay know of it without importing it.

`tests/architecture/test_workflow_contracts.py` proves that each contract equals its workflow's real signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel, Field

from schemas.runs import RunEnd
from schemas.tools import CallPlan

INGEST_QUEUE = "ingest"
INTERACTIVE_QUEUE = "interactive"

STATE_AT_START = "running"
"""The state in the search attributes of an execution that has just been started."""

RUN_MEMO = "perdure_run"
"""Under this name every execution carries the id of its run; the row carries the execution's."""
WORKFLOW_TASK_TIMEOUT = timedelta(seconds=2)
"""A killed worker's workflow task is given to another after this (invariant 6)."""

CANCEL_SIGNAL = "cancel"
WAKE_SIGNAL = "wake"


class WorkflowInput(BaseModel):
    """What every workflow gets: whose work it is and which run it serves. Never what the actor may do."""

    tenant: str
    run_id: str
    traceparent: str | None = None


class WorkflowEnd(BaseModel):
    """What every workflow returns: how its run ended."""

    state: str
    detail: str | None = None


class IngestInput(WorkflowInput):
    """One version of a document; `from_stage` is where a retry goes on."""

    document_id: str
    version: int
    from_stage: str | None = None


class RemoveDocumentInput(WorkflowInput):
    """A document that has its tombstone."""

    document_id: str


class RemoveSpaceInput(WorkflowInput):
    """A space that has its tombstone; `removed` counts the documents of earlier executions."""

    space_id: str
    removed: int = 0


class RefreshAccessInput(WorkflowInput):
    """Coalesces: whatever the readers are when it runs is what it writes."""

    document_id: str = ""
    space_id: str = ""


class AnswerInput(WorkflowInput):
    """The answer whose row holds the question."""

    answer_id: str


class BeginAnswerInput(AnswerInput):
    """For the first activity, which claims the run for this execution."""

    execution_id: str


class BeginIngestInput(IngestInput):
    """For the first activity, which claims the run for this execution."""

    execution_id: str


class DiscardInput(BeginIngestInput):
    """A version that will not be published: its points go; its chunk list only when nobody will try it again."""

    drop_chunks: bool


class FinishIngestInput(IngestInput):
    """How the ingest ended, for the activity that writes it down."""

    end: RunEnd
    superseded: bool = False


class FinishInput(WorkflowInput):
    """How the run ended, for the activity that writes it down."""

    end: RunEnd


class ClaimInput(WorkflowInput):
    """Which execution claims the run: of a chain that continued as new, the first."""

    execution_id: str


class WaitingInput(WorkflowInput):
    """A wait that people see: for which engine, and until when at most (RFC 3339)."""

    waiting_for: str
    until: str | None = None


class SessionInput(BaseModel):
    """A session: whose it is. What it has to do is in its messages' rows."""

    tenant: str
    session_id: str


class TurnInput(WorkflowInput):
    """One turn of an agent: of a session, or one that another turn delegated."""

    session_id: str | None = None


class ThinkInput(TurnInput):
    """One call of the model, the `iteration`th of its turn; the first one claims the run for this execution."""

    iteration: int
    execution_id: str


class CallInput(TurnInput):
    """One call of a tool, by the step under which it was planned and its outcome will stand."""

    step: str
    tool: str
    approval_id: str | None = None
    child_run_id: str | None = None


class FinishTurnInput(TurnInput):
    """How the turn would end; one that succeeds goes on instead when somebody has said something more."""

    end: RunEnd


class ApprovalInput(WorkflowInput):
    """A request that waits for a person, until `expires_at` (RFC 3339)."""

    approval_id: str
    expires_at: str
    tool: str = ""


class ApprovalStepInput(ApprovalInput):
    """For the activities of an approval: which execution looks, and what it would write down."""

    execution_id: str
    outcome: str | None = None


class CancelRequest(BaseModel):
    """The signal's argument. The fact itself is a column of the run; this only wakes the workflow."""

    by: str | None = None


INGEST_STEPS = {
    "fetch": "received",
    "parse": "parsing",
    "chunk": "chunking",
    "embed": "embedding",
    "index": "indexing",
    "publish": "indexing",
    "sweep": "indexing",
    "enrich": "enriching",
}
"""The steps of an ingest in their order, each with the stage that people see meanwhile."""


def ingest_steps_from(stage: str | None) -> list[str]:
    """The steps of an ingest that starts at a stage; all of them when the stage is none or not known here."""
    names, stages = list(INGEST_STEPS), list(INGEST_STEPS.values())
    return names[stages.index(stage) :] if stage in stages else names


@dataclass(frozen=True)
class WorkflowContract:
    """Name, shapes, queue and messages of one workflow type."""

    name: str
    input: type[WorkflowInput]
    queue: str
    kind: str
    result: type[WorkflowEnd] = WorkflowEnd
    signals: tuple[str, ...] = (CANCEL_SIGNAL, WAKE_SIGNAL)
    priority: int = 3


@dataclass(frozen=True)
class EntityContract:
    """A workflow that is no run: it works off rows for as long as there are some, and can only be woken."""

    name: str
    input: type[SessionInput]
    queue: str
    kind: str
    result: type[WorkflowEnd] = WorkflowEnd
    signals: tuple[str, ...] = (WAKE_SIGNAL,)
    priority: int = 1


INGEST_DOCUMENT = WorkflowContract("IngestDocument", IngestInput, INGEST_QUEUE, "ingest", priority=4)
REMOVE_DOCUMENT = WorkflowContract("RemoveDocument", RemoveDocumentInput, INGEST_QUEUE, "remove", priority=2)
REMOVE_SPACE = WorkflowContract("RemoveSpace", RemoveSpaceInput, INGEST_QUEUE, "remove", priority=3)
REFRESH_ACCESS = WorkflowContract("RefreshAccess", RefreshAccessInput, INGEST_QUEUE, "access", priority=2)
ANSWER_QUESTION = WorkflowContract("AnswerQuestion", AnswerInput, INTERACTIVE_QUEUE, "answer", priority=1)

AGENT_TURN = WorkflowContract("AgentTurn", TurnInput, INTERACTIVE_QUEUE, "turn", priority=1)
ASK_APPROVAL = WorkflowContract("AskApproval", ApprovalInput, INTERACTIVE_QUEUE, "approval", priority=1)

SESSION = EntityContract("Session", SessionInput, INTERACTIVE_QUEUE, "session")

CONTRACTS: dict[str, WorkflowContract] = {
    contract.name: contract
    for contract in (
        INGEST_DOCUMENT,
        REMOVE_DOCUMENT,
        REMOVE_SPACE,
        REFRESH_ACCESS,
        ANSWER_QUESTION,
        AGENT_TURN,
        ASK_APPROVAL,
    )
}


class SearchAttributeNames(BaseModel):
    """Keyword attributes that every workflow carries; checked against the namespace at start."""

    tenant: str = "PerdureTenant"
    kind: str = "PerdureKind"
    actor: str = "PerdureActor"
    space: str = "PerdureSpace"
    state: str = "PerdureState"
    waiting_for: str = "PerdureWaitingFor"

    def all(self) -> list[str]:
        return list(self.model_dump().values())


SEARCH_ATTRIBUTES = SearchAttributeNames()


class StepResult(BaseModel):
    """What an activity tells its workflow. `engine` names the engine to wait for when `status` is `engine_down`."""

    status: str = "done"
    code: str | None = None
    detail: str | None = None
    engine: str | None = None
    counts: dict[str, int] = Field(default_factory=dict)


class NextTurn(StepResult):
    """Which turn a session runs now; none when there is nothing to do. `adopted`: it is under way already."""

    run_id: str | None = None
    adopted: bool = False
    traceparent: str | None = None


class Thought(StepResult):
    """What a model call came to: calls to make, or the turn's last word."""

    calls: list[CallPlan] = Field(default_factory=list)
    final: bool = False
