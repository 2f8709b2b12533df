"""Keys become lines, however the terminal cuts their bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.cli.typed_lines import QUIT, LineEditor


def test_keys_edit_the_line() -> None:
    editor = LineEditor()
    assert editor.feed("one twi\x7fo 漢字".encode()) == []
    assert editor.partial == "one two 漢字"
    assert editor.feed(b"\x17\x1b[D\x1b[3~\x1bOP\x01!\r") == ["one two!"]
    assert editor.feed(b"gone\x15\x04") == [QUIT]


@given(st.lists(st.text(st.characters(categories=["L", "N", "P"]), max_size=8), max_size=4), st.integers(1, 5))
def test_lines_come_whole_however_their_bytes_are_cut(lines: list[str], size: int) -> None:
    editor, keys = LineEditor(), "".join(f"{line}\n" for line in lines).encode()
    read = [line for start in range(0, len(keys), size) for line in editor.feed(keys[start : start + size])]
    assert (read, editor.partial) == (lines, "")
