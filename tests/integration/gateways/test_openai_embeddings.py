"""An embedding endpoint's answers and errors, over a real local port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import numpy as np
import pytest

from schemas.errors import EngineDown, Failure, PermanentFailure, TransientFailure
from schemas.settings import EmbeddingSettings
from services.gateways.embedding_model import RejectedTexts
from services.gateways.local_tokens import LocalTokens
from services.gateways.openai_embeddings import OpenAIEmbedding
from tests.fakes.openai_server import DIMENSIONS, OpenAIServer, Reply, embedding

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def model(server: OpenAIServer) -> AsyncIterator[OpenAIEmbedding]:
    model = model_at(server.url)
    await model.start()
    yield model
    await model.stop()


def model_at(url: str, timeout_s: float = 20) -> OpenAIEmbedding:
    settings = EmbeddingSettings(batch=8, timeout_s=timeout_s)
    return OpenAIEmbedding("test", url, "key", settings, LocalTokens(), lambda: NOW)


def unit(text: str) -> np.ndarray:
    vector = np.array(embedding(text), np.float32)
    return vector / np.linalg.norm(vector)


async def test_vectors_come_normalised_and_in_the_order_of_the_texts(
    server: OpenAIServer, model: OpenAIEmbedding
) -> None:
    texts = [f"text number {number} {number}" for number in range(20)]
    vectors = await model.embed_passages(texts)
    assert vectors.dtype == np.float32
    assert model.dimensions == DIMENSIONS
    np.testing.assert_allclose(vectors, np.array([unit(text) for text in texts]), rtol=1e-6)
    assert [len(request.body["input"]) for request in server.received] == [1, 8, 8, 4]
    assert server.received[0].headers["authorization"] == "Bearer key"


async def test_a_repeated_query_is_not_asked_again(server: OpenAIServer, model: OpenAIEmbedding) -> None:
    first = await model.embed_query("who pays")
    again = await model.embed_query("who pays")
    assert server.count("/embeddings") == 2  # the one of `start`, and one
    assert np.array_equal(first, again)
    assert not first.flags.writeable


@pytest.mark.parametrize("bad", [{3}, {0, 19}, {4, 5, 6, 7}, set(range(20))])
async def test_only_the_refused_texts_fail_and_the_others_keep_their_vectors(
    server: OpenAIServer, model: OpenAIEmbedding, bad: set[int]
) -> None:
    server.script("embeddings", Reply(refuse_text="POISON", error={"message": "cannot embed this"}))
    texts = [f"text {number} {'POISON' if number in bad else 'fine'}" for number in range(20)]
    with pytest.raises(RejectedTexts) as caught:
        await model.embed_passages(texts)
    assert set(caught.value.reasons) == bad
    assert "cannot embed this" in caught.value.reasons[min(bad)]
    for number, text in enumerate(texts):
        if number in bad:
            assert np.isnan(caught.value.vectors[number]).all()
        else:
            np.testing.assert_allclose(caught.value.vectors[number], unit(text), rtol=1e-6)


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (Reply(status=429), TransientFailure, "model_unavailable"),
        (Reply(status=500), TransientFailure, "model_unavailable"),
        (Reply(status=503), TransientFailure, "model_unavailable"),
        (Reply(drop_after=0), TransientFailure, "model_unavailable"),
        (Reply(vectors=2), TransientFailure, "model_unavailable"),
        (Reply(vectors=0), TransientFailure, "model_unavailable"),
        (Reply(status=401), PermanentFailure, "model_rejected"),
        (Reply(status=404), PermanentFailure, "model_rejected"),
    ],
)
async def test_each_error_has_its_kind_and_is_not_tried_again(
    server: OpenAIServer, model: OpenAIEmbedding, reply: Reply, kind: type[Failure], code: str
) -> None:
    server.script("embeddings", reply)
    with pytest.raises(Failure) as caught:
        await model.embed_passages(["a", "b", "c"])
    assert (type(caught.value), caught.value.code) == (kind, code)
    assert server.count("/embeddings") == 2


@pytest.mark.parametrize(("header", "wait_s"), [("7", 7.0), ("Mon, 04 May 2026 12:00:30 GMT", 30.0), ("soon", None)])
async def test_the_wait_asked_for_is_passed_on(
    server: OpenAIServer, model: OpenAIEmbedding, header: str, wait_s: float | None
) -> None:
    server.script("embeddings", Reply(status=429, retry_after=header))
    with pytest.raises(TransientFailure) as caught:
        await model.embed_passages(["a"])
    assert caught.value.retry_after_s == wait_s


async def test_a_server_that_hangs_times_out(server: OpenAIServer) -> None:
    server.script("embeddings", Reply(delay_s=30))
    model = model_at(server.url, timeout_s=0.2)
    with pytest.raises(TransientFailure):
        await model.embed_passages(["a"])
    await model.stop()


async def test_a_port_where_nothing_listens_is_an_engine_that_is_down() -> None:
    async with OpenAIServer() as gone:
        url = gone.url
    model = model_at(url)
    with pytest.raises(EngineDown) as caught:
        await model.embed_query("a")
    assert caught.value.engine == "embedding model"
    await model.stop()


async def test_empty_and_broken_texts_are_sent_in_a_form_the_server_takes(
    server: OpenAIServer, model: OpenAIEmbedding
) -> None:
    assert (await model.embed_passages(["", "a\ud800b"])).shape == (2, DIMENSIONS)
    assert server.received[-1].body["input"] == [" ", "a?b"]
