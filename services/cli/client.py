"""The API as the commands speak it: one httpx client, problems as failures, repeats only where nothing can happen twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx

from services.cli.connection import Connection
from services.cli.failures import CliFailure, Refusal, Unreachable

PATIENCE_S = 30.0
"""How long a server that has answered before may be away (a restart) before a read gives up."""
_PAGE = 100
_AWAY = (502, 503, 504)
Parameters = Mapping[str, str | int | bool | Sequence[str] | None]


class FormFile(NamedTuple):
    """A file sent as it is read, never held in memory."""

    name: str
    content: BinaryIO
    media_type: str


def path_of(*parts: str) -> str:
    """`/v1/…` with each part quoted, so an id typed by a person stays one segment."""
    return "/v1/" + "/".join(quote(part, safe=":") for part in parts)


class ApiClient:
    """Reads are repeated for `patience_s` once the server has answered; a write is sent once, under an Idempotency-Key.

    A 429 means that nothing was done, so any call waits for as long as it says (within the same patience).
    """

    def __init__(
        self,
        connection: Connection,
        *,
        patience_s: float = PATIENCE_S,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        new_key: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self.connection = connection
        self.patience_s = patience_s
        self.now = now
        self.sleep = sleep
        self._new_key = new_key
        self._reached = False
        self._http = httpx.Client(
            base_url=connection.url,
            headers={"Authorization": f"Bearer {connection.key}", "User-Agent": "perdure-cli"},
            timeout=httpx.Timeout(60, connect=5),
            trust_env=not _is_loopback(connection.url),  # a proxy has no business with this machine's own server
        )

    def __enter__(self) -> ApiClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, parameters: Parameters | None = None) -> Any:
        return _body(self._read(path, parameters))

    def get_text(self, path: str, parameters: Parameters | None = None) -> str:
        return self._read(path, parameters).content.decode("utf-8", errors="replace")

    def probe(self, path: str) -> tuple[int, Any]:
        """(status, body) of one try; a 503 is an answer here, not a failure."""
        response = self._sent(self._http.build_request("GET", path))
        if response.status_code not in (200, 503):
            raise _refusal(response)
        return response.status_code, _body(response)

    def items(self, path: str, parameters: Parameters | None = None, *, limit: int) -> dict[str, Any]:
        """{items, next_cursor} of up to `limit` entries, gathered over pages."""
        found: list[Any] = []
        cursor: str | None = None
        while len(found) < limit:
            size = min(_PAGE, limit - len(found))
            page = self.get(path, {**(parameters or {}), "cursor": cursor, "limit": size})
            if isinstance(page, list):  # what has no pages is a plain list
                return {"items": page[:limit], "next_cursor": None}
            found += page["items"]
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        return {"items": found, "next_cursor": cursor}

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The reply to a write; None when it has no body. POST carries an Idempotency-Key."""
        headers = {"Idempotency-Key": self._new_key()} if method == "POST" else {}
        request = self._http.build_request(method, path, json=body, headers=headers)
        return _body(checked(self._patiently_limited(lambda: self._sent(request))))

    def upload(self, path: str, fields: Mapping[str, str | list[str]], file: FormFile) -> Any:
        key = self._new_key()

        def attempt() -> httpx.Response:
            file.content.seek(0)
            request = self._http.build_request(
                "POST", path, data=dict(fields), files={"file": file}, headers={"Idempotency-Key": key},
                timeout=httpx.Timeout(300, connect=5),
            )  # fmt: skip
            return self._sent(request)

        return _body(checked(self._patiently_limited(attempt)))

    def stream(
        self, path: str, headers: Mapping[str, str], read_timeout_s: float
    ) -> AbstractContextManager[httpx.Response]:
        timeout = httpx.Timeout(read_timeout_s, connect=5)
        return self._http.stream("GET", path, headers={"Accept": "text/event-stream", **headers}, timeout=timeout)

    def unreachable(self, error: Exception) -> Unreachable:
        reason = "did not answer in time" if isinstance(error, httpx.TimeoutException) else "does not answer"
        return Unreachable(f"Perdure at {self.connection.url} {reason}.", self.connection.start_hint)

    def _read(self, path: str, parameters: Parameters | None) -> httpx.Response:
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        request = self._http.build_request("GET", path, params=given)
        until, pauses = self.now() + self.patience_s, backoff()
        while True:
            pause = next(pauses)
            out_of_time = not self._reached or self.now() + pause > until
            try:
                response = self._patiently_limited(lambda: self._sent(request))
            except Unreachable:
                if out_of_time:
                    raise
            else:
                if response.status_code not in _AWAY or out_of_time:
                    return checked(response)
            self.sleep(pause)

    def _patiently_limited(self, attempt: Callable[[], httpx.Response]) -> httpx.Response:
        until = self.now() + self.patience_s
        while (response := attempt()).status_code == 429:
            wait_s = retry_after_s(response)
            if self.now() + wait_s > until:
                break
            self.sleep(wait_s)
        return response

    def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            response = self._http.send(request)
        except httpx.TransportError as error:
            raise self.unreachable(error) from error
        self._reached = True
        return response


def backoff(first_s: float = 0.2, most_s: float = 3.0) -> Iterator[float]:
    pause = first_s
    while True:
        yield pause
        pause = min(most_s, pause * 2)


def retry_after_s(response: httpx.Response) -> float:
    try:
        return max(0.05, float(response.headers.get("retry-after", "1")))
    except ValueError:  # the HTTP date form: rare, and a second is a fair guess
        return 1.0


def checked(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    raise _refusal(response)


def _refusal(response: httpx.Response) -> CliFailure:
    """What stands behind a proxy may answer HTML: then the status is all there is to say."""
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    return Refusal(response.status_code, problem if isinstance(problem, dict) else {})


def _body(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise CliFailure(
            f"{response.url.host} answered something that is not JSON.",
            "not_perdure",
            "Check that PERDURE_URL is a Perdure.",
        ) from None


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}
