"""OpenAI's protocol as far as it is spoken here: what requests may hold, and what replies hold.

Requests take any further field, since clients send many: those that would change what comes back are refused by name, the
others are not read.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.answers import Citation
from schemas.search import SearchFilters

ToolChoice = str | dict[str, Any]


class ModelCard(BaseModel):
    """Something that can be asked: the answers, or an agent."""

    id: str = Field(description="`perdure/answers` or `perdure/agent/<name>`")
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(BaseModel):
    """Everything that this key can ask."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class ContentPart(BaseModel):
    """A piece of a message. Only text is read."""

    model_config = ConfigDict(extra="allow")

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    """One message of a conversation, as a client keeps it."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[ContentPart] | None = None


class StreamOptions(BaseModel):
    """`include_usage` asks for one more chunk, with the tokens."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool | None = None


class OpenAIRequest(BaseModel):
    """What both kinds of requests share. `space`, `spaces` and `filters` are Perdure's own, for `perdure/answers`."""

    model_config = ConfigDict(extra="allow")

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[Any] | None = None
    tool_choice: ToolChoice | None = None
    top_logprobs: int | None = None
    space: str | None = None
    spaces: list[str] | None = None
    filters: SearchFilters | None = None


class ChatRequest(OpenAIRequest):
    """`POST /v1/chat/completions`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "perdure/answers", "messages": [{"role": "user", "content": "How many days of leave?"}]}
            ]
        }
    )

    messages: list[ChatMessage] = Field(min_length=1)
    n: int | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    web_search_options: dict[str, Any] | None = None


class ChatUsage(BaseModel):
    """Tokens of the run."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatReplyMessage(BaseModel):
    """The answer, with its marks in the text; `citations` say what each mark stands for."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    reasoning_content: str | None = None
    citations: list[Citation]


class ChatChoice(BaseModel):
    """There is one."""

    index: int = 0
    message: ChatReplyMessage
    logprobs: None = None
    finish_reason: Literal["stop", "length"]


class ChatCompletion(BaseModel):
    """A whole reply. `run_id` is the run that made it."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    run_id: str


class InputItem(BaseModel):
    """One item of a response's input. Messages are read; what a model made before, such as reasoning, is passed over."""

    model_config = ConfigDict(extra="allow")

    type: str | None = None
    role: str | None = None
    content: str | list[ContentPart] | None = None


class ResponseRequest(OpenAIRequest):
    """`POST /v1/responses`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "perdure/agent/handbook-editor", "input": "Update the travel policy."}]
        }
    )

    input: str | list[InputItem]
    instructions: str | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    max_tool_calls: int | None = None


class ResponseError(BaseModel):
    """Why a response failed."""

    code: str
    message: str


class ResponseUsage(BaseModel):
    """Tokens of the run."""

    input_tokens: int
    input_tokens_details: dict[str, int] = {"cached_tokens": 0, "cache_write_tokens": 0}
    output_tokens: int
    output_tokens_details: dict[str, int] = {"reasoning_tokens": 0}
    total_tokens: int


class ResponseObject(BaseModel):
    """A response. `output` holds items of type `reasoning`, `mcp_call` and `message`; `run_id` is the run that made it."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    background: bool = False
    error: ResponseError | None = None
    incomplete_details: None = None
    instructions: str | None = None
    metadata: dict[str, str] = {}
    model: str
    output: list[dict[str, Any]] = []
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    temperature: float | None = None
    tool_choice: str = "auto"
    tools: list[Any] = []
    top_p: float | None = None
    text: dict[str, Any] = {"format": {"type": "text"}}
    truncation: str = "disabled"
    usage: ResponseUsage | None = None
    run_id: str
    withheld: bool = False


class ErrorBody(BaseModel):
    """`code` is the last word of what Perdure's own errors have as `type`."""

    model_config = ConfigDict(extra="allow")

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorReply(BaseModel):
    """What every error of these routes looks like."""

    error: ErrorBody
