"""Answers that quote: what is cited stands in the stored text; without evidence there is no answer."""

from __future__ import annotations

import pytest

from schemas.domain_events import EVENT_TYPES
from services.answers.no_evidence import NOT_IN_THE_DOCUMENTS
from tests.world.builders import TENANT, Person, World

pytestmark = pytest.mark.asyncio(loop_scope="session")
HANDBOOK = """# Travel

Trips that cost more than 2,000 euro need the written approval of the finance director, Pernilla Åberg.

## Hotels

A hotel night is paid up to 140 euro in Utrecht and up to 1,600 kronor in Umeå.

## Receipts 🧾

Receipts are handed in within 30 days. Without a receipt nothing is paid.
"""
CHINESE = "# 休假制度\n\n员工每年享有十五天带薪年假。申请年假须提前三个工作日提交。\n"


async def handbook(world: World) -> str:
    space = await world.space(world.root)
    return (await world.ingest(world.root, space, "travel.md", HANDBOOK)).id


@pytest.mark.parametrize("question", ["Who approves trips that cost more than 2,000 euro?", "Who wrote Hamlet?"])
async def test_the_conversation_is_not_kept_with_the_answer(world: World, question: str) -> None:
    """It may quote documents that are no source of this answer, and which somebody removes tomorrow."""
    await handbook(world)
    said = [{"role": "assistant", "text": "The vault code is heliotrope-77."}]
    answer = await world.ask(world.root, question, conversation=said)
    assert answer.state == "succeeded"
    assert "heliotrope-77" not in await world.everything_stored()


async def test_each_quote_is_the_stored_text_at_its_place_and_inside_its_chunk(world: World) -> None:
    document_id = await handbook(world)
    answer = await world.ask(world.root, "Who approves trips that cost more than 2,000 euro?")
    assert (answer.state, answer.answered, answer.model) == ("succeeded", True, "extractive")
    assert "Pernilla Åberg" in (answer.answer or "")
    assert answer.citations
    text = await world.text(await world.document(world.root, document_id))
    chunks = {chunk["chunk_id"]: chunk for chunk in await world.chunks(document_id, 1)}
    for citation in answer.citations:
        chunk = chunks[citation.chunk_id]
        assert (citation.document_id, citation.document_version) == (document_id, 1)
        assert citation.quote == text[citation.start : citation.end]
        assert chunk["start"] <= citation.start < citation.end <= chunk["end"]
        assert f"[{citation.n}]" in (answer.answer or "")


async def test_offsets_after_an_emoji_still_index_the_stored_text(world: World) -> None:
    document_id = await handbook(world)
    answer = await world.ask(world.root, "Within how many days are receipts handed in?")
    text = await world.text(await world.document(world.root, document_id))
    assert any("30 days" in citation.quote for citation in answer.citations)
    assert all(citation.quote == text[citation.start : citation.end] for citation in answer.citations)


async def test_a_chinese_question_is_answered_from_a_chinese_text(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "休假制度.md", CHINESE)
    answer = await world.ask(world.root, "员工每年有多少天年假？")
    assert answer.answered
    assert "十五天" in (answer.answer or "")
    text = await world.text(document)
    assert all(citation.quote == text[citation.start : citation.end] for citation in answer.citations)


@pytest.mark.parametrize(
    ("question", "language"),
    [("What is the price of the Falcon X9 drone?", "en"), ("猎鹰无人机的价格是多少？", "zh")],
)
async def test_without_evidence_the_fixed_text_is_given_without_citations_or_sources(
    world: World, question: str, language: str
) -> None:
    await handbook(world)
    answer = await world.ask(world.root, question)
    assert (answer.answered, answer.citations) == (False, [])
    assert answer.answer == NOT_IN_THE_DOCUMENTS[language]  # type: ignore[index]
    assert await world.count("sources") == 0
    (sources,) = [event.data for event in await world.events(answer.run_id) if event.type == "sources"]
    assert sources == []


async def test_an_empty_space_and_one_where_nothing_may_be_read_give_the_same_answer(world: World) -> None:
    reader = await world.person()
    empty = await world.space(world.root, viewers=[reader])
    question = "Who approves trips that cost more than 2,000 euro?"
    nothing = await world.ask(reader, question, space=empty)
    await world.ingest(world.root, empty, "travel.md", HANDBOOK, readers=[])
    hidden = await world.ask(reader, question, space=empty)
    shown = {"answer", "answered", "citations", "withheld", "stale"}
    assert hidden.model_dump(include=shown) == nothing.model_dump(include=shown)
    assert hidden.answered is False


async def test_a_summary_of_a_container_is_found_and_never_cited(world: World) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "travel.md", HANDBOOK)
    answer = await world.ask(world.root, "How much is paid for a hotel night in Utrecht?")
    chunks = {chunk["chunk_id"]: chunk["kind"] for chunk in await world.chunks(answer.citations[0].document_id, 1)}
    assert {chunks[citation.chunk_id] for citation in answer.citations} == {"text"}


async def test_the_stream_says_its_sources_before_the_first_word_and_ends_with_the_whole_text(world: World) -> None:
    document_id = await handbook(world)
    answer = await world.ask(world.root, "Who approves trips that cost more than 2,000 euro?")
    events = await world.events(answer.run_id)
    types = [event.type for event in events]
    assert types.index("retrieval.done") < types.index("sources") < types.index("token")
    assert types[-4:] == ["answer.text", "citations", "usage", "run.succeeded"]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    streamed = "".join(event.data["text"] for event in events if event.type == "token")
    assert streamed == events[types.index("answer.text")].data["text"] == answer.answer
    sources = events[types.index("sources")].data
    assert {source["document_id"] for source in sources} == {document_id}
    assert {citation.n for citation in answer.citations} <= {source["n"] for source in sources}
    assert not EVENT_TYPES & {"answer.text"}


async def test_sources_are_on_record_before_anything_is_streamed(world: World) -> None:
    document_id = await handbook(world)
    work = await world.asked(world.root, "Who approves trips that cost more than 2,000 euro?")
    await world.work.retrieving.run(work)
    assert await world.count("sources", record=work.record, document_id=document_id, version=1) == 1
    assert "token" not in [event.type for event in await world.events(work.run_id)]


async def test_a_step_that_runs_twice_gives_its_first_result_and_writes_nothing_more(world: World) -> None:
    await handbook(world)
    work = await world.asked(world.root, "Who approves trips that cost more than 2,000 euro?")
    first = [await world.work.retrieving.run(work), await world.work.generating.run(work, attempt="1")]
    events = await world.events(work.run_id)
    assert [await world.work.retrieving.run(work), await world.work.generating.run(work, attempt="2")] == first
    assert await world.events(work.run_id) == events


class TestReadAgain:
    """Stored answers obey the rights and versions of the moment they are read (invariant 9)."""

    async def answered(self, world: World) -> tuple[Person, str, str, str]:
        reader = await world.person()
        space = await world.space(world.root, viewers=[reader])
        document = await world.ingest(world.root, space, "travel.md", HANDBOOK)
        answer = await world.ask(reader, "Who approves trips that cost more than 2,000 euro?")
        assert "Pernilla" in (answer.answer or "")
        return reader, space, document.id, answer.id

    async def test_a_forbidden_source_withholds_the_answer_until_it_may_be_read_again(self, world: World) -> None:
        reader, _, document_id, answer_id = await self.answered(world)
        await world.reception.set_readers(world.root.actor, document_id, [])
        view = await world.asking.view(reader.actor, answer_id)
        assert (view.withheld, view.answer, view.citations) == (True, None, [])
        assert "Pernilla" not in view.model_dump_json()
        await world.reception.set_readers(world.root.actor, document_id, ["space"])
        view = await world.asking.view(reader.actor, answer_id)
        assert (view.withheld, view.stale) == (False, False)
        assert "Pernilla" in (view.answer or "")

    async def test_a_removed_source_withholds_the_answer_at_once_and_for_good(self, world: World) -> None:
        reader, _, document_id, answer_id = await self.answered(world)
        await world.reception.remove(world.root.actor, document_id)
        assert (await world.asking.view(reader.actor, answer_id)).withheld
        await world.work.everything(TENANT)
        view = await world.asking.view(reader.actor, answer_id)
        assert (view.withheld, view.answer, view.citations, view.state) == (True, None, [], "succeeded")

    async def test_a_grant_taken_away_withholds_the_answer(self, world: World) -> None:
        reader, space, _, answer_id = await self.answered(world)
        await world.identity.spaces.take(world.root.caller, space, f"user:{reader.id}")
        assert (await world.asking.view(reader.actor, answer_id)).withheld

    async def test_a_newer_version_of_a_source_makes_the_answer_stale(self, world: World) -> None:
        reader, space, _, answer_id = await self.answered(world)
        await world.ingest(world.root, space, "travel.md", HANDBOOK.replace("Pernilla Åberg", "Johan Berg"))
        view = await world.asking.view(reader.actor, answer_id)
        assert (view.withheld, view.stale) == (False, True)


async def test_a_question_asked_while_its_document_is_replaced_is_answered_from_one_of_the_versions(
    world: World,
) -> None:
    """B91: after retrieval and before writing, the version that was found is replaced."""
    space = await world.space(world.root)
    await world.ingest(world.root, space, "travel.md", HANDBOOK)
    work = await world.asked(world.root, "Who approves trips that cost more than 2,000 euro?")
    await world.work.retrieving.run(work)
    await world.ingest(world.root, space, "travel.md", HANDBOOK.replace("Pernilla Åberg", "Johan Berg"))
    await world.work.generating.run(work, attempt="1")
    view = await world.asking.view(world.root.actor, work.answer_id)
    assert view.answered
    assert ("Pernilla" in (view.answer or "")) != ("Johan" in (view.answer or ""))
