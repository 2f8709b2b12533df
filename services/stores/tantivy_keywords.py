"""Keywords in Tantivy: one folder for one process, one writing thread, many readers.

Tantivy cannot change a stored chunk: new readers mean writing it again, so all fields that it was made of are stored.
A commit is synced to disk before it returns, so what was acknowledged survives kill -9.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import tantivy

from schemas.errors import EngineDown
from schemas.index_records import (
    DocumentPage,
    DocumentState,
    IndexedChunk,
    IndexFilter,
    KeywordQuery,
    ScoredChunk,
)
from services.stores import tantivy_schema
from services.stores.group_commit import GroupCommit
from services.stores.index_conditions import AnyOf, conditions, of_document
from services.stores.keyword_index import counted_terms, lift_exact

WRITER_BYTES = 50_000_000
WRITER_THREADS = 1

T = TypeVar("T")


class TantivyKeywords:
    """KeywordIndex on Tantivy. `open` raises EngineDown when another process holds the folder."""

    def __init__(self, directory: Path, *, gather_s: float = 0.01) -> None:
        self._directory = directory / tantivy_schema.VERSION
        self._gather_s = gather_s
        self._index: tantivy.Index | None = None
        self._writer: tantivy.IndexWriter | None = None
        self._commits: GroupCommit | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._walked: list[str] = []

    async def open(self) -> None:
        self._readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="keywords")
        await self._read(self._open)
        self._commits = GroupCommit(self, gather_s=self._gather_s)
        self._commits.start()

    async def close(self) -> None:
        if self._readers is None:
            return
        commits, self._commits = self._commits, None  # from here on a write is told that the index is closed
        if commits is not None:
            await self._read(commits.stop)
        if self._writer is not None:
            await self._read(self._writer.wait_merging_threads)
        self._readers.shutdown()
        self._index = self._writer = self._readers = None

    async def ping(self) -> None:
        await self._read(lambda: self._searcher().num_docs)

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        if not chunks:
            return
        documents = await asyncio.to_thread(lambda: [(c.id, tantivy_schema.to_document(c)) for c in chunks])
        await self._write(lambda: self._put(documents))

    async def search(self, query: KeywordQuery, flt: IndexFilter, limit: int) -> list[ScoredChunk]:
        words = tantivy_schema.words_query(query)
        if words is None or flt.matches_nothing:
            return []
        asked = tantivy_schema.filtered(words, conditions(flt))

        def find() -> list[ScoredChunk]:
            searcher = self._searcher()
            hits = searcher.search(asked, limit=limit, count=False).hits
            ids = tantivy_schema.ids_of(searcher, [address for _, address in hits])
            return [ScoredChunk(chunk, score) for chunk, (score, _) in zip(ids, hits, strict=True)]

        return lift_exact(await self._read(find))

    async def term_counts(self, tenant: str, spaces: Sequence[str], terms: Sequence[str]) -> dict[str, int]:
        tokens = counted_terms(terms)
        if not spaces or not tokens:
            return {}
        within = tantivy_schema.matching([AnyOf("tenant", [tenant]), AnyOf("space", list(spaces))])

        def count() -> dict[str, int]:
            searcher = self._searcher()
            return {
                term: tantivy_schema.count(searcher, tantivy_schema.all_of([tantivy_schema.in_body(token), within]))
                for term, token in tokens.items()
            }

        return await self._read(count)

    async def delete_ids(self, tenant: str, ids: Sequence[str]) -> int:
        if not ids:
            return 0
        chosen = tantivy.Query.term_set_query(tantivy_schema.SCHEMA, "id", list(ids))
        return await self._delete(tantivy_schema.all_of([tantivy_schema.term("tenant", tenant), chosen]))

    async def delete_document(self, tenant: str, document: str) -> int:
        return await self._delete(tantivy_schema.matching(of_document(tenant, document)))

    async def count_document(self, tenant: str, document: str) -> int:
        return len((await self.document_state(tenant, document)).ids)

    async def document_ids(self, tenant: str, document: str) -> set[str]:
        return set((await self.document_state(tenant, document)).ids)

    async def document_state(self, tenant: str, document: str) -> DocumentState:
        def look() -> DocumentState:
            searcher = self._searcher()
            addresses = self._addresses(searcher, tenant, document)
            versions = searcher.fast_field_values("access_version", addresses)
            return DocumentState(
                ids=tuple(sorted(tantivy_schema.ids_of(searcher, addresses))),
                access_versions=tuple(sorted({int(version or 0) for version in versions})),
            )

        return await self._read(look)

    async def set_readers(self, tenant: str, document: str, readers: Sequence[str], access_version: int) -> None:
        def change(chunk: IndexedChunk) -> IndexedChunk:
            if chunk.access_version > access_version:
                return chunk
            return replace(chunk, readers=list(readers), access_version=access_version)

        await self._rewrite(tenant, document, change)

    async def set_version(self, tenant: str, document: str, media_type: str, updated_at: int) -> None:
        await self._rewrite(
            tenant, document, lambda chunk: replace(chunk, media_type=media_type, updated_at=updated_at)
        )

    async def _rewrite(self, tenant: str, document: str, change: Callable[[IndexedChunk], IndexedChunk]) -> None:
        """There is no update in place: what differs after the change is written again."""

        def rewrite() -> None:
            searcher = self._searcher()
            stored = [searcher.doc(address) for address in self._addresses(searcher, tenant, document)]
            chunks = [tantivy_schema.to_chunk(one) for one in stored]
            changed = [(chunk, change(chunk)) for chunk in chunks]
            self._put([(now.id, tantivy_schema.to_document(now)) for was, now in changed if now != was])

        await self._write(rewrite, reads=True)

    async def list_documents(self, after: str | None = None, limit: int = 1_000) -> DocumentPage:
        """The list of documents is read when a walk begins; a page is a piece of it, in order."""

        def look() -> DocumentPage:
            if after is None or not self._walked:
                everything = tantivy.Query.all_query()  # without a filter, terms of deleted chunks come too
                self._walked = sorted(key for key, _ in self._searcher().terms_with_prefix("of", "", everything))
            start = 0 if after is None else bisect.bisect_right(self._walked, after)
            keys = self._walked[start : start + limit]
            last = start + limit >= len(self._walked)
            return DocumentPage(tuple(map(tantivy_schema.document_of, keys)), None if last else keys[-1])

        return await self._read(look)

    async def clear(self) -> None:
        await self._write(lambda: self._open_writer().delete_all_documents())

    async def _delete(self, chosen: tantivy.Query) -> int:
        def remove() -> int:
            count = tantivy_schema.count(self._searcher(), chosen)
            if count:
                self._open_writer().delete_documents_by_query(chosen)
            return count

        return await self._write(remove, reads=True)

    async def _write(self, work: Callable[[], T], *, reads: bool = False) -> T:
        if self._commits is None:
            raise EngineDown("tantivy", "The embedded keyword index is not open")
        return await self._commits.write(lambda: _name_failure(work), reads=reads)

    async def _read(self, work: Callable[[], T]) -> T:
        if self._readers is None:
            raise EngineDown("tantivy", "The embedded keyword index is not open")
        return await asyncio.get_running_loop().run_in_executor(self._readers, _name_failure, work)

    # Everything below runs in a thread.

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        for other in self._directory.parent.glob("v*"):
            if other != self._directory:
                shutil.rmtree(other)
        index = tantivy.Index(tantivy_schema.SCHEMA, path=str(self._directory))
        index.config_reader("manual")
        try:
            self._writer = index.writer(WRITER_BYTES, WRITER_THREADS)
        except ValueError as error:
            if "LockBusy" not in str(error):
                raise
            raise EngineDown(
                "tantivy",
                f"The keyword index in {self._directory.parent} is held by another process: stop that one, "
                "or set PERDURE_ELASTICSEARCH_URL to share an Elasticsearch server",
            ) from error
        index.reload()
        self._index = index

    def commit(self) -> None:
        """Called by the group commit."""
        _name_failure(self._open_writer().commit)
        if self._index is not None:
            self._index.reload()

    def rollback(self) -> None:
        """Called by the group commit after a failure; the error that led here is the one worth telling."""
        with contextlib.suppress(ValueError, OSError):
            self._open_writer().rollback()

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise EngineDown("tantivy", "The embedded keyword index is not open")
        return self._writer

    def _searcher(self) -> tantivy.Searcher:
        if self._index is None:
            raise EngineDown("tantivy", "The embedded keyword index is not open")
        return self._index.searcher()

    def _put(self, documents: Sequence[tuple[str, tantivy.Document]]) -> None:
        writer = self._open_writer()
        for chunk, document in documents:
            writer.delete_documents_by_term("id", chunk)
            writer.add_document(document)

    def _addresses(self, searcher: tantivy.Searcher, tenant: str, document: str) -> list[tantivy.DocAddress]:
        chosen = tantivy_schema.term("of", tantivy_schema.key_of(tenant, document))
        count = tantivy_schema.count(searcher, chosen)
        return [address for _, address in searcher.search(chosen, limit=max(1, count), count=False).hits]


def _name_failure(work: Callable[[], T]) -> T:
    """Tantivy raises ValueError for everything that goes wrong inside it; arguments were checked before."""
    try:
        return work()
    except (ValueError, OSError) as error:
        raise EngineDown("tantivy", f"The embedded keyword index failed: {error}") from error
