"""Looks into both embedded indexes of a Perdure that does not run."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.stores.keyword_index import KeywordIndex
from services.stores.qdrant_edge_vectors import QdrantEdgeVectors
from services.stores.tantivy_keywords import TantivyKeywords
from services.stores.vector_index import VectorIndex


@dataclass(frozen=True)
class IndexContents:
    """Chunk ids by document, sorted; an id that stands in an index twice is here twice."""

    vectors: dict[str, list[str]]
    keywords: dict[str, list[str]]

    def assert_holds_once(self, document_id: str, chunk_ids: Sequence[str], told: str = "") -> None:
        wanted = sorted(chunk_ids)
        assert self.vectors.get(document_id, []) == wanted, f"vectors {told}"
        assert self.keywords.get(document_id, []) == wanted, f"keywords {told}"


def read_indexes(data_dir: Path) -> IndexContents:
    """Reads copies, so that opening them changes nothing the next start will find."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("qdrant", "tantivy"):
            shutil.copytree(data_dir / part, Path(folder) / part)
        return asyncio.run(_read(Path(folder)))


async def _read(folder: Path) -> IndexContents:
    vectors, keywords = QdrantEdgeVectors(folder / "qdrant"), TantivyKeywords(folder / "tantivy")
    await vectors.open()
    await keywords.open()
    try:
        return IndexContents(await _contents(vectors), await _contents(keywords))
    finally:
        await keywords.close()
        await vectors.close()


async def _contents(index: VectorIndex | KeywordIndex) -> dict[str, list[str]]:
    found, after = {}, None
    while True:
        page = await index.list_documents(after)
        for document in page.documents:
            state = await index.document_state(document.tenant, document.document)
            found[document.document] = list(state.ids)
        after = page.after
        if after is None:
            return found
