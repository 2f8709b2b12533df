"""Files and functions stay small enough to read at once."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median, quantiles

from tests.architecture.repository import PRODUCT_PACKAGES, place, python_files, tree_of

FILE_STOP, FILE_P90, FILE_MEDIAN = 400, 300, 100
FUNCTION_STOP, FUNCTION_P90 = 80, 35


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def function_lengths(path: Path) -> list[tuple[int, str]]:
    """(lines from `def` to the end, place) of each function and method, nested ones included."""
    found = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [((node.end_lineno or node.lineno) - node.lineno + 1, f"{place(path, node)} {node.name}") for node in found]


def percentile_90(values: list[int]) -> float:
    return quantiles(values, n=10)[-1] if len(values) > 1 else float(values[0])


def product_file_sizes() -> list[int]:
    """Empty files (package markers) say nothing about size."""
    return [lines for path in python_files(*PRODUCT_PACKAGES) if (lines := lines_of(path))]


def product_function_sizes() -> list[int]:
    return [lines for path in python_files(*PRODUCT_PACKAGES) for lines, _ in function_lengths(path)]


def test_no_file_is_longer_than_400_lines() -> None:
    assert not {place(path): lines for path in python_files() if (lines := lines_of(path)) > FILE_STOP}


def test_no_function_is_longer_than_80_lines() -> None:
    assert not [
        (lines, name) for path in python_files() for lines, name in function_lengths(path) if lines > FUNCTION_STOP
    ]


def test_typical_file_and_function_of_the_product_are_short() -> None:
    sizes, functions = product_file_sizes(), product_function_sizes()
    print(f"\nfiles {len(sizes)}: median {median(sizes):.0f}, p90 {percentile_90(sizes):.0f} lines")
    print(f"functions {len(functions)}: median {median(functions):.0f}, p90 {percentile_90(functions):.0f} lines")
    assert median(sizes) <= FILE_MEDIAN
    assert percentile_90(sizes) <= FILE_P90
    assert percentile_90(functions) <= FUNCTION_P90
