"""A run in the words of Chat Completions.

The protocol knows content and its end, no calls but a client's own, no waiting and no taking back. So an agent's calls are not
told; a turn that waits for somebody says so in its content, the one thing that every client shows; claims that the final check
found unsupported follow as a note; and a text that was begun anew in other words ends the stream.
"""

from __future__ import annotations

import json
from typing import Any

from schemas.errors import Problem
from schemas.openai_protocol import ChatChoice, ChatCompletion, ChatReplyMessage, ChatUsage
from schemas.runs import RunEvent
from services.api.openai_errors import error_of
from services.api.openai_outcome import Outcome
from services.api.openai_text import SentText

DONE = b"data: [DONE]\n\n"
NOT_SUPPORTED = "\n\n> [unsupported] The passages that were cited do not say: {claims}"


class ChatTelling:
    """One run's reply; give it the run's events in their order."""

    def __init__(self, run_id: str, model: str, created: int, *, include_usage: bool) -> None:
        self._run_id = run_id
        self._model = model
        self._created = created
        self._include_usage = include_usage
        self._outcome = Outcome()
        self._sent = SentText(run_id)

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def apply(self, event: RunEvent) -> bytes:
        self._outcome.apply(event)
        match event.type:
            case "token":
                return self._content(self._sent.add(event.data["text"]))
            case "thinking":
                return self._chunk({"reasoning_content": event.data["text"]})
            case "answer.reset":
                self._sent.begin_again()
            case "answer.text":
                piece, claims = self._sent.finish(event.data["text"])
                note = NOT_SUPPORTED.format(claims="; ".join(f"“{claim}”" for claim in claims)) if claims else ""
                return self._content(piece + note)
            case "approval.requested":
                said = self._outcome.waiting_for[event.data["approval_id"]].replace("\n", "\n> ")
                return self._content(f"\n\n> {said}\n\n")
            case "run.succeeded":
                return self._end()
        return b""

    def fail(self, problem: Problem) -> bytes:
        return _frame({"error": {"run_id": self._run_id, **error_of(problem)}}) + DONE

    def completion(self) -> ChatCompletion:
        """The whole of it, when the last event has been applied."""
        outcome = self._outcome
        message = ChatReplyMessage(
            content=outcome.text, reasoning_content=outcome.thinking or None, citations=outcome.citations
        )
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[ChatChoice(message=message, finish_reason=outcome.finish)],
            usage=self._usage(),
            run_id=self._run_id,
        )

    @property
    def _id(self) -> str:
        return f"chatcmpl-{self._run_id}"

    def _usage(self) -> ChatUsage:
        read, written = self._outcome.tokens
        return ChatUsage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)

    def _content(self, text: str) -> bytes:
        return self._chunk({"content": text}) if text else b""

    def _end(self) -> bytes:
        citations = [citation.model_dump(mode="json") for citation in self._outcome.citations]
        last = self._chunk({"citations": citations}, finish=self._outcome.finish)
        if self._include_usage:
            last += _frame({**self._base(), "choices": [], "usage": self._usage().model_dump()})
        return last + DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._include_usage else {}
        return _frame({**self._base(), "choices": [choice], **usage})

    def _base(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "run_id": self._run_id,
        }


def _frame(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
