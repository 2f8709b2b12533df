"""A tool's call in one line: its name and what it is called with, long values cut and last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from services.cli import output

_VALUE_CHARS = 48


def call_text(tool: str, arguments: Mapping[str, Any] | None) -> Text:
    text = Text(output.one_line(tool), style="cyan")
    for name, value in sorted((arguments or {}).items(), key=lambda pair: _is_long(pair[1])):
        text.append(f" {output.one_line(name)}={_short(value)}", style="dim")
    return text


def _is_long(value: Any) -> bool:
    text = value_text(value).strip()
    return len(text) > _VALUE_CHARS or "\n" in text


def _short(value: Any) -> str:
    whole = output.clean(value_text(value)).strip()
    if "\n" in whole:
        return f"({len(whole.splitlines())} lines)"
    shown = Text(output.one_line(whole))
    shown.truncate(_VALUE_CHARS, overflow="ellipsis")
    return f'"{shown.plain}"' if isinstance(value, str) and " " in shown.plain else shown.plain


def value_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
