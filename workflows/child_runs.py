"""Starting the workflow of a run whose row stands already, as a child of the one that waits for it."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from schemas.workflow_contracts import (
        RUN_MEMO,
        SEARCH_ATTRIBUTES,
        STATE_AT_START,
        WORKFLOW_TASK_TIMEOUT,
        WorkflowContract,
        WorkflowEnd,
        WorkflowInput,
    )

_INHERITED = (SEARCH_ATTRIBUTES.tenant, SEARCH_ATTRIBUTES.actor)


async def start_child(
    contract: WorkflowContract, input: WorkflowInput, workflow_id: str, summary: str
) -> workflow.ChildWorkflowHandle[Any, WorkflowEnd]:
    """Raises WorkflowAlreadyStartedError when it runs already. It outlives its parent: its end is its own to record.

    On its parent's queue, which is its contract's.
    """
    return await workflow.start_child_workflow(
        contract.name,
        input,
        id=workflow_id,
        result_type=WorkflowEnd,
        parent_close_policy=ParentClosePolicy.ABANDON,
        memo={RUN_MEMO: input.run_id},
        search_attributes=_attributes(contract),
        static_summary=summary,
        priority=Priority(priority_key=contract.priority, fairness_key=input.tenant),
        task_timeout=WORKFLOW_TASK_TIMEOUT,
    )


def _attributes(contract: WorkflowContract) -> TypedSearchAttributes:
    own = workflow.info().typed_search_attributes
    pairs = [_pair(SEARCH_ATTRIBUTES.kind, contract.kind), _pair(SEARCH_ATTRIBUTES.state, STATE_AT_START)]
    for name in _INHERITED:
        value = own.get(SearchAttributeKey.for_keyword(name))
        if value is not None:
            pairs.append(_pair(name, value))
    return TypedSearchAttributes(pairs)


def _pair(name: str, value: str) -> SearchAttributePair[str]:
    return SearchAttributePair(SearchAttributeKey.for_keyword(name), value)
