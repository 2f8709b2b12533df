"""Passages as a model is shown them: data between delimiters that no passage can write itself, without internal ids."""

from __future__ import annotations

import regex

from schemas.passages import Passage
from services.retrieval.citation_marks import without_foreign_marks

# Anything that could be read as one of our delimiters, also when spaced, full-width or with invisible characters inside.
_INVISIBLE = r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
_TAG_NAME = _INVISIBLE.join("passage") + rf"(?:{_INVISIBLE}s)?"
_QUESTION = _INVISIBLE.join("question")
_DELIMITER = regex.compile(
    rf"[<＜﹤‹&]({_INVISIBLE}(?:lt;)?{_INVISIBLE}[/／]?{_INVISIBLE}(?:{_TAG_NAME}|{_QUESTION}))", regex.I
)


def neutral(text: str) -> str:
    """Text that cannot be taken for a delimiter, nor its own references ([12]) for citations of ours."""
    return without_foreign_marks(_DELIMITER.sub(r"‹ \1", text))


def passage_block(passage: Passage, *, document_id: str | None = None) -> str:
    """`document_id` for a model that may ask for more of the document."""
    number = f' n="{passage.n}"' if passage.n else ""
    lines = [f"<passage{number}>", *([f"document: {document_id}"] if document_id else []), *_about(passage)]
    contexts = dict.fromkeys(c for c in (passage.context, *(part.context for part in passage.parts)) if c)
    lines += [neutral(context) for context in contexts if context not in passage.text]
    return "\n".join([*lines, neutral(passage.text), "</passage>"])


def _about(passage: Passage) -> list[str]:
    lines = []
    if passage.title:
        lines.append(f"title: {_one_line(passage.title)}")
    if passage.heading_path:
        lines.append(f"section: {_one_line(' > '.join(passage.heading_path))}")
    if passage.page_start is not None:
        last = passage.page_end if passage.page_end is not None else passage.page_start
        lines.append(
            f"page: {passage.page_start}" if last == passage.page_start else f"pages: {passage.page_start}-{last}"
        )
    if passage.updated_at is not None:
        lines.append(f"updated: {passage.updated_at:%Y-%m-%d}")
    if not passage.n:
        lines.append("note: a summary made for overview; it cannot be cited")
    return lines


def _one_line(text: str) -> str:
    return neutral(" ".join(text.split()))
