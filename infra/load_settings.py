"""Settings from the environment: `PERDURE_CHAT_MODEL` is `chat_model`, `PERDURE_PARSING__CPU_S` is `parsing.cpu_s`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from schemas.errors import PerdureError
from schemas.settings import Section, Settings

PREFIX = "PERDURE_"
SECTION_MARK = "__"
# read by the CLI, by tests and by the scripts around them, never by a serving process
NOT_SETTINGS = frozenset({"PERDURE_URL", "PERDURE_API_KEY", "PERDURE_DATA_DIR", "PERDURE_PEERS_CACHE"})
TEST_PREFIX = "PERDURE_TEST_"

HTTP_URL = (re.compile(r"https?://[^\s/]+\S*"), "set it to a URL like http://host:port")
HOSTS = (re.compile(r"[^\s,/:]+:\d+(,[^\s,/:]+:\d+)*"), "set it to host:port")
SHAPES = {
    "PERDURE_DATABASE_URL": (
        re.compile(r"postgres(ql)?(\+psycopg)?://\S+"),
        "set it to a URL like postgresql://user:password@host:5432/perdure",
    ),
    "PERDURE_TEMPORAL_ADDRESS": HOSTS,
    "PERDURE_KAFKA_BOOTSTRAP": HOSTS,
    "PERDURE_QDRANT_URL": HTTP_URL,
    "PERDURE_ELASTICSEARCH_URL": HTTP_URL,
    "PERDURE_BLOB_URL": (re.compile(r"[a-z0-9]+://\S*"), "set it to a URL like s3://bucket or file:///directory"),
}


class BadSettings(PerdureError):
    """The environment holds something that is not a setting. The message is one line that says what to do; it never
    holds a value, which may be a secret. The process ends with exit code 78 (EX_CONFIG)."""


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Raises BadSettings for an unknown PERDURE_ name or a value out of bounds; an empty value counts as unset."""
    fields = _fields_by_name()
    given = {name: value.strip() for name, value in environ.items() if _is_setting(name) and value.strip()}
    for name, value in given.items():
        _refuse_unknown(name, fields)
        _refuse_shapeless(name, value)
    values: dict[str, Any] = {}
    for name, value in given.items():
        section, _, field = _path(name).rpartition(".")
        (values.setdefault(section, {}) if section else values)[field] = value
    if "database_url" in values:
        values["database_url"] = re.sub(
            r"^postgres(ql)?(\+psycopg)?://", "postgresql+psycopg://", values["database_url"]
        )
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise BadSettings(_explain(error.errors(include_input=False, include_url=False), fields)) from None


def _is_setting(name: str) -> bool:
    return name.startswith(PREFIX) and name not in NOT_SETTINGS and not name.startswith(TEST_PREFIX)


def _fields_by_name() -> dict[str, FieldInfo]:
    """Every variable there is, with what it sets."""
    found: dict[str, FieldInfo] = {}
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            found.update({_variable(name, inner): leaf for inner, leaf in kind.model_fields.items()})
        else:
            found[_variable(name)] = field
    return found


def _variable(*path: str) -> str:
    return PREFIX + SECTION_MARK.join(path).upper()


def _path(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower().replace(SECTION_MARK, ".")


def _refuse_unknown(name: str, fields: Mapping[str, FieldInfo]) -> None:
    if name in fields:
        return
    nearest = difflib.get_close_matches(name, fields, n=1)
    advice = f"did you mean {nearest[0]}?" if nearest else "unset it"
    raise BadSettings(f"{name} is not a setting; {advice}")


def _refuse_shapeless(name: str, value: str) -> None:
    shape, advice = SHAPES.get(name, (None, ""))
    if shape is not None and not shape.fullmatch(value):
        raise BadSettings(f"{name} is not usable; {advice} (or unset it to use the embedded engine)")


def _explain(errors: list[ErrorDetails], fields: Mapping[str, FieldInfo]) -> str:
    first, *more = errors
    name = _variable(*(str(part) for part in first["loc"]))
    default = fields[name].get_default() if name in fields else None
    advice = "correct or unset it" if default is None else f"correct it, or unset it for {default}"
    rest = f" (and {len(more)} more)" if more else ""
    return f"{name}: {first['msg'].lower()}; {advice}{rest}"
