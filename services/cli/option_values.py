"""Values of options that may be long: given as they are, or as `@file`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from services.cli.failures import BadUsage


def text_of(given: str, option: str) -> str:
    """The text itself, or what the file after an `@` holds."""
    if not given.startswith("@"):
        return given
    path = Path(given[1:]).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadUsage(
            f"{option}: {path} cannot be read: {error.strerror}.", "Give @ and the path of a file."
        ) from None
    except UnicodeDecodeError:
        raise BadUsage(f"{option}: {path} is not a UTF-8 text.", "Save it as UTF-8.") from None


def json_object_of(given: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text_of(given, option))
    except ValueError as error:
        raise BadUsage(f"{option} is not JSON: {error}.", "Give an object in quotes, or @file.") from None
    if not isinstance(value, dict):
        raise BadUsage(f"{option} is JSON and no object.", 'Give an object, say \'{"title": "Travel"}\'.')
    return value
