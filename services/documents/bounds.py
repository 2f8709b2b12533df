"""The bounds of one file's parse (invariant 11): the bound that was reached is the reported reason."""

from __future__ import annotations

from schemas.errors import PermanentFailure

XML_DEPTH = 256
"""Deepest nesting of markup or JSON that is read."""


def setting_variable(field: str) -> str:
    """The environment variable of a `ParsingSettings` field."""
    return f"PERDURE_PARSING__{field.upper()}"


def bound_reached(code: str, what: str, field: str, limit: float) -> PermanentFailure:
    """The failure for a bound of `ParsingSettings`; its detail names the variable that moves it."""
    return PermanentFailure(code, f"{what}; the limit is {limit:g} ({setting_variable(field)})")
