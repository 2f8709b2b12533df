"""The one retrieval path over both real engines: legs, limits, filters, scripts and odd input."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from schemas.errors import InvalidRequest, Unavailable
from services.stores.tables.documents import document_versions
from tests.integration.retrieval import scripts
from tests.world.builders import TENANT, World
from tests.world.work_off import STAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
ODD_QUERIES = [
    "C++", "a:b", '"', "foo AND", "*", "(", ")", "[1 TO 2]", "body:x", "-x", "+", "^2", "~", "\\", "/re/", "{}", "''",
    "OR", "NOT", "?", "🙂", "\u200b", "a\x00b", "%", "'; drop table documents; --", '"' * 8_000,
]  # fmt: skip


async def test_both_legs_are_named_and_counted(world: World) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "a.md", "# Leave\n\nEverybody has thirty days of leave.")
    result = await world.search(world.root, "days of leave", explain=True)
    assert [(leg.name, leg.hits, leg.error) for leg in result.legs] == [("vector", 1, None), ("keyword", 1, None)]
    assert result.degraded == []
    (hit,) = result.hits
    assert hit.scores is not None
    assert hit.scores.keys() == {"fused", "vector", "keyword"}
    assert hit.text == (await world.text(await world.document(world.root, hit.document_id)))[hit.start : hit.end]
    assert (await world.search(world.root, "days of leave")).hits[0].scores is None


@pytest.mark.parametrize("down", ["vector", "keyword"])
async def test_one_engine_down_is_named_and_the_other_one_answers(world: World, down: str) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "a.md", "# Leave\n\nEverybody has thirty days of leave.")
    await world.ingest(world.root, space, "b.md", "# Sickness\n\nDays of sickness are no days of leave.")
    await (world.vectors if down == "vector" else world.keywords).close()
    result = await world.search(world.root, "days of leave")
    assert len(result.hits) == 2
    assert [leg.name for leg in result.legs if leg.error] == [down]
    assert len(result.degraded) == 1
    assert result.degraded[0].startswith(f"{down}: ")


async def test_both_engines_down_is_an_error_and_not_an_empty_result(world: World) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "a.md", "# Leave\n\nEverybody has thirty days of leave.")
    await world.vectors.close()
    await world.keywords.close()
    with pytest.raises(Unavailable):
        await world.search(world.root, "days of leave")


async def test_identifiers_come_first_whatever_else_is_near(world: World) -> None:
    space = await world.space(world.root)
    for number in range(9080, 9095):
        await world.ingest(
            world.root, space, f"{number}.md", f"Spare part PPR-{number} fits the pump of the kite winch."
        )
    for query in ("PPR-9087", "ppr-9087", "which pump takes PPR-9087?"):
        assert "PPR-9087" in (await world.found(world.root, query, limit=3))[0]


async def test_the_limit_is_met_although_most_of_the_best_hits_may_not_be_read(world: World) -> None:
    """B23: the index claims that everyone may read; only ten documents may really be read, and they are far down."""
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    near = "\n\n".join(f"## Case {n}\n\nThe vault code number {n} is kept by Karin." for n in range(300))
    hidden = await world.ingest(world.root, space, "near.md", f"# Vault\n\n{near}")
    for number in range(10):
        await world.ingest(
            world.root, space, f"{number}.md", f"Code of conduct, rule {number}: be kind to team {number}."
        )
    await world.reception.set_readers(world.root.actor, hidden.id, [])  # the indexes do not know it yet
    result = await world.search(reader, "vault code kept by Karin", limit=10)
    assert len(result.hits) == 10
    assert hidden.id not in {hit.document_id for hit in result.hits}
    assert result.degraded == []


async def test_a_limit_above_what_one_recall_gives_is_met(world: World) -> None:
    space = await world.space(world.root)
    parts = "\n\n".join(f"## Machine {n}\n\nMachine {n} is serviced by team {n * 7}." for n in range(120))
    await world.ingest(world.root, space, "plan.md", f"# Service\n\n{parts}")
    hits = (await world.search(world.root, "machine serviced by team", limit=100)).hits
    assert len(hits) == len({hit.chunk_id for hit in hits}) == 100


async def test_near_duplicates_do_not_crowd_out_what_else_was_found(world: World) -> None:
    space = await world.space(world.root)
    copy = "The travel policy asks every employee to book trains before flights and to keep all receipts for finance."
    for number in range(8):
        await world.ingest(world.root, space, f"copy{number}.md", f"{copy} Thank you{'!' * number}")
    await world.ingest(world.root, space, "other.md", "Receipts for trains and flights go to Pernilla in finance.")
    texts = await world.found(world.root, "receipts for trains and flights", limit=2)
    assert len(texts) == 2
    assert any("Pernilla" in text for text in texts)
    assert len(await world.found(world.root, "receipts for trains and flights", limit=9)) == 9


async def test_filters_join_by_and_across_fields_and_by_or_inside_one(world: World) -> None:
    space = await world.space(world.root)
    ids = {}
    for name, tags in (("a.md", ["red"]), ("b.txt", ["red", "blue"]), ("c.md", ["blue"]), ("d.md", None)):
        document = await world.ingest(world.root, space, name, f"Kites fly high, says file {name}.", tags=tags)
        ids[name] = document.id

    async def names(**filters: Any) -> set[str]:
        found = {hit.document_id for hit in (await world.search(world.root, "kites fly high", **filters)).hits}
        return {name for name, document_id in ids.items() if document_id in found}

    assert await names(tags=["red"]) == {"a.md", "b.txt"}
    assert await names(tags=["red", "blue"]) == {"a.md", "b.txt", "c.md"}
    assert await names(tags=["blue"], media_types=["text/markdown"]) == {"c.md"}
    assert await names(documents=[ids["a.md"], ids["d.md"]]) == {"a.md", "d.md"}
    assert await names(documents=[]) == set()
    assert await names(sources=["upload"]) == ids.keys()
    assert await names(sources=["mail"]) == set()
    now = datetime.now(UTC)
    assert await names(updated_after=now - timedelta(minutes=10)) == ids.keys()
    assert await names(updated_after=now + timedelta(minutes=10)) == set()
    assert await names(updated_before=now - timedelta(minutes=10)) == set()


async def test_a_passage_that_a_new_version_kept_is_as_new_as_that_version(world: World) -> None:
    space = await world.space(world.root)
    kept = "# Kites\n\nKites fly high in strong wind."
    document = await world.ingest(world.root, space, "kites.md", f"{kept}\n\n# Boats\n\nBoats are blue.")
    hours_ago = datetime.now(UTC) - timedelta(hours=3)
    async with world.database.begin(world.root.actor.tenant) as transaction:
        await transaction.execute(update(document_versions).values(created_at=hours_ago))
    for index in (world.vectors, world.keywords):
        await index.set_version(world.root.actor.tenant, document.id, "text/markdown", int(hours_ago.timestamp()))
    recently = datetime.now(UTC) - timedelta(minutes=10)
    assert await world.found(world.root, "kites in strong wind", updated_after=recently) == []
    before = await world.points(document.id)
    await world.ingest(world.root, space, "kites.md", f"{kept}\n\n# Boats\n\nBoats are red.")
    assert before[0] & (await world.points(document.id))[0], "the passage about kites is the same point"
    assert any(
        "Kites fly" in text for text in await world.found(world.root, "kites in strong wind", updated_after=recently)
    )
    assert await world.found(world.root, "kites in strong wind", updated_before=recently) == []


async def test_a_passage_is_as_old_as_the_live_version_while_a_newer_one_is_on_its_way(world: World) -> None:
    space = await world.space(world.root)
    kept = "# Kites\n\nKites fly high in strong wind."
    document = await world.ingest(world.root, space, "kites.md", f"{kept}\n\n# Boats\n\nBoats are blue.")
    async with world.database.begin(TENANT) as transaction:
        hours_ago = datetime.now(UTC) - timedelta(hours=3)
        await transaction.execute(update(document_versions).values(created_at=hours_ago))
    work = await world.claimed(
        await world.upload(world.root, space, "kites.md", f"{kept}\n\n# Boats\n\nBoats are red.")
    )
    for stage in STAGES[: STAGES.index("publish")]:
        await world.work.stage(stage)(work)
    await world.work.access_refresh.rewrite(TENANT, document.id)
    recently = datetime.now(UTC) - timedelta(minutes=10)
    found = await world.found(world.root, "kites in strong wind", updated_before=recently)
    assert any("Kites fly" in text for text in found)


async def test_new_tags_are_found_by_and_old_ones_no_more(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "a.md", "Kites fly high.", tags=["draft"])
    await world.reception.set_tags(world.root.actor, document.id, ["final"])
    await world.work.everything(TENANT)
    assert len(await world.found(world.root, "kites", tags=["final"])) == 1
    assert await world.found(world.root, "kites", tags=["draft"]) == []


@pytest.mark.parametrize("query", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
async def test_what_people_type_is_data(session_world: World, query: str) -> None:
    """B22"""
    result = await session_world.search(session_world.root, query)
    assert [leg.error for leg in result.legs] == [None, None]


async def test_a_query_over_the_bound_names_it(session_world: World) -> None:
    with pytest.raises(InvalidRequest, match="PERDURE_LIMITS__QUERY_CHARS"):
        await session_world.search(session_world.root, "x" * 8_001)


@pytest.mark.parametrize(("query", "written"), scripts.CASES, ids=[query for query, _ in scripts.CASES])
async def test_words_of_any_script_width_and_form_are_found(session_world: World, query: str, written: str) -> None:
    """By the keyword leg, not by luck of the vectors alone."""
    hits = (await session_world.search(session_world.root, query, limit=3, explain=True)).hits
    wanted = unicodedata.normalize("NFC", scripts.text_of(written))
    assert any(hit.text == wanted and "keyword" in (hit.scores or {}) for hit in hits)


async def test_a_word_in_no_document_has_no_keyword_hit(session_world: World) -> None:
    """B19"""
    result = await session_world.search(session_world.root, "ストーブ")
    assert [leg.hits for leg in result.legs if leg.name == "keyword"] == [0]
