"""Temporal's sandbox without what it does for converters that change with their context, which ours do not.

For every payload of a task the SDK asks the workflow's sandbox, on the event loop, which context to convert it in, three
times over. Each time is compiled and run inside the sandbox: of a first workflow task that was a third.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions


def sandbox() -> SandboxedWorkflowRunner:
    """The sandbox with our data shapes passed through."""
    return ContextFreeSandbox(restrictions=SandboxRestrictions.default.with_passthrough_modules("schemas"))


class ContextFreeSandbox(SandboxedWorkflowRunner):
    """Payloads are converted without a context, and none is stored outside; all else is Temporal's."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _ContextFreeInstance(super().create_instance(det))


class _ContextFreeInstance(WorkflowInstance):
    def __init__(self, inner: WorkflowInstance) -> None:
        self._inner = inner

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._inner.activate(act)

    def get_serialization_context(self, command_info: Any) -> None:
        return None

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    def get_info(self) -> workflow.Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()
