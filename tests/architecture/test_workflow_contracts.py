"""Each contract equals its workflow, each queue has the activities its workflows call, each start uses the contract's id."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any, cast

import pytest
from temporalio import activity, workflow
from temporalio.client import Client

from infra import run_worker, wiring
from infra.failpoints import failpoint_from
from infra.local_stack import temporal_engine
from schemas import workflow_contracts
from schemas.settings import Settings
from schemas.workflow_contracts import CONTRACTS, SEARCH_ATTRIBUTES, SESSION, EntityContract, WorkflowContract
from services.events.delivery import OutboxDelivery
from tests.architecture.repository import place, python_files, tree_of
from tests.replay import fingerprint

WORKFLOW_IDS = {
    "INGEST_DOCUMENT": "ingest:{tenant}:{}:{}",
    "REMOVE_DOCUMENT": "remove:{tenant}:{}",
    "REMOVE_SPACE": "remove-space:{tenant}:{}",
    "REFRESH_ACCESS": "access:{tenant}:{}",
    "ANSWER_QUESTION": "answer:{tenant}:{}",
    "AGENT_TURN": "turn:{tenant}:{}",
    "ASK_APPROVAL": "approval:{tenant}:{}",
}
"""Ids are found again by people and by the reconciler, so they change for nobody."""

WORKFLOWS = {
    workflow._Definition.must_from_class(each).name: each for queue in run_worker.WORKFLOWS.values() for each in queue
}

ALL: tuple[WorkflowContract | EntityContract, ...] = (*CONTRACTS.values(), SESSION)


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> wiring.ActivityLists:
    """The activities that the composition root builds; no engine is opened for it."""
    nowhere = cast(Client, None)
    engines = wiring.build_engines(
        Settings(),
        "postgresql+psycopg://nobody@127.0.0.1:1/none",
        nowhere,
        tmp_path_factory.mktemp("data"),
        eager=False,
    )
    failpoint = failpoint_from(None)
    delivery = OutboxDelivery(engines.database, engines.temporal, cast(Any, None), batch=1, failpoint=failpoint)
    return wiring.build_activities(wiring.build_services(engines, delivery, failpoint))


def test_every_workflow_has_a_contract_and_every_contract_a_workflow() -> None:
    assert set(WORKFLOWS) == {*CONTRACTS, SESSION.name}
    assert {
        contract for contract in vars(workflow_contracts).values() if isinstance(contract, WorkflowContract)
    } == set(CONTRACTS.values())


@pytest.mark.parametrize("contract", ALL, ids=lambda contract: contract.name)
def test_a_contract_equals_the_signature_of_its_workflow(contract: WorkflowContract | EntityContract) -> None:
    definition = workflow._Definition.must_from_class(WORKFLOWS[contract.name])
    assert definition.arg_types == [contract.input]
    assert definition.ret_type is contract.result
    assert set(definition.signals) == set(contract.signals)
    assert not definition.queries
    assert not definition.updates


@pytest.mark.parametrize("contract", ALL, ids=lambda contract: contract.name)
def test_a_workflow_runs_on_the_queue_of_its_contract(contract: WorkflowContract | EntityContract) -> None:
    queues = [queue for queue, each in run_worker.WORKFLOWS.items() if WORKFLOWS[contract.name] in each]
    assert queues == [contract.queue]


@pytest.mark.parametrize("queue", run_worker.WORKFLOWS)
def test_a_queue_has_exactly_the_activities_that_its_workflows_call(
    queue: str, registered: wiring.ActivityLists
) -> None:
    prints = fingerprint.current()
    users = [*(each.__name__ for each in run_worker.WORKFLOWS[queue]), fingerprint.LIFECYCLE]
    called = {line.rpartition("activity ")[2] for user in users for line in prints[user] if "activity " in line}
    names = Counter(_activity_name(method) for method in registered[queue])
    assert set(names) == called
    assert set(names.values()) == {1}


def test_the_embedded_server_has_the_search_attributes_of_the_contract() -> None:
    assert set(temporal_engine.SEARCH_ATTRIBUTES) == set(SEARCH_ATTRIBUTES.all())


def test_every_run_is_created_with_the_id_and_the_input_of_its_contract() -> None:
    created = [(path, call) for path in python_files("services") for call in _creations(tree_of(path))]
    assert {_contract_of(call) for _, call in created} == set(WORKFLOW_IDS)
    for path, call in created:
        name = _contract_of(call)
        contract: WorkflowContract = getattr(workflow_contracts, name)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert _pattern(given["workflow_id"]) == WORKFLOW_IDS[name], place(path, call)
        fields, keys = contract.input.model_fields, _keys(given["input_ref"])
        from_the_run = {"tenant", "run_id", "traceparent"}
        required = {field for field, info in fields.items() if info.is_required()} - from_the_run
        assert required <= keys <= set(fields), place(path, call)
        assert "traceparent" in given, place(path, call)


def test_the_checks_see_what_they_forbid() -> None:
    call = next(_creations(ast.parse("runs_store.create(t, X, workflow_id=f'ingest:{actor.tenant}:{document}')")))
    assert _contract_of(call) == "X"
    assert _pattern(call.keywords[0].value) == "ingest:{tenant}:{}"
    assert _pattern(ast.parse("f'ingest:{user}:{document}'", mode="eval").body) == "ingest:{}:{}"


def _activity_name(method: Any) -> str:
    definition = activity._Definition.must_from_callable(method)
    assert definition.name is not None
    return definition.name


def _creations(tree: ast.AST) -> Any:
    """Calls of `runs_store.create(transaction, CONTRACT, …)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "create":
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "runs_store":
                yield node


def _contract_of(call: ast.Call) -> str:
    contract = call.args[1]
    assert isinstance(contract, ast.Name), "name the contract where the run is created"
    return contract.id


def _pattern(value: ast.expr) -> str:
    """`f"a:{actor.tenant}:{b}"` as `a:{tenant}:{}`."""
    assert isinstance(value, ast.JoinedStr), "write the workflow id where the run is created"
    parts = []
    for part in value.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            tenant = isinstance(part.value, ast.Attribute) and part.value.attr == "tenant"
            parts.append("{tenant}" if tenant else "{}")
    return "".join(parts)


def _keys(value: ast.expr) -> set[str]:
    assert isinstance(value, ast.Dict), "write the input where the run is created"
    return {key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
