"""From a range of a passage to the chunk it came from."""

from __future__ import annotations

from schemas.answers import Citation
from schemas.passages import Passage, PassagePart


def part_holding(passage: Passage, start: int, end: int) -> PassagePart | None:
    """The one chunk that holds passage.text[start:end] whole, or None: separators and straddling ranges have none."""
    for part in passage.parts:
        if part.passage_start <= start < end <= part.passage_end:
            return part
    return None


def cite(passage: Passage, start: int, end: int) -> Citation:
    """The citation of passage.text[start:end]. Raises ValueError when no single chunk holds that range."""
    part = part_holding(passage, start, end)
    if part is None:
        raise ValueError(f"passage {passage.n}: no chunk holds [{start}:{end}]")
    shift = part.start - part.passage_start
    return Citation(
        n=passage.n, document_id=passage.document_id, document_version=passage.document_version,
        chunk_id=part.chunk_id, title=passage.title, page_start=part.page_start, page_end=part.page_end,
        start=start + shift, end=end + shift, quote=passage.text[start:end],
    )  # fmt: skip
