"""Imports stand at the top of a file, public classes say what they are, unfinished work has no place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.repository import PRODUCT_PACKAGES, ROOT, files, place, python_files, tree_of

UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b|(?i:not implemented)|raise NotImplementedError")


def imports_in_functions(tree: ast.Module) -> Iterator[ast.stmt]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))


def public_classes_without_docstring(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Classes at module level or inside public classes; Pydantic's `model_config` aside, a bare body explains nothing."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not ast.get_docstring(node):
            yield node


def unfinished_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield number, line.strip()


def product_text_files() -> Iterator[Path]:
    for package in (*PRODUCT_PACKAGES, "terraform"):
        if (ROOT / package).is_dir():
            yield from (path for path in files(ROOT / package) if path.suffix not in {".svg", ".png", ".ico", ".woff2"})


def test_no_function_imports_a_module() -> None:
    assert not [place(path, node) for path in python_files() for node in imports_in_functions(tree_of(path))]


def test_every_public_class_of_the_product_has_a_docstring() -> None:
    paths = python_files(*PRODUCT_PACKAGES)
    bare = [
        f"{place(path, node)} {node.name}" for path in paths for node in public_classes_without_docstring(tree_of(path))
    ]
    assert not bare


def test_product_code_holds_no_word_of_unfinished_work() -> None:
    found = [
        f"{place(path)}:{number} {line}"
        for path in product_text_files()
        for number, line in unfinished_lines(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert not found


def test_the_checks_see_what_they_forbid() -> None:
    tree = ast.parse("class Bare:\n    pass\n\ndef act():\n    import os\n")
    assert [node.name for node in public_classes_without_docstring(tree)] == ["Bare"]
    assert len(list(imports_in_functions(tree))) == 1
    assert [number for number, _ in unfinished_lines("fine\n# TO" + "DO later\nraise X('Not " + "implemented')")] == [
        2,
        3,
    ]
