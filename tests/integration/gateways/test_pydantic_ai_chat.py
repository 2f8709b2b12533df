"""A chat provider's streams and errors, over a real local port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from schemas.errors import EngineDown, Failure, PermanentFailure, TransientFailure
from schemas.settings import AnswerSettings, Settings
from services.gateways.chat_model import ChatDelta, ChatEnd, ChatModel, ModelCall, ModelTool, ToolResult, Turn
from services.gateways.select_chat_model import build_chat_model
from tests.fakes.openai_server import CONTEXT_LENGTH_ERROR, OpenAIServer, Reply


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


def chat_at(url: str, name: str = "openai-chat:test-model", timeout_s: float = 20) -> ChatModel:
    settings = Settings(chat_model=name, answers=AnswerSettings(timeout_s=timeout_s))
    env = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "key", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "key"}
    model = build_chat_model(settings, env, settings.answers.timeout_s)
    assert model is not None
    return model


async def everything(model: ChatModel, user: str = "Who pays?") -> list[ChatDelta | ChatEnd]:
    return [item async for item in model.stream("Be brief.", [Turn("user", user)], 100)]


async def failure_of(model: ChatModel) -> Failure:
    with pytest.raises(Failure) as caught:
        await everything(model)
    return caught.value


async def test_text_and_thinking_arrive_in_pieces_and_the_end_tells_the_usage(server: OpenAIServer) -> None:
    server.script("chat", Reply(text="Finance pays. 财务付款。", thinking="Look.\nThink."))
    items = await everything(chat_at(server.url))
    deltas = [item for item in items if isinstance(item, ChatDelta)]
    assert "".join(delta.text for delta in deltas).split() == ["Finance", "pays.", "财务付款。"]
    assert "".join(delta.thinking for delta in deltas) == "Look.\nThink."
    assert len([delta for delta in deltas if delta.text]) == 3
    assert items[-1] == ChatEnd(input_tokens=4, output_tokens=3, finish_reason="stop")


async def test_the_prompt_holds_system_conversation_and_question_in_order(server: OpenAIServer) -> None:
    turns = [Turn("user", "Hello"), Turn("assistant", "Hi."), Turn("user", "And?")]
    model = chat_at(server.url)
    async for _ in model.stream("Be brief.", [*turns, Turn("user", "Who pays?")], 77):
        pass
    body = server.received[0].body
    said = [(message["role"], message["content"]) for message in body["messages"]]
    roles = [role for role, _ in said]
    assert roles[0] in {"system", "developer"}
    assert said[0][1] == "Be brief."
    assert said[1:] == [("user", "Hello"), ("assistant", "Hi."), ("user", "And?"), ("user", "Who pays?")]
    assert 77 in {body.get("max_completion_tokens"), body.get("max_tokens")}
    assert server.received[0].headers["authorization"] == "Bearer key"


async def test_calls_and_their_results_go_both_ways_and_broken_arguments_stay_as_they_were_sent(
    server: OpenAIServer,
) -> None:
    broken = {"name": "ring", "arguments": "{times: 2", "id": "call-2"}
    server.script(
        "chat", Reply(text="I ring.", calls=[{"name": "ring", "arguments": '{"times": 1}', "id": "call-1"}, broken])
    )
    said: list[Turn | ToolResult] = [
        Turn("user", "Ring."),
        Turn("assistant", "", [ModelCall("call-0", "ring", "{}")]),
        ToolResult("call-0", "ring", "It rang."),
        Turn("user", "Again."),
    ]
    tool = ModelTool("ring", "Rings.", {"type": "object", "properties": {"times": {"type": "integer"}}})
    end = [item async for item in chat_at(server.url).stream("s", said, 10, [tool])][-1]
    assert isinstance(end, ChatEnd)
    assert end.calls == (ModelCall("call-1", "ring", '{"times": 1}'), ModelCall("call-2", "ring", "{times: 2"))
    body = server.received[0].body
    assert [message["role"] for message in body["messages"][1:]] == ["user", "assistant", "tool", "user"]
    assert (body["messages"][3]["tool_call_id"], body["messages"][3]["content"]) == ("call-0", "It rang.")
    assert body["tools"][0]["function"]["name"] == "ring"


async def test_a_model_with_a_known_price_tells_the_cost_of_its_reply(server: OpenAIServer) -> None:
    end = (await everything(chat_at(server.url, "openai-chat:gpt-4o")))[-1]
    assert isinstance(end, ChatEnd)
    assert end.cost is not None
    assert end.cost > 0


async def test_a_reply_cut_at_its_limit_says_so(server: OpenAIServer) -> None:
    server.script("chat", Reply(text="one two", finish_reason="length"))
    assert (await everything(chat_at(server.url)))[-1] == ChatEnd(4, 2, "length")


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (Reply(status=401), PermanentFailure, "model_rejected"),
        (Reply(status=403), PermanentFailure, "model_rejected"),
        (Reply(status=400), PermanentFailure, "model_rejected"),
        (Reply(status=404), PermanentFailure, "model_rejected"),
        (Reply(status=400, error=CONTEXT_LENGTH_ERROR), PermanentFailure, "context_length"),
        (Reply(refusal="I cannot help with that."), PermanentFailure, "refused"),
        (Reply(text="Half", finish_reason="content_filter"), PermanentFailure, "refused"),
        (Reply(status=429), TransientFailure, "model_unavailable"),
        (Reply(status=500), TransientFailure, "model_unavailable"),
        (Reply(status=503), TransientFailure, "model_unavailable"),
        (Reply(text=""), TransientFailure, "model_unavailable"),
        (Reply(text="Broken off here", drop_after=2), TransientFailure, "model_unavailable"),
        (Reply(text="Silently ended", finish_reason=None), TransientFailure, "model_unavailable"),
    ],
)
async def test_each_error_has_its_kind_and_is_not_tried_again(
    server: OpenAIServer, reply: Reply, kind: type[Failure], code: str
) -> None:
    server.script("chat", reply)
    failure = await failure_of(chat_at(server.url))
    assert (type(failure), failure.code) == (kind, code)
    assert server.count("/chat/completions") == 1


@pytest.mark.parametrize("name", ["openai:test-model", "anthropic:test-model"])
async def test_other_protocols_fail_the_same_way(server: OpenAIServer, name: str) -> None:
    server.script("chat", Reply(status=429, retry_after="3"), Reply(status=500), Reply(status=401))
    failures = [await failure_of(chat_at(server.url, name)) for _ in range(3)]
    assert [type(failure) for failure in failures] == [TransientFailure, TransientFailure, PermanentFailure]
    assert len(server.received) == 3
    async with OpenAIServer() as gone:
        url = gone.url
    assert isinstance(await failure_of(chat_at(url, name)), EngineDown)


async def test_an_exhausted_quota_is_not_waited_for(server: OpenAIServer) -> None:
    error = {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
    server.script("chat", Reply(status=429, error=error))
    assert isinstance(await failure_of(chat_at(server.url)), PermanentFailure)


async def test_a_rate_limit_carries_the_wait_the_provider_asked_for(server: OpenAIServer) -> None:
    server.script("chat", Reply(status=429, retry_after="17"))
    failure = await failure_of(chat_at(server.url))
    assert isinstance(failure, TransientFailure)
    assert failure.retry_after_s == 17


async def test_what_came_before_a_drop_was_delivered(server: OpenAIServer) -> None:
    server.script("chat", Reply(text="one two three four", drop_after=3))
    stream = chat_at(server.url).stream("s", [Turn("user", "u")], 10)
    assert [await anext(stream), await anext(stream)] == [ChatDelta(text="one "), ChatDelta(text="two ")]
    with pytest.raises(TransientFailure):
        await anext(stream)


async def test_a_stalled_stream_times_out(server: OpenAIServer) -> None:
    server.script("chat", Reply(delay_s=30))
    failure = await failure_of(chat_at(server.url, timeout_s=0.3))
    assert isinstance(failure, TransientFailure)


async def test_a_port_where_nothing_listens_is_an_engine_that_is_down() -> None:
    async with OpenAIServer() as gone:
        url = gone.url
    failure = await failure_of(chat_at(url))
    assert isinstance(failure, EngineDown)
    assert failure.engine == "chat model"


async def test_closing_the_stream_ends_the_request_at_the_provider(server: OpenAIServer) -> None:
    server.script("chat", Reply(text="word " * 500, delay_s=0.02))
    stream = chat_at(server.url).stream("s", [Turn("user", "u")], 1_000)
    assert isinstance(await anext(stream), ChatDelta)
    await stream.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(5):
        await server.received[0].cut.wait()
    assert not server.received[0].finished.is_set()


async def test_cancelling_the_reader_ends_the_request_at_the_provider(server: OpenAIServer) -> None:
    server.script("chat", Reply(text="word " * 500, delay_s=0.02))
    reading = asyncio.create_task(everything(chat_at(server.url)))
    async with asyncio.timeout(5):
        while not server.received:
            await asyncio.sleep(0.01)
    reading.cancel()
    async with asyncio.timeout(5):
        await server.received[0].cut.wait()
    with pytest.raises(asyncio.CancelledError):
        await reading


def test_extractive_needs_no_model() -> None:
    assert build_chat_model(Settings(chat_model="extractive"), {}, 1) is None


@pytest.mark.parametrize("name", ["gpt", "nobody:model", "openai-chat:model"])
def test_an_unusable_name_is_told_in_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ValueError, match="PERDURE_CHAT_MODEL") as caught:
        build_chat_model(Settings(chat_model=name), {}, 1)
    assert "\n" not in str(caught.value)
