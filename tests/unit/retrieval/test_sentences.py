from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieval.sentences import MAX_SENTENCE_CHARS, sentence_spans


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Smith paid 3.14, e.g. in No. 5 to J. Doe. Next.",
            ["Dr. Smith paid 3.14, e.g. in No. 5 to J. Doe.", "Next."],
        ),
        ("第一句。第二句！第三句？“引用。”后文", ["第一句。", "第二句！", "第三句？", "“引用。”", "后文"]),
        ("A wrapped\nline ends. Next", ["A wrapped\nline ends.", "Next"]),
        ("1. First item\n2. Second item.", ["1. First item", "2. Second item."]),
        ("- one\n- two\n  goes on", ["- one", "- two\n  goes on"]),
        ("# Heading\nBody", ["# Heading", "Body"]),
        ("| a | b |\n| --- | --- |\n| 1. x | 2 |", ["| a | b |", "| --- | --- |", "| 1. x | 2 |"]),
        ("Version v2.3.1 is out", ["Version v2.3.1 is out"]),
        ("Fact.[1] More", ["Fact.", "[1] More"]),
        ("  \n\n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [text[a:b] for a, b in sentence_spans(text)] == sentences


@given(st.text("aB1. 。!?\n#|-[]é", max_size=200))
def test_spans_are_in_order_trimmed_and_leave_out_white_space_only(text: str) -> None:
    spans = sentence_spans(text)
    position = 0
    for start, end in spans:
        assert position <= start < end
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()


def test_a_text_without_ends_is_cut() -> None:
    assert all(b - a <= MAX_SENTENCE_CHARS for a, b in sentence_spans("word " * 2_000 + "字" * 5_000))
