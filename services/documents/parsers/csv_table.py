"""CSV and TSV: one table."""

from __future__ import annotations

import csv
import io
from collections import Counter

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, ParsedDocument
from services.documents.clean_text import clean_text
from services.documents.parse_source import ParseSource
from services.documents.parsers.table_header import header_row_count
from services.documents.sniff import TSV
from services.documents.text_encoding import decode_text

_DELIMITERS = ",;\t|"
_JUDGED_CHARACTERS = 64_000


def parse(source: ParseSource) -> ParsedDocument:
    text, encoding = decode_text(source.data)
    text = clean_text(text)
    delimiter = "\t" if source.media_type == TSV else sniff_delimiter(text)
    csv.field_size_limit(source.limits.text_chars)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise PermanentFailure("corrupt", f"the table cannot be read: {error}") from error
    blocks = [Block.model_construct(kind="table", rows=rows, header_rows=header_row_count(rows))] if rows else []
    return ParsedDocument(media_type=source.media_type, parser=f"csv ({encoding}, {delimiter!r})", blocks=blocks)


def sniff_delimiter(text: str) -> str:
    """The delimiter that stands outside quotes equally often in most of the first lines."""
    counts: dict[str, Counter[int]] = {delimiter: Counter() for delimiter in _DELIMITERS}
    for line in _unquoted_lines(text[:_JUDGED_CHARACTERS]):
        for delimiter in _DELIMITERS:
            counts[delimiter][line.count(delimiter)] += 1
    best, best_score = ",", (0, 0)
    for delimiter, histogram in counts.items():
        number, lines = max(histogram.items(), key=lambda item: (item[1] if item[0] else 0, item[0]), default=(0, 0))
        score = (lines, number)
        if number and score > best_score:
            best, best_score = delimiter, score
    return best


def _unquoted_lines(text: str) -> list[str]:
    """The lines without what stands between quotes, line feeds between quotes included."""
    outside = "".join(text.split('"')[::2]) if text.count('"') % 2 == 0 else text
    lines = [line for line in outside.split("\n") if line.strip()]
    return lines[:-1] if len(lines) > 2 and len(text) == _JUDGED_CHARACTERS else lines
