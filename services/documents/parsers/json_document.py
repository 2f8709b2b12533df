"""JSON and JSON Lines: lists of flat records are tables, anything else is lines of `path: value`."""

from __future__ import annotations

import json
from typing import Any

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, ParsedDocument, Warning
from services.documents.bounds import XML_DEPTH
from services.documents.clean_text import clean_text
from services.documents.parse_source import ParseSource
from services.documents.parsers import plain_text
from services.documents.sniff import JSON_LINES
from services.documents.text_encoding import decode_text

_WIDEST_TABLE = 60


def parse(source: ParseSource) -> ParsedDocument:
    text, encoding = decode_text(source.data)
    document = ParsedDocument(media_type=source.media_type, parser=f"json ({encoding})")
    try:
        value = _load(text, lines=source.media_type == JSON_LINES)
    except ValueError as error:
        document.warnings.append(Warning(code="not_json", detail=f"read as plain text: {error}"))
        document.blocks = plain_text.paragraphs(clean_text(text))
        return document
    except RecursionError as error:
        raise PermanentFailure("too_deep", "the JSON is nested too deeply") from error
    document.blocks = value_blocks(value)
    return document


def _load(text: str, *, lines: bool) -> Any:
    if not lines:
        try:
            return json.loads(text)
        except ValueError:
            if text.count("\n") == 0:
                raise
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def value_blocks(value: Any) -> list[Block]:
    """One table for a list of flat records; a block for each top-level entry of anything else."""
    if isinstance(value, list) and (table := _records_table(value)):
        return [table]
    if isinstance(value, dict):
        blocks: list[Block] = []
        for key, entry in value.items():
            if isinstance(entry, list) and (table := _records_table(entry)):
                blocks += [Block(kind="heading", text=str(key), level=1), table]
            else:
                blocks.append(Block(kind="paragraph", text="\n".join(_lines(entry, str(key)))))
        return blocks
    entries = value if isinstance(value, list) else [value]
    return [Block(kind="paragraph", text="\n".join(_lines(entry, ""))) for entry in entries]


def _records_table(values: list[Any]) -> Block | None:
    columns: dict[str, None] = {}
    for record in values:
        if not isinstance(record, dict) or any(isinstance(cell, dict | list) for cell in record.values()):
            return None
        columns.update(dict.fromkeys(record))
        if len(columns) > _WIDEST_TABLE:
            return None
    if len(values) < 2 or not columns:
        return None
    rows = [list(columns), *([_scalar(record.get(column, "")) for column in columns] for record in values)]
    return Block(kind="table", rows=rows, header_rows=1)


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines(value: Any, path: str) -> list[str]:
    """`path: value` for every leaf, in order, without recursion."""
    result: list[str] = []
    stack: list[tuple[Any, str, int]] = [(value, path, 0)]
    while stack:
        current, here, depth = stack.pop()
        if depth > XML_DEPTH:
            raise PermanentFailure("too_deep", f"the JSON is nested more than {XML_DEPTH} levels")
        if isinstance(current, dict) and current:
            children = [(child, f"{here}.{key}" if here else str(key), depth + 1) for key, child in current.items()]
            stack.extend(reversed(children))
        elif isinstance(current, list) and current:
            if all(not isinstance(child, dict | list) for child in current):
                result.append(
                    f"{here}: {', '.join(map(_scalar, current))}" if here else ", ".join(map(_scalar, current))
                )
                continue
            stack.extend(reversed([(child, f"{here}[{place}]", depth + 1) for place, child in enumerate(current)]))
        elif (leaf := _scalar(current) if not isinstance(current, dict | list) else "") != "":
            result.append(f"{here}: {leaf}" if here else leaf)
    return result
