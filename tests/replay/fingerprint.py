"""What each workflow commands, in the order of its source: the gate for branches that no recorded history covers.

A line is `function: constructs around it > command`. Replay notices another order of commands only on a recorded path; this
notices it on every path, and leaves alone what cannot break a replay (names of variables, arguments, time-outs, messages).
"""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path

from infra import run_worker
from workflows import child_runs, run_lifecycle

BASELINE = Path(__file__).parent / "fingerprints.json"
LIFECYCLE = "RunLifecycle"
COMMANDS = frozenset(
    {
        "start_activity", "start_activity_method", "start_activity_class", "execute_activity", "execute_activity_method",
        "execute_activity_class", "start_local_activity", "start_local_activity_method", "execute_local_activity",
        "execute_local_activity_method", "start_child_workflow", "execute_child_workflow", "continue_as_new", "sleep",
        "wait_condition", "wait", "as_completed", "patched", "deprecate_patch", "upsert_search_attributes", "upsert_memo",
        "signal", "cancel", "get_external_workflow_handle", "uuid4", "uuid7", "random", "new_random",
    }
)  # fmt: skip
_CHILD_STARTS = frozenset(vars(child_runs)) & {"start_child"}
_CONSTRUCTS = (
    ast.If,
    ast.While,
    ast.For,
    ast.AsyncFor,
    ast.Try,
    ast.ExceptHandler,
    ast.With,
    ast.AsyncWith,
    ast.Lambda,
)
_LIFECYCLE_CALLS = frozenset(name for name in vars(run_lifecycle.RunLifecycle) if not name.startswith("__"))


def current() -> dict[str, list[str]]:
    """By workflow name, and one for what they all share."""
    workflows = [workflow for queue in run_worker.WORKFLOWS.values() for workflow in queue]
    modules = {workflow.__name__: workflow.__module__ for workflow in workflows}
    return {
        name: of_source(Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8"))
        for name, module in sorted({**modules, LIFECYCLE: run_lifecycle.__name__}.items())
    }


def of_source(source: str) -> list[str]:
    tree = ast.parse(source)
    own_steps = {node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}
    visitor = _Commands(own_steps)
    visitor.visit(tree)
    return visitor.lines


def baseline() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(BASELINE.read_text(encoding="utf-8"))
    return found


def write_baseline() -> None:
    BASELINE.write_text(json.dumps(current(), indent=1) + "\n", encoding="utf-8")


class _Commands(ast.NodeVisitor):
    def __init__(self, own_steps: set[str]) -> None:
        self._own_steps = own_steps
        self.lines: list[str] = []
        self._around: list[str] = []
        self._function = ""
        self._activity_classes: dict[str, type] = {}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and node.module.startswith("activities."):
            module = importlib.import_module(node.module)
            for alias in node.names:
                self._activity_classes[alias.asname or alias.name] = getattr(module, alias.name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, around = self._function, self._around
        self._function, self._around = node.name, []
        for statement in node.body:  # decorators and annotations command nothing
            self.visit(statement)
        self._function, self._around = outer, around

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node: ast.Call) -> None:
        command = _command(node.func, self._own_steps)
        if command is not None:
            self._note(command)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self._activity_classes:
            method = getattr(self._activity_classes[node.value.id], node.attr)
            definition = getattr(method, "__temporal_activity_definition")
            self._note(f"activity {definition.name}")
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        construct = isinstance(node, _CONSTRUCTS)
        if construct:
            self._around.append(type(node).__name__.lower())
        super().generic_visit(node)
        if construct:
            self._around.pop()

    def _note(self, command: str) -> None:
        path = " > ".join([*self._around, command])
        self.lines.append(f"{self._function or 'module'}: {path}")


def _command(function: ast.expr, own_steps: set[str]) -> str | None:
    """`workflow.X` for the SDK's commands, `lifecycle.X` for ours over them, `self.X` for a part of the workflow."""
    if isinstance(function, ast.Name) and function.id in _CHILD_STARTS:
        return function.id
    if not isinstance(function, ast.Attribute):
        return None
    owner, name = function.value, function.attr
    if isinstance(owner, ast.Name) and owner.id == "workflow" and name in COMMANDS:
        return f"workflow.{name}"
    if isinstance(owner, ast.Attribute) and owner.attr == "_lifecycle" and name in _LIFECYCLE_CALLS:
        return f"lifecycle.{name}"
    if isinstance(owner, ast.Name) and owner.id == "self" and (name in own_steps or name in _LIFECYCLE_CALLS):
        return f"self.{name}"
    return None
