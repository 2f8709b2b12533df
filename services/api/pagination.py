"""Lists are {items, next_cursor}. A cursor is opaque, and belongs to the list that gave it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from services.api.problems import Malformed

MAX_LIMIT = 100
DEFAULT_LIMIT = 50
MAX_CURSOR_CHARS = 500
Item = TypeVar("Item", bound=BaseModel)


class Page(BaseModel, Generic[Item]):
    """A part of a list. `next_cursor` asks for the next part and is null at the end."""

    items: list[Item]
    next_cursor: str | None = Field(None, examples=["WyIvdjEvdXNlcnMiLCAiMDE4OTBhNWQiXQ"])


class PageRequest:
    """Which part of which list was asked for."""

    def __init__(self, path: str, limit: int, cursor: str | None) -> None:
        self._path = path
        self.limit = limit
        self.place = None if cursor is None else self._read(cursor)

    @property
    def fetch(self) -> int:
        """One more than fits, to know whether there is a next page."""
        return self.limit + 1

    def after_text(self) -> str:
        return self.place or ""

    def after_number(self) -> int | None:
        if self.place is None:
            return None
        if not self.place.isascii() or not self.place.isdigit() or len(self.place) > 18:
            raise _bad_cursor()
        return int(self.place)

    def page(self, items: Sequence[Item], place_of: Callable[[Item], object]) -> Page[Item]:
        shown = list(items[: self.limit])
        more = len(items) > self.limit
        return Page(items=shown, next_cursor=self._write(str(place_of(shown[-1]))) if more else None)

    def _write(self, place: str) -> str:
        return base64.urlsafe_b64encode(json.dumps([self._path, place]).encode()).decode().rstrip("=")

    def _read(self, cursor: str) -> str:
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            path, place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (ValueError, TypeError, binascii.Error, RecursionError) as error:
            raise _bad_cursor() from error
        if path != self._path or not isinstance(place, str) or "\x00" in place or not place.isprintable():
            raise _bad_cursor()
        return place


def _bad_cursor() -> Malformed:
    return Malformed("This cursor is not one that this list gave; begin without one.", type="bad_cursor")


def _page_request(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=MAX_CURSOR_CHARS)] = None,
) -> PageRequest:
    return PageRequest(request.url.path, limit, cursor)


Paging = Annotated[PageRequest, Depends(_page_request)]
