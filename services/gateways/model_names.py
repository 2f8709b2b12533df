"""Which chat models may be named: the built-in one, or pydantic-ai's `provider:model`."""

from __future__ import annotations

from schemas.errors import InvalidRequest

EXTRACTIVE = "extractive"


def check_model_name(name: str) -> str:
    """The name itself. Whether the provider is set up shows when it is asked."""
    provider, _, model = name.partition(":")
    if name == EXTRACTIVE or (provider and model):
        return name
    raise InvalidRequest(
        f"'{name}' is no model: use 'extractive' or 'provider:model', for example 'openai-chat:gpt-5'."
    )
