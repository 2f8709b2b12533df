"""A server that speaks OpenAI's protocol on a local port and answers by script.

In a test: `async with OpenAIServer() as server: server.script("chat", Reply(status=429, retry_after="3"))`.
For programs started by a test: `python -m tests.fakes.openai_server PORT`, then `POST /script` with
{"chat": [{"status": 500}, ...], "embeddings": [...]} and `GET /received`. Scripted replies are used once, in order;
after them the default reply: chat echoes, embeddings are hashed bags of words.

A plan answers by place instead, so that a request that is made again gets the same reply: `server.plan("tour", reply, ...)`
(or `{"plans": {"tour": [...]}}`) holds for conversations in which a user wrote `[[tour]]`; the first reply goes to the
request without an assistant's message after that one, and so on.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Any

DIMENSIONS = 32
CONTEXT_LENGTH_ERROR = {
    "message": "This model's maximum context length is 8192 tokens.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
}


@dataclass(frozen=True)
class Reply:
    """One scripted answer. A status other than 200 sends `error` as a body; else the chat fields describe the stream."""

    status: int = 200
    error: dict[str, Any] | None = None
    retry_after: str | None = None
    text: str | None = None
    """None: the default text. Sent in pieces of one word."""
    thinking: str = ""
    refusal: str = ""
    finish_reason: str | None = "stop"
    delay_s: float = 0
    """Before every piece of a stream, or before the whole reply."""
    drop_after: int | None = None
    """Close the connection after this many pieces, without ending the stream."""
    calls: Sequence[Mapping[str, str]] = ()
    """Tool calls: {"name", "arguments" (JSON text, or what a broken model sends), "id"?}."""
    refuse_text: str | None = None
    """Embeddings: 400 when one of the texts holds this. Such a reply stays in force."""
    vectors: int | None = None
    """Embeddings: send only so many of them."""


@dataclass(frozen=True)
class Received:
    """One request. `finished` is set when its reply was sent whole, `cut` when the client went away before."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    finished: asyncio.Event = field(default_factory=asyncio.Event, compare=False)
    cut: asyncio.Event = field(default_factory=asyncio.Event, compare=False)


def embedding(text: str) -> list[float]:
    """Texts that share words point the same way."""
    vector = [0.0] * DIMENSIONS
    for word, count in Counter(text.lower().split() or [""]).items():
        vector[sha256(word.encode()).digest()[0] % DIMENSIONS] += count
    return vector


class OpenAIServer:
    """`received` lists what came; `url` is the base URL with /v1."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._scripts: dict[str, deque[Reply]] = {"chat": deque(), "embeddings": deque()}
        self._plans: dict[str, list[Reply]] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> OpenAIServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**24)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections:
            writer.close()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, kind: str, *replies: Reply) -> None:
        self._scripts[kind].extend(replies)

    def plan(self, name: str, *replies: Reply) -> None:
        self._plans[name] = list(replies)

    def count(self, path_end: str) -> int:
        return sum(request.path.endswith(path_end) for request in self.received)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            await self._answer(await _read_request(reader), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if request.path == "/script":
            for name, replies in request.body.pop("plans", {}).items():
                self.plan(name, *(Reply(**reply) for reply in replies))
            for kind, replies in request.body.items():
                self.script(kind, *(Reply(**reply) for reply in replies))
            await _send_json(writer, 200, {})
            return
        if request.path == "/received":
            await _send_json(writer, 200, [{"path": each.path, "body": each.body} for each in self.received])
            return
        self.received.append(request)
        watch = asyncio.create_task(self._watch(request, reader))
        try:
            if request.path.endswith("/chat/completions"):
                await self._chat(request, writer)
            elif request.path.endswith(("/responses", "/messages")):  # other protocols get scripted errors only
                await _send_error(writer, self._next("chat"), 404)
            elif request.path.endswith("/embeddings"):
                await self._embeddings(request, writer)
            else:
                await _send_json(writer, 404, {"error": {"message": f"no such path: {request.path}"}})
        except ConnectionError:
            request.cut.set()
        finally:
            watch.cancel()

    async def _watch(self, request: Received, reader: asyncio.StreamReader) -> None:
        """The client sends nothing after its request, so what can be read is its end."""
        await reader.read(1)
        if not request.finished.is_set():
            request.cut.set()

    def _planned(self, request: Received) -> Reply | None:
        """The last mark of a plan counts; a conversation that has come further than its plan gets the plan's last reply."""
        messages = request.body["messages"]
        for place in range(len(messages) - 1, -1, -1):
            if messages[place]["role"] != "user":
                continue
            for name, replies in self._plans.items():
                if f"[[{name}]]" in str(messages[place]["content"]):
                    said = sum(message["role"] == "assistant" for message in messages[place:])
                    planned: Reply = replies[min(said, len(replies) - 1)]
                    return planned
        return None

    def _next(self, kind: str) -> Reply:
        script = self._scripts[kind]
        if script and script[0].refuse_text is not None:
            return script[0]
        return script.popleft() if script else Reply()

    async def _embeddings(self, request: Received, writer: asyncio.StreamWriter) -> None:
        reply, texts = self._next("embeddings"), request.body["input"]
        await asyncio.sleep(reply.delay_s)
        if reply.drop_after is not None:
            return
        if reply.status != 200 or (reply.refuse_text is not None and any(reply.refuse_text in text for text in texts)):
            await _send_error(writer, reply, 400)
        else:
            rows = [{"object": "embedding", "index": i, "embedding": embedding(text)} for i, text in enumerate(texts)]
            usage = {"prompt_tokens": sum(len(text.split()) for text in texts), "total_tokens": 0}
            # A server may send them in any order: the index tells.
            data = rows[: reply.vectors][::-1]
            body = {"object": "list", "data": data, "model": request.body["model"], "usage": usage}
            await _send_json(writer, 200, body)
        request.finished.set()

    async def _chat(self, request: Received, writer: asyncio.StreamWriter) -> None:
        reply = self._planned(request) or self._next("chat")
        if reply.status != 200:
            await asyncio.sleep(reply.delay_s)
            await _send_error(writer, reply, reply.status)
            request.finished.set()
            return
        pieces = _chat_pieces(request, reply)
        if not request.body.get("stream"):
            await asyncio.sleep(reply.delay_s)
            await _send_json(writer, 200, _whole(request, reply))
            request.finished.set()
            return
        await _send_head(writer, 200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        for number, piece in enumerate(pieces):
            await asyncio.sleep(reply.delay_s)
            if reply.drop_after is not None and number >= reply.drop_after:
                return
            await _send_chunk(writer, f"data: {json.dumps(piece)}\n\n")
        await _send_chunk(writer, "data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        request.finished.set()


def _reply_text(request: Received, reply: Reply) -> str:
    return f"You said: {request.body['messages'][-1]['content']}" if reply.text is None else reply.text


def _usage(request: Received, text: str) -> dict[str, int]:
    asked = sum(len(str(message["content"]).split()) for message in request.body["messages"])
    return {"prompt_tokens": asked, "completion_tokens": len(text.split()), "total_tokens": asked + len(text.split())}


def _chat_pieces(request: Received, reply: Reply) -> list[dict[str, Any]]:
    text = "" if reply.refusal or (reply.calls and reply.text is None) else _reply_text(request, reply)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": word} for word in reply.thinking.splitlines(keepends=True)]
    deltas += [{"content": word + " "} for word in text.split()]
    deltas += [{"tool_calls": [piece]} for piece in _call_pieces(reply)]
    deltas += [{"refusal": word + " "} for word in reply.refusal.split()]
    base = {"id": "chat-1", "object": "chat.completion.chunk", "created": 0, "model": request.body["model"]}
    pieces = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if reply.finish_reason:
        finish = "tool_calls" if reply.calls and reply.finish_reason == "stop" else reply.finish_reason
        pieces.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*pieces, {**base, "choices": [], "usage": _usage(request, text)}]


def _call_pieces(reply: Reply) -> list[dict[str, Any]]:
    """Each call's head, then its arguments in two pieces, as providers send them."""
    pieces: list[dict[str, Any]] = []
    for index, call in enumerate(reply.calls):
        arguments, half = call["arguments"], len(call["arguments"]) // 2
        head = {"name": call["name"], "arguments": ""}
        known = call.get("id") or f"call_{index}_{sha256((call['name'] + arguments).encode()).hexdigest()[:8]}"
        pieces.append({"index": index, "id": known, "type": "function", "function": head})
        pieces += [{"index": index, "function": {"arguments": part}} for part in (arguments[:half], arguments[half:])]
    return pieces


def _whole(request: Received, reply: Reply) -> dict[str, Any]:
    text = _reply_text(request, reply)
    message = {"role": "assistant", "content": text, "refusal": reply.refusal or None}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": request.body["model"],
        "choices": [choice],
        "usage": _usage(request, text),
    }


async def _read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    path = head[0].split(" ")[1]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(path, headers, json.loads(body) if body else {})


async def _send_head(writer: asyncio.StreamWriter, status: int, kind: str, headers: dict[str, str]) -> None:
    lines = {"Content-Type": kind, "Connection": "close", **headers}
    writer.write(f"HTTP/1.1 {status} Scripted\r\n".encode())
    writer.write("".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode() + b"\r\n")
    await writer.drain()


async def _send_json(
    writer: asyncio.StreamWriter, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:
    data = json.dumps(body).encode()
    await _send_head(writer, status, "application/json", {"Content-Length": str(len(data)), **(headers or {})})
    writer.write(data)
    await writer.drain()


async def _send_error(writer: asyncio.StreamWriter, reply: Reply, status: int) -> None:
    error = reply.error or {"message": f"scripted {status}", "type": "scripted", "code": None}
    headers = {"Retry-After": reply.retry_after} if reply.retry_after else {}
    await _send_json(writer, reply.status if reply.status != 200 else status, {"error": error}, headers)


async def _send_chunk(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


async def main(port: int) -> None:
    server = OpenAIServer()
    await server.start(port)
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
