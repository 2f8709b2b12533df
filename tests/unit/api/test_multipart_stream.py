"""The streaming form parser, however the body is cut into pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import Problem
from services.api.multipart_stream import MultipartStream
from services.api.upload_form import external_id_of

CONTENT_TYPE = "multipart/form-data; boundary=b"


def form(*parts: tuple[str, bytes]) -> bytes:
    lines = [
        b'--b\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\nContent-Type: text/plain\r\n\r\n%s\r\n'
        % (name.encode(), data)
        for name, data in parts
    ]
    return b"".join(lines) + b"--b--\r\n"


async def pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def read(body: bytes, size: int, content_type: str = CONTENT_TYPE) -> list[tuple[str, bytes]]:
    stream = MultipartStream(content_type, pieces(body, size))
    found = []
    while (part := await stream.next_part()) is not None:
        found.append((part.name, b"".join([chunk async for chunk in stream.chunks()])))
    return found


@given(
    parts=st.lists(st.tuples(st.sampled_from(["file", "a b", "ü"]), st.binary(max_size=200)), max_size=5),
    size=st.integers(1, 64),
)
async def test_parts_come_out_as_they_went_in_however_the_body_is_cut(
    parts: list[tuple[str, bytes]], size: int
) -> None:
    kept = [(name, data) for name, data in parts if b"\r\n--b" not in data]
    if kept:
        assert await read(form(*kept), size) == kept


async def test_a_part_that_nobody_reads_is_skipped() -> None:
    stream = MultipartStream(CONTENT_TYPE, pieces(form(("a", b"x" * 100), ("b", b"y")), 7))
    first, second = await stream.next_part(), await stream.next_part()
    assert first is not None
    assert second is not None
    assert (first.name, second.name, await stream.text()) == ("a", "b", "y")
    assert await stream.next_part() is None


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data", b"", 415),
        ("multipart/form-data; boundary=" + "x" * 300, b"", 400),
        (CONTENT_TYPE, b"", 400),
        (CONTENT_TYPE, b"nonsense", 400),
        (CONTENT_TYPE, b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\ncut', 400),
        (CONTENT_TYPE, b"--b\r\nX: y\r\n\r\nz\r\n--b--\r\n", 400),
        (CONTENT_TYPE, b"--b\r\nX: " + b"y" * 100_000 + b"\r\n\r\nz\r\n--b--\r\n", 400),
    ],
)
async def test_a_form_that_is_none_is_refused(content_type: str, body: bytes, status: int) -> None:
    with pytest.raises(Problem) as refused:
        await read(body, 1_000, content_type)
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("filename", "external_id"),
    [
        ("a.md", "a.md"),
        ("a/b/c.md", "a/b/c.md"),
        ("a\\b.md", "a/b.md"),
        ("../../etc/passwd", "etc/passwd"),
        ("/a//./b", "a/b"),
        ("e\u0301.md", "é.md"),
        ("", "unnamed"),
        ("..", "unnamed"),
    ],
)
def test_a_file_is_named_by_its_path_without_root_or_steps_upward(filename: str, external_id: str) -> None:
    assert external_id_of(filename) == external_id
