"""Statements that are asked many times in every run, compiled once and sent by the driver itself.

SQLAlchemy says what they are; going through its execution for each of them would cost three times what Postgres and the
driver take, in the interpreter that also answers searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import make_url
from sqlalchemy.sql.compiler import SQLCompiler

_DIALECT = make_url("postgresql+psycopg://").get_dialect()()


class Prepared:
    """A statement with named parameters: `bindparam`s, and the constants that it was built with."""

    def __init__(self, statement: ClauseElement) -> None:
        compiled = statement.compile(dialect=_DIALECT)
        assert isinstance(compiled, SQLCompiler)
        self.sql = str(compiled)
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}
        self._json = {name for name, bind in compiled.binds.items() if isinstance(bind.type, JSONB)}

    def parameters(self, given: Mapping[str, Any] | None, as_json: Callable[[Any], Any]) -> dict[str, Any]:
        """What to send; `as_json` marks what goes into a JSON column for the driver."""
        values = {**self._constants, **(given or {})}
        for name in self._json:
            values[name] = as_json(values[name])
        return values
