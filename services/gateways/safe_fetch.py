"""The one way out to addresses that users name. Refuses what points inside (SSRF, OWASP), redirects and DNS included.

Every hop is resolved here and the connection goes to the address that was checked, so a name that resolves differently a
moment later (DNS rebinding) gains nothing. Decimal, octal and hexadecimal forms of IPv4 are what the resolver says they are;
IPv4 inside IPv6 (mapped, 6to4, NAT64) is unpacked before it is judged. One deadline holds for all hops and the whole body, so
a page that drips cannot hold a worker.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import httpx

from schemas.errors import PermanentFailure, TransientFailure
from schemas.settings import FetchSettings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_ALLOWED_PORTS = frozenset({80, 443, 8000, 8080, 8443})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class ForbiddenAddress(PermanentFailure):
    """The URL leads to an address that must not be fetched from here."""

    def __init__(self, detail: str) -> None:
        super().__init__("unsupported", detail)

    def __reduce__(self) -> tuple[type, tuple[str]]:  # type: ignore[override]
        return type(self), (self.detail,)


@dataclass(frozen=True)
class Fetched:
    """An answer whose body is still to be read, at most `max_bytes` of it."""

    url: str
    media_type: str | None
    body: AsyncIterator[bytes]


class SafeFetch:
    """Fetches one URL at a time, each hop checked and pinned, all of it within one deadline."""

    def __init__(
        self, settings: FetchSettings, max_bytes: int, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._settings = settings
        self._max_bytes = max_bytes
        self._client = httpx.AsyncClient(
            timeout=settings.timeout_s,
            follow_redirects=False,
            trust_env=False,
            transport=transport or httpx.AsyncHTTPTransport(retries=0),
            headers={"User-Agent": "Perdure"},
        )

    async def close(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def get(self, url: str) -> AsyncIterator[Fetched]:
        """Follows redirects, checking each hop. PermanentFailure for what will not change, TransientFailure for the rest."""
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        for _ in range(self._settings.redirects + 1):
            async with _until(deadline):
                address = await self.checked_address(url)
            async with self._send(url, address, deadline) as response:
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    url = urljoin(url, response.headers["location"])
                    continue
                self._check_status(url, response)
                media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower() or None
                yield Fetched(url, media_type, self._bounded(response, deadline))
                return
        raise PermanentFailure(
            "unsupported", f"More than {self._settings.redirects} redirects (PERDURE_FETCH__REDIRECTS)"
        )

    @asynccontextmanager
    async def _send(self, url: str, address: Address, deadline: float) -> AsyncIterator[httpx.Response]:
        """Connects to the checked address; Host header and TLS name stay the URL's."""
        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            raise ForbiddenAddress("The URL is malformed") from None
        pinned = parts.copy_with(host=str(address), userinfo=b"")
        extensions = {"sni_hostname": parts.host} if parts.scheme == "https" else {}
        headers = {"Host": parts.netloc.decode("ascii")}
        request = self._client.build_request("GET", pinned, headers=headers, extensions=extensions)
        try:
            async with _until(deadline):
                response = await self._client.send(request, stream=True)
        except httpx.TimeoutException as error:
            raise _too_slow() from error
        except httpx.HTTPError as error:
            raise TransientFailure("unreachable", f"{parts.host} could not be reached") from error
        try:
            yield response
        finally:
            await response.aclose()

    @staticmethod
    def _check_status(url: str, response: httpx.Response) -> None:
        host, status = urlsplit(url).hostname, response.status_code
        if status == 429 or status >= 500:
            wait = response.headers.get("retry-after", "")
            raise TransientFailure("unreachable", f"{host} answered {status}", float(wait) if wait.isdigit() else None)
        if status != 200:
            raise PermanentFailure("unsupported", f"{host} answered {status}; the page cannot be fetched")

    async def _bounded(self, response: httpx.Response, deadline: float) -> AsyncIterator[bytes]:
        received, pieces = 0, aiter(response.aiter_bytes())
        try:
            while True:
                async with _until(deadline):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                received += len(piece)
                if received > self._max_bytes:
                    detail = f"The page is over {self._max_bytes} bytes (PERDURE_LIMITS__UPLOAD_BYTES)"
                    raise PermanentFailure("too_large", detail)
                yield piece
        except httpx.TimeoutException as error:
            raise _too_slow() from error
        except httpx.HTTPError as error:
            raise TransientFailure("unreachable", "The connection broke while the page was read") from error

    async def checked_address(self, url: str) -> Address:
        """The address that this URL may be fetched from. Raises ForbiddenAddress or TransientFailure (no such name now)."""
        try:
            parts = urlsplit(url)
        except ValueError:
            raise ForbiddenAddress("The URL is malformed") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ForbiddenAddress("Only http and https URLs can be fetched")
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise ForbiddenAddress("The URL's port is not a number") from None
        if port not in _ALLOWED_PORTS and not self._settings.allow_private:
            raise ForbiddenAddress(f"Port {port} cannot be fetched from")
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise TransientFailure("unreachable", f"The name {parts.hostname} cannot be resolved") from None
        addresses = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in found]
        for address in addresses:
            if not self._settings.allow_private and not is_public(address):
                raise ForbiddenAddress(f"{parts.hostname} is an address inside a private network")
        return addresses[0]


@asynccontextmanager
async def _until(deadline: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError as error:
        raise _too_slow() from error


def _too_slow() -> TransientFailure:
    return TransientFailure("timeout", "The page did not come in time (PERDURE_FETCH__TIMEOUT_S)")


def is_public(address: Address) -> bool:
    """Reachable from anywhere and nobody's inside: RFC 6890 and what hides an IPv4 address in IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        for inner in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
            if inner is not None and not is_public(inner):
                return False
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return address.is_global and not address.is_multicast and not address.is_reserved
