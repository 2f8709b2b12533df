"""What a person or a script sees. Text from documents is data: no markup, no control characters reach a terminal."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from services.cli.failures import CliFailure

_UNBOUNDED = 100_000  # columns; what is piped is not cut to a screen that is not there
_WORDS = frozenset({"state", "severity", "kind", "role", "type"})
_FREE = (str, list, dict)
_CELL_CHARS = 160  # on a screen
_NARROW = 72  # columns; an id takes 36 of them
STATE_STYLES = {
    "ready": "green", "succeeded": "green", "ok": "green", "unchanged": "green", "failed": "red", "error": "red",
    "cancelled": "yellow", "expired": "yellow", "superseded": "yellow", "waiting": "yellow", "warning": "yellow",
}  # fmt: skip


def is_plain(stream: TextIO) -> bool:
    """No colour and nothing that moves: not a terminal, or asked for by NO_COLOR (no-color.org) or TERM=dumb."""
    return not stream.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def console_on(stream: TextIO) -> Console:
    return Console(
        file=stream,
        width=None if stream.isatty() else _UNBOUNDED,
        force_terminal=stream.isatty() and not is_plain(stream),
        no_color=is_plain(stream),
        highlight=False,
        markup=False,
        emoji=False,
    )


def is_screen(console: Console) -> bool:
    """It has a width to fit into; a pipe takes each line whole."""
    return console.width < _UNBOUNDED


def out() -> Console:
    return console_on(sys.stdout)


def err() -> Console:
    return console_on(sys.stderr)


def clean(text: object) -> str:
    """`text` without C0, C1 and bidirectional control characters, which could redraw or disguise what a screen shows."""
    kept = (c for c in str(text) if c in "\n\t" or (unicodedata.category(c) != "Cc" and c not in _BIDI))
    return "".join(kept)


_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def one_line(text: object) -> str:
    return " ".join(clean(text).split())


def print_json(value: Any) -> None:
    """One value a line, flushed, so that a reader of the pipe sees it now."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=not is_unicode) + "\n")
    sys.stdout.flush()


def print_failure(failure: CliFailure) -> None:
    console = err()
    line = Text.assemble(("error:", "bold red"), f" {one_line(failure.detail)} ({one_line(failure.kind)})")
    console.print(line)
    if failure.remedy:
        console.print(Text(f"  {one_line(failure.remedy)}"))


def say(text: str) -> None:
    """A remark beside the result: on stderr, so that stdout stays what was asked for."""
    err().print(Text(one_line(text)))


def state_text(state: object) -> Text:
    word = one_line(state)
    return Text(word, style=STATE_STYLES.get(word, ""))


def print_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """A column of ids is never cut: a person copies it. A screen too narrow gets a list instead."""
    listed, console = list(rows), out()
    if not listed:
        say(empty)
    elif console.width < _NARROW and any(map(_is_id, columns)):
        for row in listed:
            print_fields({name: row.get(name) for name in columns})
            console.print()
    else:
        table = Table(*(_column(name, listed) for name in columns), box=None, pad_edge=False, header_style="bold")
        for row in listed:
            cells = [_cell(name, row.get(name)) for name in columns]
            if is_screen(console):
                for cell in cells:
                    cell.truncate(_CELL_CHARS, overflow="ellipsis")
            table.add_row(*cells)
        console.print(table)


def _column(name: str, rows: list[Mapping[str, Any]]) -> Column:
    """Words, numbers, ids and times keep their width; free text wraps into what is left."""
    values = [row.get(name) for row in rows]
    is_fixed = name in _WORDS or _is_id(name) or name.endswith("_at") or not any(isinstance(v, _FREE) for v in values)
    return Column(name, no_wrap=is_fixed, overflow="fold")


def print_fields(fields: Mapping[str, Any]) -> None:
    table = Table(
        Column(no_wrap=True, style="bold"), Column(overflow="fold"), box=None, pad_edge=False, show_header=False
    )
    for name, value in fields.items():
        if value not in (None, "", [], {}):
            table.add_row(Text(one_line(name)), _cell(name, value))
    out().print(table)


def _is_id(name: str) -> bool:
    return name == "id" or (name.endswith("_id") and name != "external_id")


def _cell(name: str, value: Any) -> Text:
    if name in ("state", "severity"):
        return state_text(value)
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, list):
        return Text(", ".join(one_line(item) for item in value))
    if isinstance(value, dict):
        return Text(one_line(json.dumps(value, ensure_ascii=False)))
    return Text(one_line(value))
