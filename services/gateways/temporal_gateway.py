"""Starts, signals and looks at workflows by their typed contract, never by their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from schemas.errors import EngineDown, PermanentFailure
from schemas.workflow_contracts import (
    CONTRACTS,
    RUN_MEMO,
    SEARCH_ATTRIBUTES,
    SESSION,
    STATE_AT_START,
    WORKFLOW_TASK_TIMEOUT,
    WorkflowContract,
    WorkflowInput,
)

_DOWN = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNKNOWN}


@dataclass(frozen=True)
class WorkflowStart:
    """Everything needed to start a run's workflow; built from its row alone, so that it can be started again."""

    run_id: str
    tenant: str
    contract: str
    workflow_id: str
    input_ref: dict[str, Any]
    actor: str | None
    space_id: str | None = None
    summary: str = ""

    def workflow_input(self, contract: WorkflowContract) -> WorkflowInput:
        return contract.input.model_validate({**self.input_ref, "tenant": self.tenant, "run_id": self.run_id})


@dataclass(frozen=True)
class ExecutionView:
    """What Temporal knows of a workflow id's latest execution."""

    execution_id: str
    run_id: str | None
    status: str
    closed: bool


class TemporalGateway:
    """The client of one namespace. All methods raise EngineDown when Temporal does not answer."""

    def __init__(self, client: Client, *, eager_start: bool) -> None:
        self._client = client
        self._eager_start = eager_start

    async def start(self, start: WorkflowStart) -> None:
        """Starts the workflow; one that runs already under this id for this very run counts as started.

        Another run's execution under the same id raises PermanentFailure("conflict"): ids are one run's at a time.
        """
        contract = CONTRACTS[start.contract]
        try:
            await self._client.start_workflow(
                contract.name,
                start.workflow_input(contract),
                id=start.workflow_id,
                task_queue=contract.queue,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo={RUN_MEMO: start.run_id},
                search_attributes=_search_attributes(start, contract),
                static_summary=start.summary or f"{contract.name} · run {start.run_id}",
                priority=Priority(priority_key=contract.priority, fairness_key=start.tenant),
                request_eager_start=self._eager_start,
                task_timeout=WORKFLOW_TASK_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            running = await self.describe(start.workflow_id)
            if running is None or running.run_id != start.run_id:  # also when the other one has closed since
                holder = "another run" if running is None else f"run {running.run_id}"
                raise PermanentFailure("conflict", f"workflow {start.workflow_id} runs for {holder}") from None
        except RPCError as error:
            raise _failure(error) from error

    async def wake_session(self, tenant: str, session_id: str, actor: str | None) -> None:
        """Signal-with-start: a session that sleeps is started, one that runs is woken. What to do it reads from its rows."""
        values = {
            SEARCH_ATTRIBUTES.tenant: tenant,
            SEARCH_ATTRIBUTES.kind: SESSION.kind,
            SEARCH_ATTRIBUTES.actor: actor,
            SEARCH_ATTRIBUTES.state: STATE_AT_START,
        }
        try:
            await self._client.start_workflow(
                SESSION.name,
                SESSION.input(tenant=tenant, session_id=session_id),
                id=f"session:{tenant}:{session_id}",
                task_queue=SESSION.queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal=SESSION.signals[0],
                search_attributes=_keywords(values),
                static_summary=f"Session {session_id}",
                priority=Priority(priority_key=SESSION.priority, fairness_key=tenant),
                task_timeout=WORKFLOW_TASK_TIMEOUT,
            )
        except RPCError as error:
            raise _failure(error) from error

    async def signal(self, workflow_id: str, signal: str, argument: Any) -> bool:
        """False when there is no such open workflow: the fact is in its rows, nobody is left to wake."""
        try:
            await self._client.get_workflow_handle(workflow_id).signal(signal, argument)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise _failure(error) from error
        return True

    async def describe(self, workflow_id: str) -> ExecutionView | None:
        """The latest execution under this id, or None when Temporal knows of none."""
        try:
            description = await self._client.get_workflow_handle(workflow_id).describe()
            memo = await description.memo()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return None
            raise _failure(error) from error
        status = description.status
        return ExecutionView(
            execution_id=description.run_id,
            run_id=memo.get(RUN_MEMO),
            status=status.name.lower() if status is not None else "unknown",
            closed=status not in (WorkflowExecutionStatus.RUNNING, None),
        )

    async def ping(self) -> None:
        try:
            await self._client.workflow_service.get_system_info(GetSystemInfoRequest())
        except RPCError as error:
            raise _failure(error) from error


def _search_attributes(start: WorkflowStart, contract: WorkflowContract) -> TypedSearchAttributes:
    values = {
        SEARCH_ATTRIBUTES.tenant: start.tenant,
        SEARCH_ATTRIBUTES.kind: contract.kind,
        SEARCH_ATTRIBUTES.actor: start.actor,
        SEARCH_ATTRIBUTES.space: start.space_id,
        SEARCH_ATTRIBUTES.state: STATE_AT_START,
    }
    return _keywords(values)


def _keywords(values: dict[str, str | None]) -> TypedSearchAttributes:
    pairs = [
        SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in values.items() if value
    ]
    return TypedSearchAttributes(pairs)


def _failure(error: RPCError) -> Exception:
    if error.status in _DOWN:
        return EngineDown("temporal", "Temporal does not answer")
    return PermanentFailure("refused", f"Temporal refused: {error.message}")
