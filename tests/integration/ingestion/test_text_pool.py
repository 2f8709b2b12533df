"""Cutting and analysing happen in a child of their own, with the same results and with bounds."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from schemas.errors import PermanentFailure, TransientFailure
from schemas.parsed_documents import Block, CanonicalDocument, ParsedDocument
from schemas.settings import ChunkingSettings, ParsingSettings
from services.documents.canonical_text import canonicalise
from services.documents.chunk_identity import identify
from services.documents.chunking import chunk_document
from services.gateways.local_tokens import LocalTokens
from services.ingestion.text_pool import ChunkWords, TextPool
from services.retrieval.index_tokens import chunk_tokens
from tests.world.fixtures import Children

pytestmark = pytest.mark.asyncio(loop_scope="session")
SENTENCES = "Pumps of type PPR-9087 are inspected every 14 days. 出差须提前三天申请。 "


def _document(paragraphs: int) -> CanonicalDocument:
    blocks = [Block(kind="heading", level=1, text="Maintenance")]
    blocks += [Block(kind="paragraph", text=f"{number}. {SENTENCES * 6}") for number in range(paragraphs)]
    return canonicalise(ParsedDocument(media_type="text/markdown", parser="test", blocks=blocks))


def _stored(folder: Path, document: CanonicalDocument) -> Path:
    path = folder / "canonical.json"
    path.write_text(document.model_dump_json(), encoding="utf-8")
    return path


@asynccontextmanager
async def _running(limits: ParsingSettings) -> AsyncIterator[TextPool]:
    pool = TextPool(limits, ChunkingSettings())
    await pool.start()
    try:
        yield pool
    finally:
        await pool.stop()


async def test_a_document_is_cut_as_it_would_be_here(children: Children, tmp_path: Path) -> None:
    document = _document(8)
    cut = await children.texts.cut(_stored(tmp_path, document), "d1", "pumps.md", ["a.txt"])
    assert cut == identify("d1", chunk_document(document, "pumps.md", LocalTokens(), ChunkingSettings(), ["a.txt"]))
    assert len(cut) > 3


async def test_chunks_are_analysed_in_their_order_as_they_would_be_here(children: Children) -> None:
    chunks = [ChunkWords("Pumps", ["Maintenance"], "", SENTENCES), ChunkWords("", [], "Pump | Days", "12306 | 14")]
    assert await children.texts.words("pumps.md", chunks) == [chunk_tokens(*chunk) for chunk in chunks]


async def test_no_chunks_have_no_words(children: Children) -> None:
    assert await children.texts.words("empty.md", []) == []


async def test_cutting_that_takes_too_long_ends_at_the_bound_and_names_it(tmp_path: Path) -> None:
    async with _running(ParsingSettings(cpu_s=1)) as pool:
        with pytest.raises(PermanentFailure) as failure:
            await pool.cut(_stored(tmp_path, _document(40_000)), "d1", "long.md")
        assert failure.value.code == "timeout"
        assert "PERDURE_PARSING__CPU_S" in failure.value.detail
        assert await pool.cut(_stored(tmp_path, _document(1)), "d1", "short.md")


async def test_a_child_killed_from_outside_is_no_fault_of_the_document(tmp_path: Path) -> None:
    async with _running(ParsingSettings()) as pool:
        work = asyncio.create_task(pool.cut(_stored(tmp_path, _document(20_000)), "d1", "long.md"))
        while not pool.busy_pids:
            await asyncio.sleep(0.01)
        os.kill(pool.busy_pids[0], signal.SIGKILL)
        with pytest.raises(TransientFailure):
            await work


async def test_the_child_steps_back_for_searches_and_knows_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_DATABASE_URL", "postgresql://secret")
    async with _running(ParsingSettings(niceness=7)) as pool:
        (pid,) = pool.child_pids
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 7
        assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()
