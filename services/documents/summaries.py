"""Chunks made for finding, never cited: what a sheet holds, what a container holds."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.parsed_documents import Block

_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 40
_COLUMNS = 60
_JUDGED_ROWS = 2_000


def sheet_summary(block: Block) -> str:
    """Name, size and columns of a sheet, with the range of numeric columns and examples of the others."""
    rows = block.rows[block.header_rows :]
    header = block.rows[block.header_rows - 1] if block.header_rows else []
    width = max((len(row) for row in block.rows[:_JUDGED_ROWS]), default=0)
    lines = [f"Sheet {block.sheet}: {len(rows)} rows, {width} columns."]
    for column in range(min(width, _COLUMNS)):
        name = header[column] if column < len(header) and header[column] else f"column {column + 1}"
        values = [row[column] for row in rows[:_JUDGED_ROWS] if column < len(row) and row[column]]
        lines.append(f"{name[:_EXAMPLE_CHARACTERS]}: {_describe(values)}")
    return "\n".join(lines)


def _describe(values: list[str]) -> str:
    if not values:
        return "empty"
    numbers = [number for number in map(_number, values) if number is not None]
    if len(numbers) == len(values):
        return f"numbers from {min(numbers):g} to {max(numbers):g}"
    examples = list(dict.fromkeys(value[:_EXAMPLE_CHARACTERS] for value in values))[:_EXAMPLES]
    return "such as " + ", ".join(examples)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def member_summary(name: str, members: Sequence[str], shown: int) -> str:
    """The paths of the first `shown` members; the rest as a number."""
    listed = "\n".join(members[:shown])
    more = f"\nand {len(members) - shown} more" if shown < len(members) else ""
    return f"{name} contains {len(members)} files:\n{listed}{more}"
