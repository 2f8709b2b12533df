"""The guard around every fetch of an address that a user named (SSRF), with a listener inside our own network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from schemas.errors import PermanentFailure, TransientFailure
from schemas.settings import FetchSettings
from services.gateways.safe_fetch import ForbiddenAddress, SafeFetch, is_public
from tests.fakes.web_listener import listening, page

PUBLIC = "93.184.216.34"


@asynccontextmanager
async def guard(
    *, transport: httpx.AsyncBaseTransport | None = None, max_bytes: int = 100_000, **settings: Any
) -> AsyncIterator[SafeFetch]:
    fetch = SafeFetch(FetchSettings(**settings), max_bytes, transport)
    try:
        yield fetch
    finally:
        await fetch.close()


async def body_of(fetch: SafeFetch, url: str) -> bytes:
    async with fetch.get(url) as fetched:
        return b"".join([piece async for piece in fetched.body])


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Every name resolves to the first answer, then to the second, and so on; the last one stays. Gives the names asked."""
    names: list[str] = []
    left = list(answers)

    def getaddrinfo(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        names.append(host)
        answer = left.pop(0) if len(left) > 1 else left[0]
        family = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(family[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in answer]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


INSIDE = [
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.0.0.1/",
    "http://0x7f000001/", "http://0/", "http://0.0.0.0/", "http://10.0.0.1/", "http://172.16.3.4/",
    "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/", "http://198.18.0.1/",
    "http://192.0.2.1/", "http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/",
    "http://[::1]/", "http://[::]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://[fd12:3456::1]/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[2002:7f00:1::]/", "http://[2002:a00:1::1]/",
    "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/", "http://[2001:db8::1]/", "http://[ff02::1]/",
    "http://[::127.0.0.1]/", "http://①②⑦.⓪.⓪.①/", "http://user@127.0.0.1/", "http://localhost/",
]  # fmt: skip


@pytest.mark.parametrize("url", INSIDE)
async def test_no_spelling_of_an_inside_address_is_fetched(url: str) -> None:
    async with guard() as fetch:
        with pytest.raises(ForbiddenAddress) as refused:
            await body_of(fetch, url)
    assert refused.value.code == "unsupported"


NO_WEB_ADDRESSES = [
    "file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "//example.org/", "example.org", "http://",
    "http:///path", "http://[::1", "http://exa mple.org:99999/", "http://example.org:x/",
]  # fmt: skip


@pytest.mark.parametrize("url", NO_WEB_ADDRESSES)
async def test_what_is_no_web_address_is_refused(url: str) -> None:
    async with guard() as fetch:
        with pytest.raises((ForbiddenAddress, TransientFailure)) as refused:
            await body_of(fetch, url)
    assert refused.value.code in ("unsupported", "unreachable")


@pytest.mark.parametrize("port", [22, 25, 5432, 6379, 9200])
async def test_ports_of_other_services_are_refused(port: int) -> None:
    async with guard() as fetch:
        with pytest.raises(ForbiddenAddress, match=f"Port {port}"):
            await fetch.checked_address(f"http://{PUBLIC}:{port}/")


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822"])
def test_addresses_that_anyone_may_reach_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


async def test_a_name_that_has_one_inside_address_among_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, [PUBLIC, "10.0.0.7"])
    async with guard() as fetch:
        with pytest.raises(ForbiddenAddress):
            await body_of(fetch, "http://mixed.example/")


async def test_the_connection_goes_to_the_address_that_was_checked_whatever_the_name_says_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the second look would give loopback, and there is no second look."""
    names = resolving(monkeypatch, [PUBLIC], ["127.0.0.1"])
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, content=b"page")

    async with guard(transport=httpx.MockTransport(answer)) as fetch:
        assert await body_of(fetch, "https://user:secret@rebind.example:8443/a?b=c") == b"page"
    (request,) = sent
    assert names == ["rebind.example"]
    assert (request.url.host, request.url.port, request.url.raw_path) == (PUBLIC, 8443, b"/a?b=c")
    assert request.headers["host"] == "rebind.example:8443"
    assert request.extensions["sni_hostname"] == "rebind.example"
    assert "authorization" not in request.headers
    assert not request.url.userinfo


async def test_a_redirect_to_an_inside_address_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as inside:
        inside.pages["/"] = page(200, b"inside")
        places = [inside.url(), "http://169.254.169.254/", "file:///etc/passwd", "//127.0.0.1/"]
        for place in places:
            transport = httpx.MockTransport(lambda _, to=place: httpx.Response(302, headers={"location": to}))
            async with guard(transport=transport) as fetch:
                with pytest.raises(ForbiddenAddress):
                    await body_of(fetch, f"http://{PUBLIC}/start")
        assert inside.asked == []


async def test_a_name_that_turns_inside_on_a_redirect_is_refused_at_that_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, [PUBLIC], ["127.0.0.1"])
    transport = httpx.MockTransport(lambda _: httpx.Response(301, headers={"location": "/again"}))
    async with guard(transport=transport) as fetch:
        with pytest.raises(ForbiddenAddress):
            await body_of(fetch, "http://turning.example/")


async def test_redirects_are_followed_up_to_their_bound_which_is_named() -> None:
    async with listening() as listener:
        listener.pages = {
            "/0": page(302, Location="/1"),
            "/1": page(307, Location=listener.url("/2")),
            "/2": page(200, b"there", Content_Type="text/html; charset=utf-8"),
            "/loop": page(302, Location="/loop"),
        }
        async with guard(allow_private=True, redirects=2) as fetch:
            async with fetch.get(listener.url("/0")) as fetched:
                assert (fetched.url, fetched.media_type) == (listener.url("/2"), "text/html")
                assert [piece async for piece in fetched.body] == [b"there"]
            listener.asked.clear()
            with pytest.raises(PermanentFailure, match="PERDURE_FETCH__REDIRECTS"):
                await body_of(fetch, listener.url("/loop"))
            assert len(listener.asked) == 3


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_bound_is_cut_off_whatever_its_header_says(chunked: bool) -> None:
    async def endless(writer: asyncio.StreamWriter, head: str) -> None:
        length = "Transfer-Encoding: chunked" if chunked else "Connection: close"
        writer.write(f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode())
        while True:
            writer.write(b"3e8\r\n" + b"x" * 1_000 + b"\r\n" if chunked else b"x" * 1_000)
            await writer.drain()

    async with listening() as listener:
        listener.pages["/"] = endless
        async with guard(allow_private=True, max_bytes=50_000) as fetch:
            with pytest.raises(PermanentFailure, match="PERDURE_LIMITS__UPLOAD_BYTES") as cut:
                await body_of(fetch, listener.url())
    assert cut.value.code == "too_large"


@pytest.mark.parametrize("part", ["header", "body"])
async def test_a_page_that_drips_ends_at_the_deadline_for_the_whole_fetch(part: str) -> None:
    """Each piece comes long before a timeout between two pieces would end it."""

    async def dripping(writer: asyncio.StreamWriter, head: str) -> None:
        if part == "body":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with listening() as listener:
        listener.pages["/"] = dripping
        async with asyncio.timeout(20), guard(allow_private=True, timeout_s=0.5) as fetch:
            with pytest.raises(TransientFailure, match="PERDURE_FETCH__TIMEOUT_S") as late:
                await body_of(fetch, listener.url())
    assert late.value.code == "timeout"


async def test_redirects_do_not_start_the_deadline_anew() -> None:
    async def slow_hop(writer: asyncio.StreamWriter, head: str) -> None:
        await asyncio.sleep(0.2)
        await page(302, Location="/")(writer, head)

    async with listening() as listener:
        listener.pages["/"] = slow_hop
        async with guard(allow_private=True, timeout_s=0.5, redirects=50) as fetch:
            with pytest.raises(TransientFailure, match="PERDURE_FETCH__TIMEOUT_S"):
                await body_of(fetch, listener.url())
        assert len(listener.asked) < 10


@pytest.mark.parametrize("status", [204, 401, 404, 500, 503])
async def test_an_answer_other_than_200_is_a_failure_and_its_body_is_never_read(status: int) -> None:
    async with listening() as listener:
        listener.pages["/"] = page(status, b"" if status == 204 else b"Error: sorry, words of the error page")
        async with guard(allow_private=True) as fetch:
            with pytest.raises(TransientFailure if status >= 500 else PermanentFailure) as failure:
                await body_of(fetch, listener.url())
    assert "words of the error page" not in str(failure.value)
    assert str(status) in str(failure.value)


async def test_a_busy_server_is_asked_again_when_it_says() -> None:
    async with listening() as listener:
        listener.pages["/"] = page(429, Retry_After="7")
        async with guard(allow_private=True) as fetch:
            with pytest.raises(TransientFailure) as busy:
                await body_of(fetch, listener.url())
    assert busy.value.retry_after_s == 7


async def test_a_server_that_is_not_there_and_a_name_nobody_knows_may_be_tried_again() -> None:
    async with listening() as listener:
        gone = listener.url()
    async with guard(allow_private=True) as fetch:
        for url in (gone, "http://no-such-name.invalid/"):
            with pytest.raises(TransientFailure) as failure:
                await body_of(fetch, url)
            assert failure.value.code == "unreachable"


async def test_a_connection_that_breaks_in_the_body_may_be_tried_again() -> None:
    async def broken(writer: asyncio.StreamWriter, head: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")

    async with listening() as listener:
        listener.pages["/"] = broken
        async with guard(allow_private=True) as fetch:
            with pytest.raises(TransientFailure) as failure:
                await body_of(fetch, listener.url())
    assert failure.value.code == "unreachable"


async def test_neither_proxies_nor_credentials_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as proxy, listening() as listener:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        monkeypatch.setenv("ALL_PROXY", proxy.url())
        listener.pages["/"] = page(200, b"straight")
        async with guard(allow_private=True) as fetch:
            assert await body_of(fetch, listener.url("/", host="user:secret@127.0.0.1")) == b"straight"
        assert proxy.asked == []
        assert "secret" not in listener.asked[0]
        assert "authorization" not in listener.asked[0].lower()
