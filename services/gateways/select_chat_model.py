"""The chat model that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from schemas.settings import Settings
from services.gateways.chat_model import ChatModel
from services.gateways.model_names import EXTRACTIVE


def build_chat_model(settings: Settings, env: Mapping[str, str], timeout_s: float) -> ChatModel | None:
    """None for `extractive`, which quotes and needs no model. ValueError, in one line for a person, when the setting
    names no usable model."""
    if settings.chat_model == EXTRACTIVE:
        return None
    # Loaded only when a provider is configured: the SDKs take seconds, and 60 MB, to import.
    adapter = import_module("services.gateways.pydantic_ai_chat")
    model: ChatModel = adapter.build_pydantic_ai_chat(settings.chat_model, env, timeout_s)
    return model


def chat_models(settings: Settings, env: Mapping[str, str], timeout_s: float) -> Callable[[str], ChatModel]:
    """Chat models by name, each built once; a reply may take `timeout_s`."""
    built: dict[str, ChatModel] = {}

    def by_name(name: str) -> ChatModel:
        if name not in built:
            model = build_chat_model(settings.model_copy(update={"chat_model": name}), env, timeout_s)
            if model is None:
                raise ValueError("the extractive model is not a chat model")
            built[name] = model
        return built[name]

    return by_name
