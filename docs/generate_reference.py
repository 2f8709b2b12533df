"""Writes `docs/reference/settings.md` from `schemas/settings.py`; a test fails while the two differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))  # run as a script, from any directory

from schemas.settings import Settings  # noqa: E402

SETTINGS_PAGE = REPOSITORY / "docs" / "reference" / "settings.md"
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
HEAD = """# Settings

Made from `schemas/settings.py` by `make reference`. Every setting is an environment variable; an unknown or wrong one ends the
process at start with exit code 78 and one line that says what to do. Nothing set means one machine with embedded engines.
"""


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    kind: Any = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def values(field: FieldInfo) -> str:
    """What the setting takes: words to choose from, or a type with its bounds."""
    kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not type(None)]
    if all(isinstance(kind, str) for kind in kinds):
        return ", ".join(f"`{kind}`" for kind in kinds)
    names = {SecretStr: "secret", str: "text", int: "whole number", float: "number", bool: "true or false"}
    bounds = [
        f"{sign} {getattr(rule, name)}"
        for rule in field.metadata
        for name, sign in SIGNS.items()
        if hasattr(rule, name)
    ]
    return " ".join([names[kinds[0]], " and ".join(bounds)]).strip()


def default(field: FieldInfo) -> str:
    value: Any = field.get_default()
    if value is None:
        return "unset"
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown}`"


def table(settings: type[BaseModel], prefix: str) -> list[str]:
    rows = ["| variable | takes | default | what it is |", "|---|---|---|---|"]
    for name, field in settings.model_fields.items():
        if section_of(field) is None:
            rows.append(f"| `{prefix}{name.upper()}` | {values(field)} | {default(field)} | {field.description} |")
    return rows


def settings_page() -> str:
    """The whole page as Markdown."""
    lines = [HEAD, "## Engines, models and process", "", *table(Settings, "PERDURE_")]
    for name, field in Settings.model_fields.items():
        if section := section_of(field):
            about = (section.__doc__ or "").strip()
            lines += ["", f"## {name.capitalize()}", "", about, "", *table(section, f"PERDURE_{name.upper()}__")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    SETTINGS_PAGE.write_text(settings_page(), encoding="utf-8")
