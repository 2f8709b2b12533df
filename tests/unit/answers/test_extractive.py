from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.answers.extractive import QUOTING_NOTICE, compose, quoted_citations, render
from services.retrieval.citations import check_citations, read_citations
from tests.unit.answers.passage_builders import passage

TABLE = """## Annual leave

| Country | Paid days a year | Carried |
| --- | --- | --- |
| Sweden | 30 | at most 5 days |
| Netherlands | 27 | at most 7 days |
| China | 12 | none |"""
DESK = "The help desk is open from 07:30 to 17:00. Outside these hours write a ticket. Tickets are read every hour."
STEPS = "## Claiming the money\n\n1. Fill in form KTW-2108.\n2. Hand it in within 30 days.\n3. Your lead approves it."
CHINESE = "报销步骤如下。费用发生后45天内提交报销单。财务部于每月25日统一付款。"


def test_the_best_sentence_is_quoted_word_for_word_with_its_number() -> None:
    passages = [passage(1, STEPS), passage(2, DESK)]
    best = compose("When is the help desk open?", passages)[0]
    assert (best.n, best.text) == (2, "The help desk is open from 07:30 to 17:00.")
    assert DESK[best.start : best.end] == best.text


def test_a_table_row_comes_with_its_header() -> None:
    best = compose("How many paid days of annual leave in the Netherlands?", [passage(1, TABLE)])[0]
    assert best.text == "| Netherlands | 27 | at most 7 days |"
    assert best.header == "| Country | Paid days a year | Carried |"
    assert TABLE[best.start : best.end] == best.text


def test_a_later_piece_of_a_long_table_takes_the_header_from_its_context() -> None:
    rows = "| Lamp | LMP-0001 | 20 |\n| Chair | CHR-0002 | 90 |"
    context = "| Item | Number | Price |\n| --- | --- | --- |"
    best = compose("What is the price of a chair?", [passage(1, rows, part={"context": context, "kind": "table"})])[0]
    assert (best.header, best.text) == ("| Item | Number | Price |", "| Chair | CHR-0002 | 90 |")


def test_list_items_under_a_heading_that_names_the_subject_are_quoted_in_order() -> None:
    quoted = compose("How is claiming money done?", [passage(1, STEPS)])
    assert [sentence.text for sentence in quoted] == STEPS.split("\n\n")[1].split("\n")


def test_headings_are_not_quoted_alone() -> None:
    assert all(not one.text.startswith("#") for one in compose("Claiming the money", [passage(1, STEPS)]))
    only = compose("Claiming the money", [passage(1, "## Claiming the money")])
    assert [one.text for one in only] == ["## Claiming the money"]


def test_the_notice_follows_the_language_of_the_question() -> None:
    quoted = compose("报销单要在几天内提交？", [passage(1, CHINESE)])
    text = render("报销单要在几天内提交？", quoted)
    assert text.startswith(QUOTING_NOTICE["zh"])
    assert "费用发生后45天内提交报销单。 [1]" in text
    assert render("When?", quoted).startswith(QUOTING_NOTICE["en"])


def test_the_same_sentence_in_two_passages_is_quoted_once() -> None:
    quoted = compose("When is the help desk open?", [passage(1, DESK), passage(2, DESK)])
    assert [sentence.text for sentence in quoted].count("The help desk is open from 07:30 to 17:00.") == 1


def test_vectors_of_sentences_can_decide_where_words_do_not() -> None:
    units = "Frogs sing at dusk. Toads are silent."
    start = units.index("Toads")
    best = compose("Krötenstimmen", [passage(1, units)], sentence_scores={(1, start, len(units)): 0.8})[0]
    assert best.text == "Toads are silent."
    assert compose("Krötenstimmen", [passage(1, units)])[0].text == "Frogs sing at dusk."


def test_nothing_citable_gives_nothing() -> None:
    assert compose("anything", []) == []
    assert compose("anything", [passage(0, "A summary.", parts=[])]) == []


def test_every_quote_of_an_extractive_answer_is_supported_and_exact() -> None:
    passages = [passage(1, TABLE), passage(2, DESK), passage(3, STEPS), passage(4, CHINESE)]
    for question in ("How many days of leave in Sweden?", "When can I write a ticket?", "付款是每月几号？"):
        quoted = compose(question, passages)
        text = render(question, quoted)
        checked = check_citations(read_citations(text, {1, 2, 3, 4}), passages, support_threshold=0.5)
        assert (checked.text, checked.unsupported) == (text, [])
        for citation in quoted_citations(quoted, passages):
            source = passages[citation.n - 1]
            assert source.text[citation.start - 100 : citation.end - 100] == citation.quote
            assert citation.quote in text


def test_a_documents_own_references_do_not_become_citations() -> None:
    quoted = compose("What do frogs do?", [passage(1, "Frogs sing at dusk [2].")])
    assert render("What do frogs do?", quoted).endswith("Frogs sing at dusk (2). [1]")
    assert quoted_citations(quoted, [passage(1, "Frogs sing at dusk [2].")])[0].quote == "Frogs sing at dusk [2]."


EXAMPLES = Path(__file__).parents[3] / "examples"
CASES = [
    (case, page)
    for case in json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))
    for page in case["documents"]
    if page.endswith(".md")
]


@pytest.mark.parametrize(("case", "page"), CASES, ids=lambda value: value["id"] if isinstance(value, dict) else "")
def test_questions_about_a_page_of_the_handbook_are_answered_by_its_sentences(case: dict, page: str) -> None:  # type: ignore[type-arg]
    text = (EXAMPLES / "handbook" / page).read_text(encoding="utf-8")
    sections = [piece for piece in text.split("\n## ") if piece]
    passages = [passage(number, "## " + section) for number, section in enumerate(sections, start=1)]
    answer = " ".join(render(case["question"], compose(case["question"], passages)).split())
    assert all(needed in answer for needed in case["must_contain"])
