"""Lint: nothing outside `services/stores/database.py` reaches Postgres past the tenant (invariant 12).

The incident it prevents: somebody needs one number for a report, opens a second connection (or takes the engine out of
the first one), and the query runs as the owner of the tables, for whom no row-level policy holds. It is right on a
machine with one tenant, passes its tests, and shows one customer another's document titles on the first shared one.
A forgotten WHERE is caught by the policies; a connection that never stepped down to the application's role is not. So
every transaction comes from `Database.begin(tenant)`, and work for all tenants says so: `every_tenant("the reason")`.

A line that must go around it carries `# cross-tenant: <reason>`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

BLESSED = "services/stores/database.py"
CHECKED_PACKAGES = ("services", "activities", "workflows")
ALLOWED = re.compile(r"#\s*cross-tenant:\s*\S+")
DRIVERS = {"psycopg", "psycopg_pool", "psycopg2", "asyncpg"}
OPENERS = {
    "create_engine", "create_async_engine", "engine_from_config", "async_engine_from_config", "Engine", "AsyncEngine",
    "Connection", "AsyncConnection", "Session", "AsyncSession", "sessionmaker", "async_sessionmaker",
}  # fmt: skip
INSIDES = {"_engine", "_connection", "_transaction"}
CHANGES_SCOPE = re.compile(
    r"\bset_config\s*\(|\b(?:re)?set\s+(?:local\s+|session\s+)*(?:role|session\s+authorization|perdure\.)|\brow_security\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Bypass:
    """One place that goes around the tenant."""

    line: int
    detail: str


def bypasses(source: str) -> list[Bypass]:
    """Every bypass in a module's source, lines with a reason left out, in the order of their lines."""
    tree = ast.parse(source)
    lines = source.splitlines()
    docstrings = _docstrings(tree)
    found = {
        Bypass(node.lineno, detail)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.expr) and node not in docstrings
        for detail in _details(node)
    }
    return sorted((each for each in found if not ALLOWED.search(lines[each.line - 1])), key=lambda each: each.line)


def _docstrings(tree: ast.Module) -> set[ast.AST]:
    return {
        statement.value
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }


def _details(node: ast.stmt | ast.expr) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (f"imports {name.name}" for name in names if name.name.split(".")[0] in DRIVERS)
        case ast.ImportFrom(module=str(module), names=names):
            yield from _imported(module, [name.name for name in names])
        case ast.Attribute(attr=attribute, value=value):
            if attribute in {"create_engine", "create_async_engine"}:
                yield f"opens connections with {attribute}"
            if attribute in INSIDES and not (isinstance(value, ast.Name) and value.id == "self"):
                yield f"takes {attribute} out of the database"
        case ast.Call(func=ast.Name(id="Transaction")):
            yield "makes a Transaction by itself"
        case ast.Call(func=ast.Attribute(attr="every_tenant"), args=args):
            if not (args and isinstance(args[0], ast.Constant) and str(args[0].value).strip()):
                yield "calls every_tenant without a written reason"
        case ast.Constant(value=str(text)) if CHANGES_SCOPE.search(text):
            yield "changes role or tenant in SQL"


def _imported(module: str, names: list[str]) -> Iterator[str]:
    package = module.split(".")[0]
    if package in DRIVERS:
        yield f"imports {module}"
    elif package == "sqlalchemy":
        yield from (f"imports {name}" for name in names if name in OPENERS)
