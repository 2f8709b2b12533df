"""A process to kill: writes documents to an embedded index for ever and prints each one that was acknowledged.

Usage: python -m tests.integration.stores.indexes.writing_child ADAPTER DIRECTORY
Of three documents the first is left as written, the second gets other readers, the third is removed again.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from services.stores.qdrant_edge_vectors import QdrantEdgeVectors
from services.stores.tantivy_keywords import TantivyKeywords
from tests.integration.stores.indexes.chunks import chunk

CHUNKS = 3


def embedded(adapter: str, directory: Path) -> QdrantEdgeVectors | TantivyKeywords:
    return QdrantEdgeVectors(directory) if adapter == "qdrant_edge" else TantivyKeywords(directory)


async def write_for_ever(adapter: str, directory: Path) -> None:
    index = embedded(adapter, directory)
    await index.open()
    for number in itertools.count():
        document = f"d{number}"
        await index.upsert([chunk(f"{document} {part}", document=document) for part in range(CHUNKS)])
        if number % 3 == 1:
            await index.set_readers("a", document, ["user:u"], 2)
        if number % 3 == 2:
            await index.delete_document("a", document)
        print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(write_for_ever(sys.argv[1], Path(sys.argv[2])))
