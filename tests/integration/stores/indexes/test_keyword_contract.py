"""What every keyword index does beyond the common contract."""

from __future__ import annotations

import pytest

from schemas.index_records import KeywordQuery
from services.stores.keyword_index import KeywordIndex
from tests.integration.stores.indexes.chunks import chunk, chunk_id, scope, words


async def found(index: KeywordIndex, query: KeywordQuery, limit: int = 10) -> list[str]:
    return [hit.id for hit in await index.search(query, scope(), limit)]


async def test_chunks_without_any_of_the_words_are_not_found_at_all(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert([chunk(str(number), body_tokens="annual leave policy") for number in range(3)])
    assert await found(keyword_index, words("休暇 日数")) == []
    assert await found(keyword_index, words("")) == []


async def test_more_and_rarer_words_rank_higher_and_scores_fall(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert(
        [
            chunk("both", body_tokens="annual leave carry over"),
            chunk("rare", body_tokens="carry the parcel home"),
            *(chunk(f"common {number}", body_tokens="annual report of sales") for number in range(5)),
        ]
    )
    hits = await keyword_index.search(words("annual carry"), scope(), 10)
    assert [hit.id for hit in hits[:2]] == [chunk_id("both"), chunk_id("rare")]
    assert len(hits) == 7
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[-1].score > 0


async def test_a_title_counts_by_its_weight(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert(
        [
            chunk("title", title_tokens="refunds", body_tokens="money comes back within days"),
            chunk("body", title_tokens="shipping", body_tokens="refunds are handled elsewhere today"),
        ]
    )
    assert await found(keyword_index, words("refunds", title_weight=0.0)) == [chunk_id("body")]
    assert await found(keyword_index, words("refunds", title_weight=0.3)) == [chunk_id("body"), chunk_id("title")]
    assert await found(keyword_index, words("refunds", title_weight=3.0)) == [chunk_id("title"), chunk_id("body")]


async def test_a_query_equal_to_a_title_finds_it_whatever_the_body_says(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert([chunk("1", title_tokens="quarterly capacity plan", body_tokens="see the table below")])
    assert await found(keyword_index, words("quarterly capacity plan")) == [chunk_id("1")]


async def test_an_exact_identifier_comes_first_and_others_keep_half_of_the_scale(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert(
        [
            chunk("exact", body_tokens="ppr-9087 closed " + "filler " * 200, exact_tokens="ppr-9087"),
            chunk("near", body_tokens="pump report pump report", exact_tokens="ppr-9088"),
            chunk("far", body_tokens="report of many other things entirely"),
        ]
    )
    hits = await keyword_index.search(words("pump report ppr-9087", "ppr-9087"), scope(), 10)
    assert [hit.id for hit in hits] == [chunk_id(name) for name in ("exact", "near", "far")]
    assert hits[1].score / hits[0].score > 0.3
    assert hits[0].score < 100


async def test_an_exact_identifier_is_not_missed_when_many_chunks_match_better(keyword_index: KeywordIndex) -> None:
    crowd = [chunk(f"crowd {number}", body_tokens="pump report") for number in range(60)]
    await keyword_index.upsert([*crowd, chunk("exact", body_tokens="filler " * 300, exact_tokens="ppr-9087")])
    assert (await found(keyword_index, words("pump report", "ppr-9087"), limit=5))[0] == chunk_id("exact")


ODD = [
    "C++", "a:b", '"', "foo AND", "*", "(", "body:word", "NOT absent", "word~2", "wor?", "[a TO z]", '{"match_all":{}}', "\\",
    "/.*/", '"' * 10_000, "word\x00word", "\ud800", "a\u3000b", "é" * 300, "𝄞" * 300, "-word", "+", "word^9",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
async def test_odd_query_text_is_data_and_finds_only_itself(keyword_index: KeywordIndex, text: str) -> None:
    await keyword_index.upsert([chunk("plain", body_tokens="word"), chunk("odd", body_tokens=text, title_tokens=text)])
    same = KeywordQuery(tokens=[text], exact=[text])
    hits = await found(keyword_index, same)
    assert chunk_id("plain") not in hits
    assert hits == ([chunk_id("odd")] if text != "\ud800" else [])


async def test_a_query_of_ten_thousand_words_is_bounded_and_answered(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert([chunk("1", body_tokens="w3 w4")])
    many = [f"w{number}" for number in range(10_000)]
    assert await found(keyword_index, KeywordQuery(tokens=many, exact=many)) == [chunk_id("1")]


async def test_scores_of_common_words_stay_above_nothing(keyword_index: KeywordIndex) -> None:
    """A word that every chunk holds still ranks: a hit is dropped for having no word, not for a common one."""
    await keyword_index.upsert([chunk(str(number), body_tokens="the same words") for number in range(20)])
    assert len(await found(keyword_index, words("the"), limit=50)) == 20


async def test_changed_readers_keep_words_titles_and_identifiers(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert([chunk("1", title_tokens="alpha", body_tokens="beta", exact_tokens="x-1 y-2")])
    await keyword_index.set_readers("a", "d", ["user:u"], 2)
    mine = scope(readers=["user:u"])
    for query in (words("alpha"), words("beta"), words("", "x-1"), words("", "y-2")):
        assert [hit.id for hit in await keyword_index.search(query, mine, 10)] == [chunk_id("1")]


async def test_terms_are_counted_over_the_chunks_of_the_asked_spaces_alone(keyword_index: KeywordIndex) -> None:
    await keyword_index.upsert(
        [
            chunk("1", body_tokens="leave leave carry"),
            chunk("2", body_tokens="leave 年假", title_tokens="carry"),
            chunk("3", body_tokens="leave", space="t"),
            chunk("4", body_tokens="leave", tenant="b"),
        ]
    )
    terms = ["leave", "carry", "年假", "none", "leave", "", "\ud800", "a:b"]
    assert await keyword_index.term_counts("a", ["s"], terms) == {
        "leave": 2,
        "carry": 1,
        "年假": 1,
        "none": 0,
        "a:b": 0,
    }
    assert await keyword_index.term_counts("a", ["s", "t"], ["leave"]) == {"leave": 3}
    assert await keyword_index.term_counts("a", [], ["leave"]) == {}
    assert await keyword_index.term_counts("a", ["s"], []) == {}
    await keyword_index.delete_document("a", "d")
    assert await keyword_index.term_counts("a", ["s"], ["leave"]) == {"leave": 0}
    many = [f"w{number}" for number in range(1_000)]
    assert len(await keyword_index.term_counts("a", ["s"], many)) == 400
