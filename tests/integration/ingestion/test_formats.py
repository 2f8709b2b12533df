"""Every format from its bytes to ready: text, headings, tables, pages, warnings and members."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.ingestion import made_files
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
CASES = Path(__file__).parents[2] / "cases" / "inputs"

FORMATS = [
    ("leave.md", made_files.MARKDOWN.encode(), "text/markdown", "thirty days", "Carrying over", "seven"),
    ("office.html", made_files.HTML.encode(), "text/html", "opens at eight", "Rooms", "twelve"),
    ("travel.docx", made_files.docx(), None, "finance director", "Rates", "one hundred forty"),
    ("prices.xlsx", made_files.xlsx(), None, "LAP-116", "Laptops", "1590"),
    ("days.csv", made_files.CSV.encode(), "text/csv", "Midsummer Eve", None, "SE"),
    ("welcome.pptx", made_files.pptx(), None, "Ship the kite", "Goals", None),
]


@pytest.mark.parametrize(
    ("name", "data", "media_type", "text", "heading", "cell"), FORMATS, ids=[f[0] for f in FORMATS]
)
async def test_a_file_becomes_ready_with_its_text_headings_and_tables(
    world: World, name: str, data: bytes, media_type: str | None, text: str, heading: str | None, cell: str | None
) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, name, data)
    assert (document.state, document.stage, document.error, document.searchable) == ("ready", "ready", None, True)
    assert media_type is None or document.media_type == media_type
    stored = await world.text(document)
    assert text in stored
    assert "NAVHOME" not in stored
    chunks = await world.chunks(document.id, 1)
    assert chunks
    assert all(chunk["text"] == stored[chunk["start"] : chunk["end"]] for chunk in chunks if chunk["start"] is not None)
    if heading is not None:
        assert any(heading in chunk["heading_path"] or heading in chunk["text"] for chunk in chunks)
    if cell is not None:
        assert any(chunk["kind"] == "table" and cell in chunk["text"] for chunk in chunks)
    both = {chunk["chunk_id"] for chunk in chunks}
    assert await world.points(document.id) == (both, both)
    assert any(text in hit for hit in await world.found(world.root, text))


async def test_pages_of_a_pdf_are_known_to_its_chunks_and_pages_without_text_are_named(world: World) -> None:
    space = await world.space(world.root)
    data = made_files.pdf(["Passwords have fourteen characters."], [], ["Visitors wear a yellow badge."])
    document = await world.ingest(world.root, space, "security.pdf", data)
    assert document.state == "ready"
    assert document.coverage is not None
    assert (document.coverage.pages, document.coverage.pages_without_text) == (3, [2])
    assert [warning.page for warning in document.warnings] == [2]
    hits = (await world.search(world.root, "yellow badge of visitors", limit=1)).hits
    assert hits[0].page_end == 3


async def test_slides_are_pages_and_notes_can_be_found(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "welcome.pptx", made_files.pptx())
    stored = await world.text(document)
    assert "Badge at the front desk" in stored
    assert "Say hello on Goals" in stored
    assert {chunk["page_start"] for chunk in await world.chunks(document.id, 1)} >= {1}


async def test_each_sheet_has_a_summary_that_is_found_and_has_no_place_in_the_text(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "prices.xlsx", made_files.xlsx())
    summaries = [chunk for chunk in await world.chunks(document.id, 1) if chunk["kind"] == "summary"]
    assert summaries
    assert {(chunk["start"], chunk["end"]) for chunk in summaries} == {(None, None)}
    rows = [chunk for chunk in await world.chunks(document.id, 1) if chunk["kind"] == "table"]
    assert any("Article" in (chunk["context"] or chunk["text"]) for chunk in rows)


async def test_an_attachment_is_a_document_below_its_mail(world: World) -> None:
    space = await world.space(world.root)
    mail = await world.ingest(world.root, space, "move.eml", made_files.eml(), readers=["space"], tags=["move"])
    assert mail.state == "ready"
    assert "We move to Utrecht" in await world.text(mail)
    (child,) = await world.children(mail.id)
    attachment = await world.document(world.root, child)
    assert (attachment.external_id, attachment.parent_id) == ("move.eml/days.csv", mail.id)
    assert (attachment.state, attachment.readers, attachment.tags) == ("ready", ["space"], ["move"])
    (summary,) = [chunk for chunk in await world.chunks(mail.id, 1) if chunk["kind"] == "summary"]
    assert "days.csv" in summary["text"]
    assert any("Midsummer Eve" in text for text in await world.found(world.root, "Midsummer Eve"))


async def test_archives_inside_archives_become_documents_level_by_level(world: World) -> None:
    space = await world.space(world.root)
    inner = made_files.archive({"deep/note.md": b"# Note\n\nThe vault code is kept by Karin."})
    outer = made_files.archive({"inner.zip": inner, "readme.txt": b"Everything about kites."})
    pack = await world.ingest(world.root, space, "pack.zip", outer)
    assert pack.state == "ready"
    (summary,) = await world.chunks(pack.id, 1)
    assert summary["kind"] == "summary"
    assert "inner.zip" in summary["text"]
    assert "readme.txt" in summary["text"]
    below = {(await world.document(world.root, each)).external_id: each for each in await world.children(pack.id)}
    assert below.keys() == {"pack.zip/inner.zip", "pack.zip/readme.txt"}
    (note,) = await world.children(below["pack.zip/inner.zip"])
    view = await world.document(world.root, note)
    assert (view.external_id, view.state) == ("pack.zip/inner.zip/deep/note.md", "ready")
    hit = (await world.search(world.root, "who keeps the vault code", limit=1)).hits[0]
    assert hit.document_id == note


async def test_members_that_a_new_archive_no_longer_has_go_and_the_others_stay(world: World) -> None:
    space = await world.space(world.root)
    first = made_files.archive({"a.txt": b"Alpha is about anchors.", "b.txt": b"Beta is about bridges."})
    pack = await world.ingest(world.root, space, "pack.zip", first)
    kept = {(await world.document(world.root, each)).external_id: each for each in await world.children(pack.id)}
    second = made_files.archive({"b.txt": b"Beta is about bridges.", "c.txt": b"Gamma is about gates."})
    await world.ingest(world.root, space, "pack.zip", second)
    names = {(await world.document(world.root, each)).external_id: each for each in await world.children(pack.id)}
    assert names.keys() == {"pack.zip/b.txt", "pack.zip/c.txt"}
    assert names["pack.zip/b.txt"] == kept["pack.zip/b.txt"]
    assert (await world.document(world.root, names["pack.zip/b.txt"])).version == 1
    assert (await world.row(kept["pack.zip/a.txt"]))["removed_at"] is not None
    assert await world.points(kept["pack.zip/a.txt"]) == (set(), set())
    (summary,) = await world.chunks(pack.id, 2)
    assert "a.txt" not in summary["text"]


async def test_names_of_any_writing_stay_as_they_were_given(world: World) -> None:
    space = await world.space(world.root)
    name = "报销/规定 €5 — “final”.md"
    document = await world.ingest(world.root, space, name, "# 报销\n\n费用发生后四十五天内提交。")
    assert (document.external_id, document.state) == (name, "ready")
    assert all(name not in key for key in await world.blob_keys())


async def test_controls_and_nul_leave_no_trace_and_offsets_still_fit(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "nul.txt", (CASES / "enc_nul_in_text.txt").read_bytes())
    stored = await world.text(document)
    assert "\x00" not in stored
    for chunk in await world.chunks(document.id, 1):
        assert chunk["text"] == stored[chunk["start"] : chunk["end"]]
