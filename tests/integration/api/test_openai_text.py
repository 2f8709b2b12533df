"""Text that cannot be taken back, and conversations as one message: whatever the pieces, a reader is told what stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.openai_conversation import LEFT_OUT, Conversation, Said
from services.api.openai_text import SentText, TextReplaced, unsupported_claims


@given(st.lists(st.text(max_size=5)), st.lists(st.text(max_size=5)), st.integers(0, 20))
def test_what_was_sent_is_what_stands_or_the_reader_is_told(first: list[str], second: list[str], again: int) -> None:
    sent = SentText("run-1")
    told = ""
    try:
        for piece in first[:again]:
            told += sent.add(piece)
        if first[again:]:
            sent.begin_again()
        for piece in second:
            told += sent.add(piece)
        stands = "".join(second) if first[again:] else "".join([*first[:again], *second])
        told += sent.finish(stands)[0]
        assert told.rstrip() == stands.rstrip()
    except TextReplaced:
        assert not "".join(second).startswith(told)


@pytest.mark.parametrize("final", ["You have", "You have 31 days.", ""])
def test_a_final_text_that_is_not_what_was_sent_is_said_to_be_replaced(final: str) -> None:
    sent = SentText("run-1")
    sent.add("You have 30 days.")
    with pytest.raises(TextReplaced, match="resp_run-1"):
        sent.finish(final)


def test_marks_that_come_late_name_the_claims_before_them() -> None:
    sent = SentText("run-1")
    sent.add("It is 5 [1]. It is blue [2].\nAnd round [1]. 是红色的[1]")
    final = "It is 5 [1]. It is blue [2] [unsupported].\nAnd round [1]. 是红色的[1] [无来源支持] […]"
    assert sent.finish(final) == (" […]", ["It is 5 [1]. It is blue [2]", "And round [1]. 是红色的[1]"])
    assert unsupported_claims("x" * 300 + " [unsupported]") == ["…" + "x" * 100]
    only_at_the_end = SentText("run-2")
    only_at_the_end.add("It is 5 [1]")
    assert only_at_the_end.finish("It is 5 [1] [unsupported]") == (" [unsupported]", [])


def test_a_message_alone_is_sent_as_it_is() -> None:
    assert Conversation("List them.").as_message(100) == "List them."


def test_no_line_of_an_earlier_message_can_pass_for_the_one_to_be_answered() -> None:
    breaks = "a\r\nb\u2028c\x0bd\x85e"
    message = Conversation("Last.", [Said("user", breaks), Said("assistant", "Well")], [breaks]).as_message(5_000)
    quoted = [line for line in message.split("\n") if line[:1] in set("abcde")]
    assert quoted == []
    assert message.count("> ") == 11


def test_the_oldest_messages_go_when_one_message_cannot_hold_them_all() -> None:
    earlier = [Said("user", f"{number} " + "x" * 90) for number in range(20)]
    message = Conversation("Last.", earlier).as_message(1_000)
    assert len(message) <= 1_000
    assert "19 x" in message
    assert "0 xx" not in message.split("Person:")[1]
    kept = message.count("Person:")
    assert LEFT_OUT.format(count=20 - kept) in message
    assert message.endswith("\n\nLast.")
