"""A call's arguments: read from what a model wrote, held against the tool's schema, and known by their hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from schemas.tools import ToolSpec
from services.documents.clean_text import clean_text

MAX_SHOWN_ERRORS = 3


class BadArguments(ValueError):
    """What is wrong with them, in words for the model or the person who sent them."""


def read(raw: str, spec: ToolSpec) -> dict[str, Any]:
    """BadArguments when they are no JSON object or do not fit the schema."""
    try:
        found = json.loads(raw or "{}")
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"The arguments are not valid JSON ({error}). Send one JSON object.") from error
    if not isinstance(found, dict):
        raise BadArguments("The arguments must be one JSON object.")
    arguments: dict[str, Any] = _storable(found)
    check(arguments, spec)
    return arguments


def check(arguments: dict[str, Any], spec: ToolSpec) -> None:
    try:
        errors = list(Draft202012Validator(spec.parameters).iter_errors(arguments))
    except SchemaError as error:
        raise BadArguments(f"The tool's own schema is broken: {error.message}") from error
    if errors:
        told = "; ".join(
            f"{'.'.join(map(str, each.path)) or 'arguments'}: {each.message}" for each in errors[:MAX_SHOWN_ERRORS]
        )
        raise BadArguments(f"The arguments do not fit the tool '{spec.name}': {told}")


def args_hash(tool: str, arguments: dict[str, Any]) -> str:
    """SHA-256 over tool and arguments in canonical JSON: what an approval is bound to."""
    text = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _storable(value: Any) -> Any:
    """No NUL and no half of a surrogate pair reaches a database (invariant 10)."""
    match value:
        case str():
            return clean_text(value)
        case list():
            return [_storable(each) for each in value]
        case dict():
            return {clean_text(name): _storable(each) for name, each in value.items()}
        case _:
            return value
