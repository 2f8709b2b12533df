from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.passages import Passage
from schemas.settings import RetrievalSettings
from services.retrieval.assemble import assemble
from services.retrieval.citation_marks import CitationStream, numbers_in, without_foreign_marks
from services.retrieval.citation_support import NOT_COMPARABLE, best_quote, support_check
from services.retrieval.citations import check_citations, read_citations, resolve_citations, supplied_numbers
from tests.unit.retrieval.chunk_builders import chunks_of, hit

FOUR = {1, 2, 3, 4}
LEAVE = "Annual leave is 30 days in Sweden. Unused days are paid with the last salary. The notice period is two months."
TRAVEL = "Hotels cost at most EUR 165 a night in the Netherlands. Claims are handed in within 30 days on form KTW-2108."


def passages() -> list[Passage]:
    leave = chunks_of(LEAVE, ["Annual leave is 30 days in Sweden. ", "Unused days are paid with the last salary. ",
                               "The notice period is two months."], "d-leave")  # fmt: skip
    travel = chunks_of(TRAVEL, [TRAVEL], "d-travel")
    settings = RetrievalSettings(near_duplicate_jaccard=1)
    return assemble([hit(leave[1], 0.9), hit(travel[0], 0.8)], leave, settings)


def test_only_supplied_numbers_in_valid_forms_stay() -> None:
    cited = read_citations("A [1]. B [7]. C [1][99] [ID:3] 【2】 [^4]", FOUR)
    assert cited.text == "A [1]. B. C [1] [2]"
    assert cited.used == [1, 2]
    assert [s.numbers for s in cited.sentences] == [[1], [], [1, 2]]


@pytest.mark.parametrize(
    ("written", "stays"),
    [
        ("Both [1, 2].", "Both [1][2]."),
        ("Both [1，7、2].", "Both [1][2]."),
        ("All [1-3].", "All [1][2][3]."),
        ("Bracketed ([2]) or （【3】）.", "Bracketed [2] or[3]."),
        ("Only unknown ([9]).", "Only unknown."),
        ("【2†handbook.pdf】 says so", "[2] says so"),
        ("[9] At the start", "At the start"),
        ("- [9] In a list\n  [8] and below", "- In a list\nand below"),
        ("Named [source 2], [doc: 3], [文档1], [passage-4] end", "Named,,, end"),
        ("Code `a[7]` and\n```\nb[8]\n```\nthen [2] c [8]", "Code `a[7]` and\n```\nb[8]\n```\nthen [2] c"),
        ("Prose in [brackets], [x], [ ] and [a link](http://x.example/[1)", None),
        ("Unclosed [1", "Unclosed [1"),
        ("试用期为六个月【1】。转正须审批【9】。", "试用期为六个月[1]。转正须审批。"),
    ],
)
def test_forms_of_marks(written: str, stays: str | None) -> None:
    assert read_citations(written, FOUR).text == (written if stays is None else stays.replace(" or[", " or ["))


def test_what_looks_like_a_mark_inside_code_or_by_accident_cites_nothing() -> None:
    assert read_citations("Use `a[2]` here.", FOUR).used == []
    accident = read_citations("Odd [[9]2] and [1[9]2].", FOUR)
    assert (accident.text, accident.used) == ("Odd [ 2] and [1 2].", [])


def test_no_supplied_passages_leaves_no_mark() -> None:
    assert read_citations("It costs 5 [1][2].", set()).text == "It costs 5."


def test_marks_after_the_full_stop_belong_to_the_sentence_before() -> None:
    cited = read_citations("First fact. [1] Second fact.[2][3] 第三。[4]第四[1]。", FOUR)
    sentences = [(cited.text[s.start : s.end], s.numbers) for s in cited.sentences]
    assert sentences == [
        ("First fact. [1]", [1]),
        ("Second fact.[2][3]", [2, 3]),
        ("第三。[4]", [4]),
        ("第四[1]。", [1]),
    ]


def test_a_stream_shows_text_at_once_and_holds_only_what_may_be_a_mark() -> None:
    stream = CitationStream(FOUR)
    assert stream.feed("The answer") == "The answer"
    assert stream.feed(" is 5 [") == " is 5"
    assert stream.feed("9") == ""
    assert stream.feed("] euro [1") == " euro"
    assert stream.feed("].") == " [1]."
    assert stream.close() == ""


PIECES = st.sampled_from(
    ["[", "]", "1", "7", ",", "-", " ", "  ", "\n", "【", "】", "†", "(", ")", "（", "^", "ID:", "source ", "`", "```", "a", ".",
     "。", "[1]", "[9]", "[1, 2]", "【2】", "([1])", "([9])", "[^4]", "[ID:3]", "`x[7]`", "word", "文档"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join), st.data())
def test_streamed_text_equals_the_whole_text_for_any_cut(text: str, data: st.DataObject) -> None:
    whole = read_citations(text, FOUR).text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    stream = CitationStream(FOUR)
    bounds = [0, *cuts, len(text)]
    streamed = [stream.feed(text[a:b]) for a, b in pairwise(bounds)]
    assert "".join(streamed) + stream.close() == whole
    one_by_one = CitationStream(FOUR)
    assert "".join(map(one_by_one.feed, text)) + one_by_one.close() == whole
    assert one_by_one.marks == stream.marks
    assert all(whole[start:end] == f"[{number}]" for start, end, number in stream.marks)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_number_is_cited_that_was_not_supplied(text: str) -> None:
    assert set(read_citations(text, {2}).used) <= {2}


def test_a_long_bracket_or_code_does_not_hold_the_stream_back_for_ever() -> None:
    stream = CitationStream(FOUR)
    assert len(stream.feed("[" + "word " * 100)) > 400
    assert len(stream.feed("`" + "code " * 200)) > 400


def test_ranges_are_bounded() -> None:
    assert len(numbers_in("[1-999999]")) <= 21
    assert numbers_in("[ID:3]") == []


def test_a_documents_own_references_are_no_citations() -> None:
    assert (
        without_foreign_marks("shown before [12, 13], see a[0] and [2](x)")
        == "shown before (12, 13), see a[0] and [2](x)"
    )


@pytest.mark.parametrize(
    ("sentence", "passage", "supported"),
    [
        ("Employees in Sweden get 30 days of annual leave [1].", LEAVE, True),
        ("Employees in Sweden get 25 days of annual leave [1].", LEAVE, False),
        ("The notice period is 2 months [1].", LEAVE, True),
        ("The notice period is 3 months [1].", LEAVE, False),
        ("The canteen serves herring every Friday [1].", LEAVE, False),
        ("- **Claims** are made on form KTW-2108 [2]", TRAVEL, True),
        ("- Claims are made on form KTW-2109 [2]", TRAVEL, False),
        ("试用期为3个月[1]。", "员工的试用期是三个月，期满后转正。", True),
        ("试用期为6个月[1]。", "员工的试用期是三个月，期满后转正。", False),
        ("軟體授權每年更新[1]。", "软体授权须每年更新一次。", True),
        ("The room costs 1,650 kronor [1].", "Hotels: SEK 1650 a night, the room kronor costs", True),
        ("It was signed on 2024-03-05 [1].", "Signed on March 5, 2024.", True),
        ("There are 25 people in Utrecht [1].", "Twenty-five people work in Utrecht.", True),
    ],
)
def test_lexical_support(sentence: str, passage: str, supported: bool) -> None:
    assert (support_check(sentence, passage) >= 0.5) is supported


def test_another_script_can_be_refuted_by_its_figures_only() -> None:
    assert support_check("瑞典的年假为丰厚的[1]。", LEAVE) == NOT_COMPARABLE
    assert support_check("瑞典的年假为30天[1]。", LEAVE) >= NOT_COMPARABLE
    assert support_check("瑞典的年假为25天[1]。", LEAVE) < NOT_COMPARABLE


def test_the_quote_is_the_supporting_sentence_exactly_and_lies_in_one_chunk() -> None:
    first, second = passages()
    assert len(first.parts) == 3
    cited = read_citations("Notice is two months [1]. Hotels in the Netherlands cost up to EUR 165 [2].", FOUR)
    leave, travel = resolve_citations(cited, [first, second])
    assert (leave.quote, leave.chunk_id) == ("The notice period is two months.", "d-leave-c2")
    assert LEAVE[leave.start : leave.end] == leave.quote
    assert (travel.n, travel.quote) == (2, "Hotels cost at most EUR 165 a night in the Netherlands.")
    assert TRAVEL[travel.start : travel.end] == travel.quote


def test_a_sentence_across_two_chunks_is_quoted_from_one() -> None:
    text = "The permit is given by the site lead after a written request."
    chunks = chunks_of(text, ["The permit is given by the site lead", " after a written request."])
    (passage,) = assemble([hit(chunks[0]), hit(chunks[1])], [], RetrievalSettings())
    start, end = best_quote("The site lead gives the permit after a written request [1].", passage) or (0, 0)
    assert passage.text[start:end] == "The permit is given by the site lead"


def test_swapped_numbers_of_a_weak_model_are_flagged() -> None:
    text = "Annual leave is 30 days in Sweden [2]. Hotels cost at most EUR 165 a night [1]. Good luck!"
    checked = check_citations(read_citations(text, FOUR), passages(), support_threshold=0.5)
    assert checked.text == (
        "Annual leave is 30 days in Sweden [2] [unsupported]. Hotels cost at most EUR 165 a night [1] [unsupported]. "
        "Good luck!"
    )
    assert [checked.text[a:b] for a, b in checked.unsupported] == [
        "Annual leave is 30 days in Sweden [2] [unsupported].",
        "Hotels cost at most EUR 165 a night [1] [unsupported].",
    ]


def test_supported_sentences_are_left_as_they_are() -> None:
    text = "Annual leave is 30 days in Sweden [1]. Together with hotels at EUR 165, leave is 30 days [1][2]."
    checked = check_citations(read_citations(text, FOUR), passages(), support_threshold=0.5)
    assert (checked.text, checked.unsupported) == (text, [])
    assert [citation.n for citation in checked.citations] == [1, 2]


def test_a_chinese_sentence_gets_a_chinese_mark() -> None:
    checked = check_citations(read_citations("年假为25天[1]。", FOUR), passages(), support_threshold=0.5)
    assert checked.text == "年假为25天[1] [无来源支持]。"


def test_background_passages_supply_no_number() -> None:
    background = Passage(n=0, document_id="d", document_version=1, title=None, text="A summary.", score=1)
    assert supplied_numbers([*passages(), background]) == {1, 2}
    assert best_quote("A summary", background) is None


@given(st.lists(PIECES, max_size=20).map("".join))
def test_whatever_a_model_writes_citations_are_exact(text: str) -> None:
    documents = {"d-leave": LEAVE, "d-travel": TRAVEL}
    checked = check_citations(read_citations(text, FOUR & {1, 2}), passages(), support_threshold=0.5)
    for citation in checked.citations:
        assert documents[citation.document_id][citation.start : citation.end] == citation.quote
