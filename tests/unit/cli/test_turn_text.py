"""What of a turn's text is still to be shown, whatever was taken back and said again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.chat_view import rest_after

WORDS = st.lists(st.text("ab", min_size=1, max_size=3), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("text", "kept", "rest"),
    [
        ("I look. I write.", "I look. ", "I write."),
        ("I look.\n\nI write.", "I look. ", "\n\nI write."),
        ("", "I look.", ""),
        ("I lo", "I look.", ""),
        ("I look.", "I look. ", ""),
        ("I saw.", "I look.", None),
        ("I saw. And", "I look.", None),
        ("Any text.", "", "Any text."),
    ],
)
def test_the_rest_is_what_follows_the_words_that_stay(text: str, kept: str, rest: str | None) -> None:
    assert rest_after(text, kept) == rest


@given(WORDS, WORDS)
def test_kept_and_rest_make_the_whole(kept: str, more: str) -> None:
    whole = f"{kept}\n\n{more}"
    rest = rest_after(whole, f"{kept} ")
    assert rest is not None
    assert [*kept.split(), *rest.split()] == whole.split()


@given(WORDS, st.integers(0, 20))
def test_while_it_is_said_again_nothing_is_new(kept: str, length: int) -> None:
    assert rest_after(kept[:length].rstrip(), f"{kept} ") == ""
