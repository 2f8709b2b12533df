"""Files that cannot be read end failed(code), and nothing of them stands in an index."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import PermanentFailure
from schemas.settings import ParsingSettings, Settings
from services.documents.parser_pool import ParserPool
from services.ingestion.parse_stage import ParseStage
from tests.integration.ingestion import made_files
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
CASES = Path(__file__).parents[2] / "cases" / "inputs"

UNREADABLE = [
    ("zero.txt", b"", "empty"),
    ("nothing.zip", made_files.archive({}), "empty"),
    ("locked.pdf", made_files.pdf(["Secret plans."], password="open sesame"), "encrypted"),
    ("locked.docx", (CASES / "ole_magic.docx").read_bytes(), "encrypted"),
    ("cut.docx", made_files.docx()[:900], "corrupt"),
    ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<< /Type", "corrupt"),
    ("program.bin", b"\x7fELF\x02\x01\x01" + bytes(2_000), "unsupported"),
    ("blank.txt", (CASES / "ws_only.txt").read_bytes(), "no_text"),
    ("outline.pdf", (CASES / "p_vector_outline.pdf").read_bytes(), "no_text"),
    ("bomb.zip", made_files.archive({"zeros.txt": bytes(60_000_000)}), "too_large"),
    ("many.zip", made_files.archive({f"{n}.txt": b"x" for n in range(1_001)}), "too_many"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "code"), UNREADABLE, ids=[case[0] for case in UNREADABLE])
async def test_what_cannot_be_read_fails_with_its_code_and_leaves_no_chunk(
    world: World, name: str, data: bytes, code: str
) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, name, data)
    assert document.error is not None
    assert (document.state, document.error.code, document.searchable) == ("failed", code, False)
    assert document.error.stage in ("parsing", "chunking")
    assert await world.points(document.id) == (set(), set())
    assert (await world.count("version_chunks"), await world.count("chunks")) == (0, 0)
    run = (await world.runs(document.id))[0]
    assert (run["state"], run["error"]["code"]) == ("failed", code)
    assert [event.type for event in await world.events(run["id"])][-1] == "run.failed"


async def test_archives_nested_too_deep_end_at_the_bound_and_say_which(world: World) -> None:
    space = await world.space(world.root)
    top = await world.ingest(world.root, space, "deep.zip", (CASES / "z_nested40.zip").read_bytes())
    assert top.state == "ready"
    ended, level = [], [top.id]
    while level:
        level = [child for each in level for child in await world.children(each)]
        ended += [await world.document(world.root, each) for each in level]
    assert [document.state for document in ended] == ["ready", "ready", "failed"]
    assert ended[-1].error is not None
    assert ended[-1].error.code == "too_deep"
    assert "PERDURE_PARSING__ARCHIVE_DEPTH" in ended[-1].error.detail


async def test_a_file_over_a_bound_of_the_parser_names_the_bound(world: World) -> None:
    pool = ParserPool(ParsingSettings(workers=1, text_chars=1_000))
    await pool.start()
    try:
        world.work.parse = ParseStage(world.database, world.blobs, pool, world.members.receive)
        space = await world.space(world.root)
        document = await world.ingest(world.root, space, "long.txt", "many words " * 200)
    finally:
        await pool.stop()
    assert document.error is not None
    assert document.error.code == "too_large"
    assert "PERDURE_PARSING__TEXT_CHARS" in document.error.detail


async def test_bytes_that_are_gone_are_a_failure_and_no_error_in_the_text(world: World) -> None:
    space = await world.space(world.root)
    receipt = await world.upload(world.root, space, "a.md", "Some text.")
    for key in await world.blob_keys():
        await world.blobs.delete(key)
    with pytest.raises(PermanentFailure) as failure:
        await world.work.parse.run(await world.claimed(receipt))
    assert failure.value.code == "corrupt"


async def test_a_failed_document_is_ready_after_a_retry_once_its_cause_is_gone(world: World) -> None:
    space = await world.space(world.root)
    strict = ParserPool(ParsingSettings(workers=1, text_chars=1_000))
    patient = world.work.parse
    await strict.start()
    try:
        world.work.parse = ParseStage(world.database, world.blobs, strict, world.members.receive)
        document = await world.ingest(world.root, space, "long.txt", "Karin keeps the vault code. " * 200)
    finally:
        await strict.stop()
    assert document.state == "failed"
    world.work.parse = patient
    await world.reception.retry(world.root.actor, document.id)
    await world.work.everything(world.root.actor.tenant)
    document = await world.document(world.root, document.id)
    assert (document.state, document.error, document.version) == ("ready", None, 1)
    assert [run["state"] for run in await world.runs(document.id)] == ["failed", "succeeded"]


async def test_a_member_that_cannot_be_read_fails_alone(world: World) -> None:
    space = await world.space(world.root)
    files = {"good.txt": b"Readable words about kites.", "bad.pdf": b"%PDF-1.7\nbroken"}
    pack = await world.ingest(world.root, space, "pack.zip", made_files.archive(files))
    assert pack.state == "ready"
    states = {}
    for child in await world.children(pack.id):
        view = await world.document(world.root, child)
        states[view.external_id] = view.state
    assert states == {"pack.zip/good.txt": "ready", "pack.zip/bad.pdf": "failed"}


async def test_nothing_is_fetched_while_a_page_with_images_is_read(world: World) -> None:
    """B79: the parser has no network, and the text is there."""
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "page.md", (CASES / "ssrf_image.md").read_bytes())
    assert document.state == "ready"
    assert Settings().fetch.allow_private is False
