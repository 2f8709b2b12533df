"""Lines of a PDF page to paragraphs and headings."""

from __future__ import annotations

from collections import Counter

import regex

from schemas.parsed_documents import Block
from services.documents.parsers.pdf_lines import Line
from services.documents.parsers.pdf_tables import PlacedTable

_HEADING_SIZES = ((1.6, 1), (1.3, 2), (1.12, 3))
_LONGEST_HEADING = 200
_BULLET = regex.compile(r"(?:[•‣◦▪●–\-*]|\(?\d{1,3}[.)]|[a-z][.)])\s+\S")
_ENDS_SENTENCE = regex.compile(r"[.!?:;。！？：；…][\"'”’)\]」』]*$")
_WIDE = regex.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff]")
_SOFT_HYPHEN = "\u00ad"


def typical_size(lines: list[Line]) -> float:
    """The font size most of the text is set in."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def page_blocks(lines: list[Line], tables: list[PlacedTable], page: int, body_size: float) -> list[Block]:
    """Blocks in reading order; each table stands before the first line that lies below it."""
    blocks: list[Block] = []
    waiting = sorted(tables, key=lambda table: -table.top)
    paragraph: list[Line] = []
    for line in lines:
        while waiting and line.top <= waiting[0].top and line.left < waiting[0].right:
            _finish(paragraph, page, body_size, blocks)
            blocks.append(_table(waiting.pop(0), page))
        if paragraph and _begins_paragraph(line, paragraph):
            _finish(paragraph, page, body_size, blocks)
        paragraph.append(line)
    _finish(paragraph, page, body_size, blocks)
    blocks.extend(_table(table, page) for table in waiting)
    return blocks


def _table(table: PlacedTable, page: int) -> Block:
    return Block(kind="table", rows=table.rows, header_rows=table.header_rows, page=page)


def _begins_paragraph(line: Line, paragraph: list[Line]) -> bool:
    previous = paragraph[-1]
    if abs(line.size - previous.size) > 0.1 * previous.size:
        return True
    if line.bottom > previous.top:  # the next column: a sentence may run on
        return bool(_ENDS_SENTENCE.search(previous.text)) or not line.text[:1].islower()
    if previous.bottom - line.top > 0.75 * line.size or _BULLET.match(line.text):
        return True
    right = max(item.right for item in paragraph)
    ended_early = previous.right < right - 0.15 * max(right - previous.left, 1)
    indented = line.left - previous.left > 0.8 * line.size and len(paragraph) > 1
    return bool(_ENDS_SENTENCE.search(previous.text)) and (ended_early or indented)


def _finish(paragraph: list[Line], page: int, body_size: float, blocks: list[Block]) -> None:
    if not paragraph:
        return
    text = _joined(paragraph)
    ratio = paragraph[0].size / body_size if body_size else 1.0
    level = next((level for least, level in _HEADING_SIZES if ratio >= least), 0)
    if level and len(text) <= _LONGEST_HEADING:
        blocks.append(Block(kind="heading", text=text, level=level, page=page))
    elif text:
        kind = "list_item" if _BULLET.match(text) else "paragraph"
        level = 1 if kind == "list_item" else 0
        blocks.append(Block.model_validate({"kind": kind, "text": text, "level": level, "page": page}))
    paragraph.clear()


def _joined(paragraph: list[Line]) -> str:
    """Lines as running text: hyphenated words whole again, no space between East Asian characters."""
    text = paragraph[0].text
    for line in paragraph[1:]:
        following = line.text
        if text.endswith(_SOFT_HYPHEN) or (text.endswith("-") and following[:1].islower() and text[-2:-1].isalpha()):
            text = text[:-1] + following
        elif _WIDE.match(text[-1:]) and _WIDE.match(following):
            text += following
        else:
            text += " " + following
    return text.replace(_SOFT_HYPHEN, "-" if text.endswith(_SOFT_HYPHEN) else "").strip()
