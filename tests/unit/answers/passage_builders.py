"""Passages whose parts are true, in one line."""

from __future__ import annotations

from typing import Any

from schemas.passages import Passage, PassagePart


def passage(n: int, text: str, *, part: dict[str, Any] | None = None, **fields: Any) -> Passage:
    """One chunk that starts at offset 100 of document `d<n>`."""
    place = {"passage_start": 0, "passage_end": len(text), "start": 100, "end": 100 + len(text)}
    ids = {"document_id": f"d{n}", "document_version": 1, "chunk_id": f"c{n}"}
    own = PassagePart.model_validate({**place, **ids, **(part or {})})
    values = {"document_id": f"d{n}", "document_version": 1, "title": f"Page {n}", "score": 1.0, "parts": [own]}
    return Passage.model_validate({"n": n, "text": text, "hit_chunk_ids": [f"c{n}"], **values, **fields})
