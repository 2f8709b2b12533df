"""An embedding model behind OpenAI's protocol (`POST /embeddings`), as many servers speak it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np

from schemas.errors import EngineDown, PermanentFailure, TransientFailure
from schemas.settings import EmbeddingSettings
from services.gateways.embedding_model import RejectedTexts, TokenCounter, Vectors
from services.gateways.query_vectors import QueryVectors
from services.gateways.retry_after import retry_after_s

ENGINE = "embedding model"
MAX_TOKENS = 8_191
SPLIT = {400, 413, 422}
"""Statuses that may be about one text of the request only."""
DEFAULT_URL = "https://api.openai.com/v1"


class _Refused(Exception):
    """The server will not take this request as it is."""


class OpenAIEmbedding:
    """One request per batch, none repeated. Texts are refused one by one: a refused batch is halved until the bad one
    is alone. `start` asks once, to learn the dimensions."""

    max_tokens = MAX_TOKENS

    def __init__(
        self,
        model: str,
        base_url: str | None,
        api_key: str | None,
        settings: EmbeddingSettings,
        tokens: TokenCounter,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.name = f"openai:{model}"
        self.tokens = tokens
        self._model = model
        self._settings = settings
        self._now = now
        self._dimensions: int | None = None
        self._query_vectors = QueryVectors(self.name)
        self._starting = asyncio.Lock()
        self._client = httpx.AsyncClient(
            base_url=(base_url or DEFAULT_URL).rstrip("/") + "/",
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=settings.timeout_s,
            transport=httpx.AsyncHTTPTransport(retries=0),
        )

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            raise PermanentFailure("model_unavailable", f"{self.name} was not asked yet: its dimensions are unknown")
        return self._dimensions

    async def start(self) -> None:
        async with self._starting:
            if self._dimensions is None:
                await self._ask(["dimensions"])

    async def stop(self) -> None:
        await self._client.aclose()

    async def embed_query(self, text: str) -> Vectors:
        if (known := self._query_vectors.get(text)) is not None:
            return known
        return self._query_vectors.keep(text, (await self.embed_passages([text]))[0].copy())

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        await self.start()
        vectors = np.full((len(texts), self.dimensions), np.nan, np.float32)
        refused: dict[int, str] = {}
        for first in range(0, len(texts), self._settings.batch):
            await self._fill(vectors, refused, texts, first, min(first + self._settings.batch, len(texts)))
        if refused:
            raise RejectedTexts(refused, vectors)
        return vectors

    async def _fill(
        self, vectors: Vectors, refused: dict[int, str], texts: Sequence[str], start: int, end: int
    ) -> None:
        """Rows [start, end) of `vectors`, or their reasons in `refused`."""
        try:
            vectors[start:end] = await self._ask(texts[start:end])
        except _Refused as error:
            if end - start == 1:
                refused[start] = str(error)
                return
            middle = (start + end) // 2
            await self._fill(vectors, refused, texts, start, middle)
            await self._fill(vectors, refused, texts, middle, end)

    async def _ask(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": [_sendable(text) for text in texts], "encoding_format": "float"}
        try:
            response = await self._client.post("embeddings", json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise EngineDown(ENGINE, f"{self._client.base_url} cannot be reached: {error}") from error
        except httpx.TransportError as error:
            raise TransientFailure(
                "model_unavailable", f"no answer from {self.name}: {type(error).__name__}"
            ) from error
        self._check(response)
        return self._vectors(response, len(texts))

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == httpx.codes.OK:
            return
        detail = f"{self.name} answered {status}: {_message(response)}"
        if status in SPLIT:
            raise _Refused(detail)
        if status in {408, 409, 425, 429} or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            wait = retry_after_s(response.headers.get("retry-after"), self._now())
            raise TransientFailure("model_unavailable", detail, wait)
        raise PermanentFailure("model_rejected", detail)

    def _vectors(self, response: httpx.Response, count: int) -> Vectors:
        try:
            rows = sorted(response.json()["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        except (ValueError, KeyError, TypeError) as error:
            raise TransientFailure("model_unavailable", f"{self.name} sent no embeddings ({error!r})") from error
        if len(vectors) != count or not np.isfinite(lengths).all() or not lengths.all():
            raise TransientFailure("model_unavailable", f"{self.name} sent {len(vectors)} vectors for {count} texts")
        if self._dimensions not in {None, vectors.shape[1]}:
            raise PermanentFailure("model_rejected", f"{self.name} now has {vectors.shape[1]} dimensions")
        self._dimensions = vectors.shape[1]
        return np.asarray(vectors / lengths, np.float32)


def _sendable(text: str) -> str:
    """Without lone surrogates, which no JSON in UTF-8 holds, and never empty, which servers refuse."""
    return text.encode("utf-8", "replace").decode() or " "


def _message(response: httpx.Response) -> str:
    """What the server says is wrong, in at most 300 characters."""
    try:
        body: Any = response.json()
    except ValueError:
        return response.text[:300]
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:300]
