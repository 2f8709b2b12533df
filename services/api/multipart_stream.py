"""multipart/form-data (RFC 7578) read while it arrives: no part is ever whole in memory but short fields.

The parser is pushed; callers pull. `MultipartStream` turns one into the other: it feeds the parser a piece of the body
whenever its caller wants more than has been parsed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from schemas.errors import InvalidRequest, TooLarge
from services.api.problems import Malformed

MAX_FIELD_BYTES = 64_000
MAX_PARTS = 2_000
MAX_HEADER_BYTES = 16_000


@dataclass
class Part:
    """The headers of one part. `filename` is null for a plain field."""

    name: str
    filename: str | None
    media_type: str | None


@dataclass
class _RawHeaders:
    current: bytearray = field(default_factory=bytearray)
    value: bytearray = field(default_factory=bytearray)
    done: dict[bytes, bytes] = field(default_factory=dict)

    def end_one(self) -> None:
        self.done[bytes(self.current).lower()] = bytes(self.value)
        self.current, self.value = bytearray(), bytearray()


class MultipartStream:
    """`next_part`, then `chunks` or `text` of that part, until there is none left."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidRequest("Send the files as multipart/form-data.", type="unsupported_media_type", status=415)
        self._body = body
        self._ready: deque[Part | bytes | None] = deque()  # null ends a part
        self._headers = _RawHeaders()
        self._parts = 0
        self._finished = False
        self._parser = self._make_parser(boundary)

    def _make_parser(self, boundary: bytes) -> MultipartParser:
        try:
            return MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                    "on_header_field": self._header_field,
                    "on_header_value": self._header_value,
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._headers_finished,
                    "on_end": self._finish,
                },
                max_header_size=MAX_HEADER_BYTES,
            )
        except FormParserError as error:
            raise Malformed("The multipart boundary is not valid.") from error

    async def next_part(self) -> Part | None:
        """The next part; what was not read of the one before is skipped."""
        while True:
            item = await self._next()
            if isinstance(item, Part):
                return item
            if item is None and self._finished and not self._ready:
                return None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes of the part that `next_part` gave last."""
        while (item := await self._next()) is not None:
            assert isinstance(item, bytes)
            yield item

    async def text(self) -> str:
        """A short field's value."""
        value = bytearray()
        async for chunk in self.chunks():
            value += chunk
            if len(value) > MAX_FIELD_BYTES:
                raise TooLarge(f"A form field is over {MAX_FIELD_BYTES} bytes.")
        try:
            return value.decode("utf-8").replace("\x00", "")
        except UnicodeDecodeError as error:
            raise Malformed("A form field is not UTF-8.") from error

    async def _next(self) -> Part | bytes | None:
        while not self._ready:
            if self._finished:
                return None
            await self._feed()
        return self._ready.popleft()

    async def _feed(self) -> None:
        piece = await anext(self._body, b"")
        try:
            if piece:
                self._parser.write(piece)
            elif not self._finished:
                raise Malformed("The multipart body ends too early.")
        except FormParserError as error:
            raise Malformed("The multipart body is not well formed.") from error

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise TooLarge(f"The form has over {MAX_PARTS} parts.")
        self._headers = _RawHeaders()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._headers.current += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._headers.value += data[start:end]

    def _header_end(self) -> None:
        self._headers.end_one()

    def _headers_finished(self) -> None:
        disposition, options = parse_options_header(self._headers.done.get(b"content-disposition", b""))
        if disposition != b"form-data" or b"name" not in options:
            raise Malformed("A part of the form has no name.")
        media_type, _ = parse_options_header(self._headers.done.get(b"content-type", b""))
        filename = options.get(b"filename")
        self._ready.append(
            Part(
                name=_decoded(options[b"name"]),
                filename=None if filename is None else _decoded(filename),
                media_type=_decoded(media_type).lower() or None,
            )
        )

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._ready.append(data[start:end])

    def _end(self) -> None:
        self._ready.append(None)

    def _finish(self) -> None:
        self._finished = True


def _decoded(value: bytes) -> str:
    """UTF-8, else Latin-1; browsers write quotes and line ends as percent escapes (WHATWG HTML, 4.10.21.8)."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    for escape, character in (("%22", '"'), ("%0D", " "), ("%0A", " ")):
        text = text.replace(escape, character)
    return text.replace("\x00", "")
