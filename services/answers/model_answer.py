"""A chat model's answer: streamed through the citation filter, then checked against its passages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, cast

from schemas.answers import AnswerRequest, Citation
from schemas.errors import PermanentFailure
from schemas.passages import Passage
from schemas.settings import AnswerSettings
from services.answers.prompt import Prompt, build_prompt, fewer_passages
from services.events.token_writer import TokenWriter
from services.gateways.chat_model import ChatDelta, ChatEnd, ChatModel, Turn
from services.retrieval.citation_marks import CitationStream
from services.retrieval.citations import check_citations, read_citations, supplied_numbers

CONTEXT_LENGTH = "context_length"
CUT_SHORT = " […]"


@dataclass(frozen=True)
class Written:
    """A checked answer of a chat model."""

    text: str
    answered: bool
    citations: Sequence[Citation]
    usage: dict[str, Any]


class ModelAnswer:
    """One attempt at one answer. Transient failures go up: Temporal tries again and readers are told to forget."""

    def __init__(self, model: ChatModel, settings: AnswerSettings, failpoint: Callable[[str], None]) -> None:
        self._model = model
        self._settings = settings
        self._failpoint = failpoint

    async def write(self, request: AnswerRequest, passages: list[Passage], writer: TokenWriter) -> Written:
        """A context overflow shrinks the passages by half and asks again; an empty reply is PermanentFailure("empty_reply")."""
        while True:
            try:
                return await self._ask(request, passages, writer)
            except PermanentFailure as failure:
                fewer = fewer_passages(passages)
                if failure.code != CONTEXT_LENGTH or not fewer:
                    raise
                passages = fewer

    async def _ask(self, request: AnswerRequest, passages: list[Passage], writer: TokenWriter) -> Written:
        prompt = build_prompt(request.question, passages, request.conversation)
        supplied = supplied_numbers(passages)
        marks, text, end = CitationStream(supplied), "", None
        async with aclosing(cast(AsyncGenerator[ChatDelta | ChatEnd, None], self._stream(prompt))) as stream:
            async for item in stream:
                if isinstance(item, ChatEnd):
                    end = item
                    continue
                await writer.write(item.thinking, "thinking")
                text += item.text
                await writer.write(marks.feed(item.text))
                self._failpoint("generate.mid_stream")
        await writer.write(marks.close())
        if not text.strip():
            raise PermanentFailure("empty_reply", "The model gave an empty reply")
        checked = check_citations(
            read_citations(text, supplied), passages, support_threshold=self._settings.support_threshold
        )
        cut = end is not None and end.finish_reason == "length"
        return Written(
            checked.text + (CUT_SHORT if cut else ""),
            answered=bool(checked.citations),
            citations=checked.citations,
            usage={
                "input_tokens": end.input_tokens if end else 0,
                "output_tokens": end.output_tokens if end else 0,
                "cost": end.cost if end else None,
                "finish_reason": end.finish_reason if end else None,
            },
        )

    def _stream(self, prompt: Prompt) -> AsyncIterator[ChatDelta | ChatEnd]:
        said = [Turn(cast(Literal["user", "assistant"], each.role), each.text) for each in prompt.messages]
        return self._model.stream(prompt.system, said, self._settings.max_output_tokens)
