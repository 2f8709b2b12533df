"""The stored text of a document: what citations' offsets index, in Unicode code points (invariant 10)."""

from __future__ import annotations

import regex

from schemas.parsed_documents import Block, CanonicalDocument, ParsedDocument, PlacedBlock
from services.documents.clean_text import clean_text, one_line

__all__ = ["canonicalise", "clean_text"]

_ORDINAL = regex.compile(r"(?:[-*+•]|\(?[0-9０-９一-十a-zA-Z]{1,4}[.)、）])\s")
_BACKTICKS = regex.compile(r"`{3,}")
_BLANK_LINES = regex.compile(r"\n[ \t]*\n\s*")


class _Text:
    """The text so far, as pieces with a running length."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0

    def add(self, piece: str) -> tuple[int, int]:
        start = self.length
        self.pieces.append(piece)
        self.length += len(piece)
        return start, self.length


def canonicalise(parsed: ParsedDocument) -> CanonicalDocument:
    """Render the blocks, in order, as one Markdown-like text and say where each of them stands.

    Text is cleaned before it is placed, so offsets are exact and no NFC composition can happen across a join: blocks
    are kept apart by line feeds. Page breaks take no text; blocks without text leave no trace.
    """
    out = _Text()
    placed: list[PlacedBlock] = []
    previous: str | None = None
    for block in parsed.blocks:
        if block.kind == "page_break":
            placed.append(PlacedBlock.model_construct(block=block, start=out.length, end=out.length, row_spans=[]))
            continue
        pieces = _table_lines(block) if block.kind == "table" else _render(block)
        if not pieces:
            continue
        if previous is not None:
            out.add("\n" if previous == block.kind == "list_item" else "\n\n")
        placed.append(_place_table(out, block, pieces) if block.kind == "table" else _place(out, block, pieces[0]))
        previous = block.kind
    title = one_line(parsed.title) if parsed.title else None
    return CanonicalDocument(text="".join(out.pieces), title=title or None, blocks=placed)


def _place(out: _Text, block: Block, text: str) -> PlacedBlock:
    start, end = out.add(text)
    return PlacedBlock.model_construct(block=block, start=start, end=end, row_spans=[])


def _place_table(out: _Text, block: Block, lines: list[str]) -> PlacedBlock:
    """Each row has one span; the ruler under the header belongs to the last header row."""
    start = out.length
    spans = []
    for number, line in enumerate(lines):
        if number:
            out.add("\n")
        spans.append(out.add(line))
    return PlacedBlock.model_construct(block=block, start=start, end=out.length, row_spans=spans)


def _render(block: Block) -> list[str]:
    """The block's text as it will stand, or nothing."""
    if block.kind == "code":
        code = clean_text(block.text).strip("\n").rstrip()
        if not code.strip():
            return []
        fence = max([*_BACKTICKS.findall(code), "``"], key=len) + "`"
        return [f"{fence}{one_line(block.language or '')}\n{code}\n{fence}"]
    if block.kind == "heading":
        text = one_line(block.text)
        return [f"{'#' * min(max(block.level, 1), 6)} {text}"] if text else []
    text = _BLANK_LINES.sub("\n", clean_text(block.text)).strip()
    if not text:
        return []
    if block.kind == "quote":
        return ["\n".join(f"> {line}" for line in text.split("\n"))]
    if block.kind == "list_item":
        marker = "" if _ORDINAL.match(text) else "- "
        return ["  " * max(block.level - 1, 0) + marker + text]
    return [text]


def _table_lines(block: Block) -> list[str]:
    """Pipe rows, one a row of the block that has any text; the last header row carries the ruler line.

    `block.rows` is cut to the rows kept, so that row_spans and rows stay parallel.
    """
    rows: list[list[str]] = []
    lines: list[str] = []
    headers = 0
    for number, cells in enumerate(block.rows):
        row = [one_line(cell) for cell in cells]
        while row and not row[-1]:
            row.pop()
        if not row:
            continue
        headers += number < block.header_rows
        rows.append(row)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    if headers:
        lines[headers - 1] += "\n|" + " --- |" * max(len(row) for row in rows[:headers])
    block.rows, block.header_rows = rows, headers
    return lines
