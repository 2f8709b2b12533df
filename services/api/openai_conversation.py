"""A conversation as a client sends it, read into what Perdure takes: a question, what was said before, and wishes for it.

A turn takes one message. What was said before is put into it as a quotation, each line of it marked, so nothing in an earlier
message can pass for the one that is to be answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from schemas.answers import ConversationTurn
from schemas.errors import Problem
from schemas.openai_protocol import ChatMessage, ContentPart, InputItem
from services.api.openai_errors import Unsupported
from services.documents.clean_text import clean_text

MOST_TURNS = 50
"""As many as an answer's conversation may have (`AnswerRequest`)."""
_TEXT_PARTS = {"text", "input_text", "output_text", "refusal"}
_WISHES = {"system", "developer"}
_PASSED_OVER = {"tool", "function"}
_NEEDS_STATE = {
    "item_reference": "Items are not kept by their ids: send the messages themselves.",
    "mcp_approval_response": "A request for approval is decided with POST /v1/approvals/{id}/decision.",
}
QUOTED = "Earlier in this conversation, as the client keeps it. It is quoted for context; answer the message below it."
WISHED = "Instructions that the client sent with this conversation:"
LEFT_OUT = "({count} earlier messages were left out, to keep within what one message may hold.)"


@dataclass(frozen=True)
class Said:
    """One earlier message."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Conversation:
    """`question` is the last thing a user said; `wishes` are system and developer messages."""

    question: str
    earlier: list[Said] = field(default_factory=list)
    wishes: list[str] = field(default_factory=list)

    def as_turns(self) -> list[ConversationTurn]:
        return [ConversationTurn(role=said.role, text=said.text) for said in self.earlier[-MOST_TURNS:]]

    def as_message(self, most_chars: int) -> str:
        """For a turn. Earlier messages go, oldest first, when it would be too long; the question and wishes never do."""
        question = clean_text(self.question)
        wishes = f"{WISHED}\n\n{_quoted(chr(10).join(self.wishes))}" if self.wishes else ""
        room = most_chars - len(question) - len(wishes) - len(QUOTED) - len(LEFT_OUT) - 10
        blocks: list[str] = []
        for said in reversed(self.earlier):
            block = f"{'Person' if said.role == 'user' else 'Assistant'}:\n{_quoted(said.text)}"
            room -= len(block) + 2
            if room < 0:
                break
            blocks.insert(0, block)
        gone = len(self.earlier) - len(blocks)
        told = [LEFT_OUT.format(count=gone)] if gone else []
        quoted = "\n\n".join([QUOTED, *told, *blocks]) if self.earlier else ""
        return "\n\n".join(filter(None, [wishes, quoted, question]))


def read_chat(messages: Sequence[ChatMessage]) -> Conversation:
    """Messages of a client's own tools are passed over: what they said is for the model that called them."""
    return _conversation([(each.role, each.content) for each in messages], "messages", [])


def read_input(input: str | Sequence[InputItem], instructions: str | None) -> Conversation:
    wishes = [instructions] if instructions else []
    if isinstance(input, str):
        return _conversation([("user", input)], "input", wishes)
    for item in input:
        if item.type in _NEEDS_STATE:
            raise Unsupported("input", _NEEDS_STATE[item.type])
    messages = [(item.role or "", item.content) for item in input if item.type in (None, "message")]
    return _conversation(messages, "input", wishes)


def _conversation(
    messages: Sequence[tuple[str, str | list[ContentPart] | None]], param: str, wishes: list[str]
) -> Conversation:
    said: list[Said] = []
    for role, content in messages:
        text = _text(content, param)
        if role in _WISHES:
            wishes = [*wishes, text] if text.strip() else wishes
        elif role == "user" or role == "assistant":
            said.append(Said("assistant" if role == "assistant" else "user", text))
        elif role not in _PASSED_OVER:
            raise Problem(
                f"There is no role '{role[:50]}' in a conversation.", type="bad_role", status=400, param=param
            )
    if not said or said[-1].role != "user" or not said[-1].text.strip():
        raise Problem(
            "The last message must be a user's and have text: it is the question.",
            type="no_question", status=400, param=param,
        )  # fmt: skip
    return Conversation(said[-1].text, [each for each in said[:-1] if each.text.strip()], wishes)


def _text(content: str | list[ContentPart] | None, param: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in _TEXT_PARTS:
            raise Unsupported(param, f"Only text is read; '{part.type[:50]}' is not. Upload files as documents.")
    return "\n".join(part.text for part in content if part.text)


def _quoted(text: str) -> str:
    """Cleaned first: what would become a line end later must not begin an unmarked line."""
    return "\n".join(f"> {line}" for line in clean_text(text).split("\n"))
