"""What the architecture tests look at: the repository's files, as a fresh clone would hold them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT_PACKAGES = ("schemas", "services", "activities", "workflows", "infra")


@cache
def _ignored_patterns() -> list[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    return [".git", *(line.rstrip("/") for line in lines if line and not line.startswith("#"))]


def is_ignored(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _ignored_patterns())


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Every file under `folder` that .gitignore does not name."""
    for path in sorted(folder.iterdir()):
        if is_ignored(path.name):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def text_files() -> Iterator[tuple[str, str]]:
    """(path from the root, text) of every file that is UTF-8 text."""
    for path in files():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        try:
            yield path.relative_to(ROOT).as_posix(), data.decode()
        except UnicodeDecodeError:
            continue


def python_files(*folders: str) -> list[Path]:
    """Python files of these top-level folders; of all of them when none is named."""
    chosen = folders or (*PRODUCT_PACKAGES, "tests", "docs", "examples")
    present = [ROOT / folder for folder in chosen if (ROOT / folder).is_dir()]
    return [path for folder in present for path in files(folder) if path.suffix == ".py"]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def place(path: Path, node: ast.AST | None = None) -> str:
    """`file:line` as an editor opens it."""
    line = f":{node.lineno}" if isinstance(node, ast.stmt | ast.expr) else ""
    return f"{path.relative_to(ROOT).as_posix()}{line}"
