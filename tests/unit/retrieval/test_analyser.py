"""The keyword analyser, by a table of texts that other engines' contract tests can use as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieval import tokenising
from services.retrieval.analyser import analyse, analyse_query, content_terms, identifiers, terms
from services.retrieval.text_folding import fold

TABLE: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "analyser_table.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", TABLE["tokens"], ids=lambda row: row["proves"])
def test_text_gives_exactly_these_tokens(row: dict[str, Any]) -> None:
    assert analyse(row["text"]) == row["tokens"]


@pytest.mark.parametrize("row", TABLE["found"], ids=lambda row: row["query"])
def test_query_and_text_share_a_token(row: dict[str, str]) -> None:
    assert set(analyse_query(row["query"]).tokens) & set(analyse(row["text"]))


@pytest.mark.parametrize("row", TABLE["not_found"], ids=lambda row: row["query"])
def test_unrelated_texts_share_no_token(row: dict[str, str]) -> None:
    assert not set(analyse_query(row["query"]).tokens) & set(analyse(row["text"]))


@pytest.mark.parametrize("row", TABLE["queries"], ids=lambda row: row["query"])
def test_query_gives_exactly_these_tokens_and_identifiers(row: dict[str, Any]) -> None:
    analysed = analyse_query(row["query"])
    assert (analysed.tokens, analysed.exact) == (row["tokens"], row["exact"])
    assert analysed.empty is (not row["tokens"])


def test_every_part_of_a_chinese_phrase_is_found_on_both_sides() -> None:
    text = set(analyse("报销流程需要部门经理审批"))
    assert all(set(analyse_query(phrase).tokens) <= text for phrase in ("报销", "报销流程", "部门经理审批"))


def test_the_wording_of_the_other_region_is_offered_as_a_variant() -> None:
    variants = analyse_query("数据库备份").variants
    assert set(variants) <= set(analyse("資料庫備份"))
    assert variants


def test_identifiers_for_the_index_are_those_a_query_would_ask_for() -> None:
    text = "Order PPR-9087 with C++ 17 or v2.3.1, see 12306 and 1,234 in well-known places"
    assert identifiers(text) == ["ppr-9087", "c++", "v2.3.1", "12306"]
    assert analyse_query("PPR‑9087").exact == ["ppr-9087"]


def test_content_terms_leave_out_question_words_in_both_languages() -> None:
    assert content_terms("How long is the trial period?") == ["trial", "period"]
    assert content_terms("请问试用期是多久？") == ["试用", "用期"]
    assert content_terms("我们现在的目的是什么") == ["现在", "目的"]


@pytest.mark.parametrize("query", ["C++", "a:b", '"', "foo AND", "*", "(", '"' * 10_000, "\x00" * 50, "\ud83d" * 50])
def test_query_syntax_of_engines_is_plain_data(query: str) -> None:
    for token in analyse_query(query).tokens:
        assert not any(char.isspace() or char in '"():*\x00' for char in token)


@given(st.text(max_size=200))
def test_any_text_gives_encodable_tokens_without_white_space(text: str) -> None:
    for token in (*analyse(text), *analyse_query(text).tokens, *analyse_query(text).variants):
        assert token.split() == [token]
        token.encode("utf-8")


@given(st.text(max_size=200))
def test_statistics_terms_are_index_tokens(text: str) -> None:
    assert set(terms(text)) <= set(analyse(text))
    assert set(content_terms(text)) <= set(terms(text)) | set(analyse(text))


@given(st.text(max_size=200))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet="aB1-_.',+# \n9,0$\"(", max_size=80))
def test_the_quick_path_for_ascii_cuts_like_the_general_one(text: str) -> None:
    folded = fold(text)
    assert tokenising.runs(folded) == tokenising.runs(folded + " é")[:-1]


def test_query_and_index_tokens_of_one_word_agree_in_any_width_case_and_composition() -> None:
    forms = ["Résumé-42", "re\u0301sume\u0301-42", "ＲÉＳＵＭÉ－４２", "RÉSUMÉ\u201142"]
    assert len({tuple(analyse(form)) for form in forms}) == 1
