"""What OpenAI's client may ask for, what it is refused in that protocol's own words, and what becomes of a run it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from services.api.app import create_app
from services.container import Serving
from services.stores.database import Database
from tests.integration.api import serving
from tests.integration.api.openai_clients import TEXT, Talk, ended, said, talking
from tests.integration.api.serving import Person, person, space_of

ANSWERS = "perdure/answers"
QUESTION: Any = [{"role": "user", "content": "How many days of leave?"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
KEY = {"Idempotency-Key": "once"}


@pytest.fixture
async def talk(container: Serving, member: Person) -> AsyncIterator[Talk]:
    async with talking(container, member) as talk:
        yield talk


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [TOOL]}, "tools"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"stop": ["\n"]}, "stop"),
        ({"logprobs": True}, "logprobs"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"messages": [IMAGE]}, "messages"),
        ({"messages": [*QUESTION, {"role": "assistant", "content": "You have"}]}, "messages"),
        ({"messages": [{"role": "system", "content": "Be brief."}]}, "messages"),
        ({"messages": [{"role": "oracle", "content": "Hm."}, *QUESTION]}, "messages"),
        ({"messages": []}, "body.messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"extra_body": {"filters": {"colour": "red"}}}, "body.filters.colour"),
    ],
    ids=str,
)
async def test_a_parameter_that_would_change_what_comes_back_is_refused_by_name(
    talk: Talk, fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await talk.client.chat.completions.create(**{"model": ANSWERS, "messages": QUESTION, **fields})
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", param)
    assert caught.value.message
    assert await talk.runs() == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}, "text.format"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"max_tool_calls": 1}, "max_tool_calls"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input"),
        ({"input": [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input"),
        ({"input": []}, "input"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ],
    ids=str,
)
async def test_a_response_is_refused_what_it_cannot_be(talk: Talk, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await talk.client.responses.create(**{"model": ANSWERS, "input": "Hm?", **fields})
    assert caught.value.param == param
    assert await talk.runs() == 0


async def test_the_models_are_the_answers_and_the_agents_that_this_key_may_give_work_to(
    talk: Talk, database: Database, container: Serving
) -> None:
    clerk, other = await talk.agent(), await talk.agent("Frågor & svar/2")
    assert [model.id async for model in talk.client.models.list()] == [ANSWERS, other, clerk]
    assert (await talk.client.models.retrieve(other)).id == other
    for unknown in ("perdure/agent/nobody", "gpt-4", "perdure/agent/"):
        with pytest.raises(openai.NotFoundError, match="does not exist") as caught:
            await talk.client.models.retrieve(unknown)
        assert caught.value.code == "model_not_found"
        with pytest.raises(openai.NotFoundError):
            await talk.client.chat.completions.create(model=unknown, messages=QUESTION)
    reader = await person(database, create_app(container), scopes=["read"])
    readers = AsyncOpenAI(base_url=f"{talk.base}/v1", api_key=reader.key, max_retries=0)
    assert [model.id async for model in readers.models.list()] == [ANSWERS]
    with pytest.raises(openai.PermissionDeniedError, match="'write'"):
        await readers.chat.completions.create(model=clerk, messages=QUESTION)


async def test_a_wrong_key_and_a_key_of_another_tenant_get_what_openai_says(talk: Talk, stranger: Person) -> None:
    clerk = await talk.agent()
    wrong = talk.client.with_options(api_key="prd_wrong")
    with pytest.raises(openai.AuthenticationError) as caught:
        await wrong.chat.completions.create(model=ANSWERS, messages=QUESTION)
    assert caught.value.code == "invalid_api_key"
    assert caught.value.response.headers["www-authenticate"].startswith("Bearer")
    with pytest.raises(openai.NotFoundError):
        await talk.client.with_options(api_key=stranger.key).chat.completions.create(model=clerk, messages=QUESTION)


async def test_spaces_are_named_beside_openais_own_fields(talk: Talk, admin: Person) -> None:
    space = await space_of(admin)
    await admin.http.put(f"/v1/spaces/{space}/grants/tenant", json={"role": "viewer"})
    stream = await talk.client.chat.completions.create(
        model=ANSWERS, messages=QUESTION, stream=True, extra_body={"space": "handbook", "filters": {"tags": ["hr"]}}
    )
    request = await talk.asked(stream.response.headers["x-run-id"])
    assert (request["spaces"], request["filters"]["tags"]) == ([space], ["hr"])
    with pytest.raises(openai.NotFoundError):
        await talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION, extra_body={"space": "nowhere"})
    with pytest.raises(openai.BadRequestError, match="its own configuration"):
        await talk.client.chat.completions.create(
            model=await talk.agent(), messages=QUESTION, extra_body={"space": "handbook"}
        )


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        (("run.failed", {"code": "budget_exceeded", "detail": "Used up", "retryable": False}), 422, "budget_exceeded"),
        (("run.failed", {"code": "model_unavailable", "detail": "Away", "retryable": True}), 503, "model_unavailable"),
        (
            ("run.failed", {"code": "context_length", "detail": "Long", "retryable": False}),
            400,
            "context_length_exceeded",
        ),
        (("run.cancelled", {"by": None}), 409, "cancelled"),
        (("run.expired", {"after": 1}), 504, "expired"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_run_that_came_to_nothing_is_an_error_that_is_not_sent_again_by_itself(
    talk: Talk, event: tuple[str, Any], status: int, code: str
) -> None:
    client = talk.client.with_options(max_retries=2)
    asking = asyncio.create_task(client.chat.completions.create(model=ANSWERS, messages=QUESTION))
    run = await talk.newest_run()
    await talk.tell(run, *said("You "), event)
    with pytest.raises(openai.APIStatusError) as caught:
        await asking
    assert (caught.value.status_code, caught.value.code, await talk.runs()) == (status, code, 1)
    stream = await client.chat.completions.create(model=ANSWERS, messages=QUESTION, stream=True)
    await talk.tell(stream.response.headers["x-run-id"], event)
    with pytest.raises(openai.APIError) as told:
        [chunk async for chunk in stream]
    assert told.value.code == code


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_leaving_stops_the_run_as_openais_clients_expect(talk: Talk, stream: bool) -> None:
    if stream:
        opened = await talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION, stream=True)
        run = opened.response.headers["x-run-id"]
        await opened.close()
    else:
        asking = asyncio.create_task(talk.client.chat.completions.create(model=await talk.agent(), messages=QUESTION))
        run = await talk.newest_run()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await talk.cancelled(run)


async def test_a_run_under_a_key_goes_on_without_its_client_which_may_come_back_to_it(talk: Talk) -> None:
    model = await talk.agent()
    opened = await talk.client.chat.completions.create(model=model, messages=QUESTION, stream=True, extra_headers=KEY)
    run = opened.response.headers["x-run-id"]
    await opened.close()
    assert not await talk.cancelled(run, within_s=0.5)
    await talk.tell(run, *said(TEXT), *ended())
    back = await talk.client.chat.completions.create(model=model, messages=QUESTION, extra_headers=KEY)
    assert (back.choices[0].message.content, back.id) == (TEXT, f"chatcmpl-{run}")
    assert await talk.runs() == 1
    assert len((await talk.who.http.get("/v1/sessions")).json()["items"]) == 1
    with pytest.raises(openai.ConflictError, match="another request"):
        await talk.client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "Other"}], extra_headers=KEY
        )


async def test_a_run_that_has_ended_is_not_asked_to_stop(talk: Talk) -> None:
    stream = await talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION, stream=True)
    run = stream.response.headers["x-run-id"]
    await talk.tell(run, *ended())
    [chunk async for chunk in stream]
    await stream.close()
    assert not await talk.cancelled(run, within_s=0.5)


async def test_open_streams_and_waiting_requests_of_a_key_are_bounded_before_they_start_anything(
    database: Database, member: Person, tmp_path: Any
) -> None:
    container = serving.serving(database, tmp_path / "b", {"streams_per_key": 2})
    async with talking(container, member) as talk:
        stream = await talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION, stream=True)
        first = stream.response.headers["x-run-id"]
        waiting = asyncio.create_task(talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION))
        second = await talk.newest_run(besides=first)
        with pytest.raises(openai.RateLimitError) as caught:
            await talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION)
        assert caught.value.response.headers["retry-after"] == "10"
        assert await talk.runs() == 2
        for run in (first, second):
            await talk.tell(run, *ended())
        [chunk async for chunk in stream]
        await waiting


async def test_a_server_that_stops_says_so_and_the_run_goes_on(talk: Talk, container: Serving) -> None:
    stream = await talk.client.chat.completions.create(model=ANSWERS, messages=QUESTION, stream=True)
    run = stream.response.headers["x-run-id"]
    await anext(stream)
    await container.hub.stop()
    with pytest.raises(openai.APIError, match="goes on"):
        [chunk async for chunk in stream]
    assert not await talk.cancelled(run, within_s=0.3)
