"""The chat model that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from schemas.settings import Settings
from services.gateways.chat_model import ChatModel

EXTRACTIVE = "extractive"


def build_chat_model(settings: Settings, env: Mapping[str, str]) -> ChatModel | None:
    """None for `extractive`, which quotes and needs no model. ValueError, in one line for a person, when the setting
    names no usable model."""
    if settings.chat_model == EXTRACTIVE:
        return None
    # Loaded only when a provider is configured: the SDKs take seconds, and 60 MB, to import.
    adapter = import_module("services.gateways.pydantic_ai_chat")
    model: ChatModel = adapter.build_pydantic_ai_chat(settings.chat_model, env, settings.answers.timeout_s)
    return model
