"""A small real HTTP server that speaks the contract: the other edge of the CLI, with faults on request."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

KEY = "secret-key"
STAGES = ("received", "parsing", "embedding", "ready")
DOCUMENT = {
    "space_id": "s1", "parent_id": None, "title": None, "live_version": None, "searchable": False, "media_type": None,
    "bytes": 3, "warnings": [], "coverage": None, "error": None, "readers": ["space"], "tags": [], "owner": None,
    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
ANSWER = {
    "id": "a1", "run_id": "r1", "state": "succeeded", "question": "q", "answer": "Within one day [1].", "answered": True,
    "withheld": False, "stale": False, "usage": None, "model": "extractive",
    "citations": [{
        "n": 1, "document_id": "d1", "document_version": 1, "chunk_id": "c1", "title": "Security", "page_start": 3,
        "page_end": 3, "start": 0, "end": 10, "quote": "Report it within one day.",
    }],
}  # fmt: skip


@dataclass
class Faults:
    """`drops` lists, per connection to a stream, after how many events it breaks; `away` answers 503 so many times,
    `away_on_look` does so at that look at a document.
    """

    drops: list[int] = field(default_factory=list)
    away: int = 0
    away_on_look: int | None = None
    limited_uploads: int = 0
    key_revoked: bool = False


@dataclass
class ContractServer:
    """State is plain attributes, so that a test sets what the server says and reads what it was told."""

    spaces: dict[str, str] = field(default_factory=lambda: {"handbook": "s1"})
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploads: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    events: list[tuple[str, str, Any]] = field(default_factory=list)
    """(id, type, data) of run r1."""
    answer: dict[str, Any] = field(default_factory=lambda: dict(ANSWER))
    replies: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)
    """(method, path) -> (status, body) for whatever needs no behaviour."""
    faults: Faults = field(default_factory=Faults)
    on_look: Callable[[dict[str, Any]], object] = lambda document: None
    holds_uploads: bool = False
    upload_began: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/documents", self._upload, methods=["POST"]),
                Route("/v1/documents/{id}", self._document, methods=["GET"]),
                Route("/v1/spaces/{name}", self._space, methods=["GET"]),
                Route("/v1/runs/{id}/events", self._events),
                Route("/{path:path}", self._scripted, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )

    def sent(self, method: str, path: str) -> list[tuple[dict[str, str], Any]]:
        """(headers, JSON body) of each such request."""
        found = [(headers, body) for verb, place, headers, body in self.requests if (verb, place) == (method, path)]
        return [(headers, json.loads(body) if body else None) for headers, body in found]

    async def _refused(self, request: Request) -> Response | None:
        body = b"" if request.url.path == "/v1/documents" else await request.body()
        self.requests.append((request.method, request.url.path, dict(request.headers), body))
        if self.faults.away:
            self.faults.away -= 1
            return problem(503, "unavailable", "Starting.")
        if self.faults.limited_uploads and (request.method, request.url.path) == ("POST", "/v1/documents"):
            self.faults.limited_uploads -= 1
            return problem(429, "rate_limited", "Too many requests.", headers={"Retry-After": "0.05"})
        if request.headers.get("authorization") != f"Bearer {KEY}" or self.faults.key_revoked:
            return problem(401, "unauthenticated", "The key is not valid.")
        return None

    async def _upload(self, request: Request) -> Response:
        if refused := await self._refused(request):
            return refused
        self.upload_began.set()
        while self.holds_uploads and not await request.is_disconnected():
            await asyncio.sleep(0.01)
        form = await request.form()
        file, external_id = form["file"], str(form["external_id"])
        assert isinstance(file, UploadFile)
        content = await file.read()
        self.uploads.append(_told(form, content, request))
        if not content:
            error = {"code": "empty", "stage": "received", "retryable": False, "detail": "The file is empty."}
            rejected = {"external_id": external_id, "outcome": "rejected", "error": error}
            return problem(422, "invalid_request", "No file was accepted.", documents=[rejected])
        known = next((entry for entry in self.documents.values() if entry["external_id"] == external_id), None)
        outcome = "created" if known is None else "unchanged"
        if known is None:
            known = {
                **DOCUMENT,
                "id": f"d{len(self.documents) + 1}",
                "external_id": external_id,
                "version": 1,
                "looks": 0,
            }
            self.documents[known["id"]] = known
        receipt = {
            "document_id": known["id"], "external_id": external_id, "run_id": "r9", "state": "received", "version": 1,
            "outcome": outcome, "duplicate_of": None, "error": None,
        }  # fmt: skip
        return JSONResponse({"documents": [receipt]}, 202)

    async def _document(self, request: Request) -> Response:
        """Each look finds the document one stage further."""
        if refused := await self._refused(request):
            return refused
        document = self.documents.get(request.path_params["id"])
        if document is None:
            return problem(404, "not_found", "There is no such document.")
        if document["looks"] == self.faults.away_on_look:
            self.faults.away_on_look = None
            return problem(503, "unavailable", "Starting again.")
        stage = STAGES[min(document["looks"], len(STAGES) - 1)]
        document["looks"] += 1
        self.on_look(document)
        shown = {**document, "state": stage, "stage": stage, "progress": {"done": 3, "total": 8, "unit": "chunks"}}
        if "locked" in document["external_id"] and stage == "embedding":
            error = {"code": "encrypted", "stage": "parsing", "retryable": False, "detail": "It has a password."}
            document["looks"] -= 1
            shown |= {"state": "failed", "error": error}
        return JSONResponse(shown)

    async def _space(self, request: Request) -> Response:
        if refused := await self._refused(request):
            return refused
        name = request.path_params["name"]
        if name not in self.spaces:
            return problem(404, "not_found", "There is no such space.")
        return JSONResponse({"id": self.spaces[name], "name": name})

    async def _events(self, request: Request) -> Response:
        if refused := await self._refused(request):
            return refused
        after = int(request.headers.get("last-event-id", "0.0").partition(".")[2])
        rest = [event for event in self.events if int(event[0].partition(".")[2]) > after]
        drop_after = self.faults.drops.pop(0) if self.faults.drops else None
        return StreamingResponse(_stream(rest, drop_after), media_type="text/event-stream")

    async def _scripted(self, request: Request) -> Response:
        if refused := await self._refused(request):
            return refused
        status, body = self.replies.get((request.method, request.url.path), (404, None))
        if status == 404 and body is None:
            return problem(404, "not_found", "There is no such thing here.")
        if isinstance(body, str):
            return PlainTextResponse(body, status)
        return Response(status_code=status) if body is None else JSONResponse(body, status)


def problem(status: int, kind: str, detail: str, headers: dict[str, str] | None = None, **extra: Any) -> JSONResponse:
    body = {"type": kind, "title": "A problem", "status": status, "detail": detail, **extra}
    return JSONResponse(body, status, headers=headers, media_type="application/problem+json")


async def _stream(events: list[tuple[str, str, Any]], drop_after: int | None) -> AsyncIterator[str]:
    yield ": hello\n\n"
    for count, (event_id, kind, data) in enumerate(events):
        if count == drop_after:
            yield f"id: {event_id}\nevent: {kind}\ndata: {{"  # cut in the middle of an event
            raise ConnectionResetError
        yield f"id: {event_id}\nevent: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def _told(form: FormData, content: bytes, request: Request) -> dict[str, Any]:
    return {
        "external_id": form["external_id"],
        "space": form["space"],
        "readers": form.getlist("readers"),
        "tags": form.getlist("tags"),
        "content": content,
        "idempotency_key": request.headers.get("idempotency-key"),
    }


class RunningServer:
    """Serves on a free port of this machine from a thread, until closed."""

    def __init__(self, state: ContractServer) -> None:
        config = uvicorn.Config(state.app(), port=0, log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)
        socket = config.bind_socket()
        state.url = f"http://127.0.0.1:{socket.getsockname()[1]}"
        self._sockets = [socket]
        self._thread.start()

    def _run(self) -> None:
        self._server.run(sockets=self._sockets)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
