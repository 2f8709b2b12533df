"""Responses as OpenAI's own client has them, streamed, whole, in the background, and read again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent

from schemas.runs import RunEnd
from services.container import Serving
from services.stores import runs_store, sessions_store
from tests.integration.api.openai_clients import QUOTE, TEXT, Talk, ended, said, talking
from tests.integration.api.serving import Person

ANSWERS = "perdure/answers"
CALL = {"call_id": "c1", "tool": "write_document", "arguments": {"title": "Ö"}, "risk": "write"}
RESULT = {"call_id": "c1", "ok": True, "summary": "Written.", "result_ref": None, "effect": "done"}
REQUEST = {"approval_id": "approval-7", "tool": "write_document"}


@pytest.fixture
async def talk(container: Serving, member: Person) -> AsyncIterator[Talk]:
    async with talking(container, member) as talk:
        yield talk


def types(events: list[Any]) -> list[str]:
    return [event.type.removeprefix("response.") for event in events]


async def test_a_response_comes_whole_with_annotations_where_its_marks_stand(talk: Talk) -> None:
    asking = asyncio.create_task(
        talk.client.responses.create(
            model=ANSWERS,
            input=[
                {"role": "user", "content": "Hello"},
                {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                 "content": [{"type": "output_text", "text": "Good day.", "annotations": []}]},
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"role": "user", "content": [{"type": "input_text", "text": "How many days?"}]},
            ],
            metadata={"ticket": "7"},
        )
    )  # fmt: skip
    run = await talk.newest_run()
    request = await talk.asked(run)
    assert [turn["text"] for turn in request["conversation"]] == ["Hello", "Good day."]
    await talk.tell(run, ("thinking", {"text": "Hm."}), *said(TEXT), *ended())
    reply = await asking
    assert (reply.output_text, reply.status, reply.id) == (TEXT, "completed", f"resp_{run}")
    assert reply.metadata == {"ticket": "7"}
    output: list[Any] = list(reply.output)
    reasoning, message = output
    assert (reasoning.type, reasoning.content[0].text) == ("reasoning", "Hm.")
    (annotation,) = message.content[0].annotations
    assert (annotation.type, annotation.file_id, annotation.filename) == ("file_citation", "document-1", "Leave")
    assert reply.output_text[annotation.index :].startswith("[1]")
    assert (annotation.quote, annotation.page_start) == (QUOTE["quote"], 2)
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.total_tokens) == (11, 16)


async def test_the_stream_of_a_turn_tells_of_thoughts_calls_requests_and_text_in_the_protocols_items(
    talk: Talk,
) -> None:
    model = await talk.agent()
    async with talk.client.responses.stream(model=model, input="Write it.", instructions="In Swedish.") as stream:
        events: list[Any] = [await anext(stream), await anext(stream)]
        run = events[0].response.id.removeprefix("resp_")
        assert "> In Swedish." in await talk.message(run)
        await talk.tell(run, ("thinking", {"text": "Hm"}), ("thinking", {"text": "."}), *said("I write."))
        await talk.tell(run, ("tool.call", CALL), ("approval.requested", REQUEST))
        await talk.tell(run, ("run.waiting", {"for": "approval", "until": "2030-01-01T00:00:00Z"}))
        await talk.tell(run, ("approval.decided", {"approval_id": "approval-7", "state": "approved"}))
        await talk.tell(run, ("tool.result", RESULT), *said("\n\nYou have 30 days [1]."))
        await talk.tell(run, *ended(f"I write.\n\n{TEXT}"))
        events += [event async for event in stream]
        final: Response = await stream.get_final_response()
    assert types(events) == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta",
        "reasoning_text.done", "content_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta",
        "output_item.added", "mcp_call.in_progress", "mcp_call_arguments.done",
        "output_item.added", "output_item.done",
        "mcp_call.completed", "output_item.done",
        "output_text.delta",
        "output_text.annotation.added", "output_text.done", "content_part.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    (request,) = [e.item for e in events if e.type.endswith("item.done") and e.item.type == "mcp_approval_request"]
    assert (request.id, request.name, request.arguments) == ("approval-7", "write_document", '{"title": "Ö"}')
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == final.output_text
    output: list[Any] = list(final.output)
    reasoning, message, call = output
    assert reasoning.content[0].text == "Hm."
    assert message.content[0].text == final.output_text == f"I write.\n\n{TEXT}"
    assert call.type == "mcp_call"
    assert (call.name, call.output, call.status, call.server_label) == (
        "write_document", "Written.", "completed", "perdure",
    )  # fmt: skip
    assert call.approval_request_id == "approval-7"


async def test_the_final_text_of_a_stream_bears_the_marks_of_the_last_check(talk: Talk) -> None:
    final = "You have 40 days [1] [unsupported]. Ask Ann."
    async with talk.client.responses.stream(model=ANSWERS, input="How many?") as stream:
        run = (await anext(stream)).response.id.removeprefix("resp_")  # type: ignore[union-attr]
        await talk.tell(run, *said("You have 40 days [1].", " Ask Ann."), *ended(final))
        events = [event async for event in stream]
        assert (await stream.get_final_response()).output_text == final
    (done,) = [event for event in events if event.type == "response.output_text.done"]
    assert done.text == final


async def drained(talk: Talk, *drafts: Any) -> list[ResponseStreamEvent]:
    stream = await talk.client.responses.create(model=ANSWERS, input="How many?", stream=True)
    await talk.tell(stream.response.headers["x-run-id"], *drafts)
    return [event async for event in stream]


async def test_a_stream_that_cannot_go_on_ends_as_failed_and_leaves_its_items_incomplete(talk: Talk) -> None:
    begun_anew = await drained(talk, *said("I think"), ("answer.reset", {}), *said("You have"))
    failed = await drained(
        talk,
        *said("I"),
        ("tool.call", CALL),
        ("run.failed", {"code": "empty_reply", "detail": "Hm", "retryable": False}),
    )
    for events, code in ((begun_anew, "text_replaced"), (failed, "empty_reply")):
        last = events[-1]
        assert last.type == "response.failed"
        assert last.response.status == "failed"
        assert last.response.error is not None
        assert last.response.error.message.startswith(f"{code}: ")
        assert {item.status for item in last.response.output} == {"incomplete"}  # type: ignore[union-attr]


async def test_a_call_that_failed_says_why(talk: Talk) -> None:
    events: Any = await drained(
        talk, ("tool.call", CALL), ("tool.result", {**RESULT, "ok": False, "summary": "A person rejected this call."}),
        *ended("No.", []),
    )  # fmt: skip
    call = events[-1].response.output[0]
    assert (call.status, call.output) == ("failed", None)
    assert call.error.content[0]["text"] == "A person rejected this call."


async def test_a_background_response_is_read_until_it_is_done_and_may_be_cancelled(talk: Talk) -> None:
    model = await talk.agent()
    begun = await talk.client.responses.create(model=model, input="Write it.", background=True)
    assert (begun.status, begun.output) == ("in_progress", [])
    run = begun.id.removeprefix("resp_")
    await talk.tell(run, *said("I wri"), ("answer.reset", {}), *said("I write."), ("tool.call", CALL))
    reading = await talk.client.responses.retrieve(begun.id)
    assert (reading.status, reading.output_text, reading.model) == ("in_progress", "I write.", model)
    assert not await talk.cancelled(run, within_s=0.2)
    await talk.client.responses.cancel(begun.id)
    assert await talk.cancelled(run)
    await talk.tell(run, ("answer.text", {"text": "I write."}), ("run.cancelled", {"by": talk.who.user}))
    over = await talk.client.responses.retrieve(begun.id)
    assert over.status == "cancelled"
    with pytest.raises(openai.BadRequestError, match="GET /v1/runs"):
        await talk.client.responses.retrieve(begun.id, stream=True)


async def test_a_response_is_its_users_own(talk: Talk, admin: Person, stranger: Person) -> None:
    begun = await talk.client.responses.create(model=ANSWERS, input="How many?", background=True)
    for other in (admin, stranger):
        client = talk.client.with_options(api_key=other.key)
        for call in (client.responses.retrieve, client.responses.cancel):
            with pytest.raises(openai.NotFoundError):
                await call(begun.id)
    with pytest.raises(openai.NotFoundError):
        await talk.client.responses.retrieve("resp_nothing")
    assert not await talk.cancelled(begun.id.removeprefix("resp_"), within_s=0.2)


async def finished(talk: Talk, run: str, text: str) -> None:
    """As a turn ends: its reply in its session, its run ended."""
    row = await talk.row(run)
    async with talk.database.begin(talk.who.tenant) as transaction:
        await sessions_store.read_new(transaction, run, 1)
        await sessions_store.add_reply(transaction, row["subject"], run, text, [])
        await runs_store.end(transaction, run, RunEnd(state="succeeded"))
    await talk.tell(run, *ended(text, []))


async def test_a_response_that_follows_another_goes_on_with_its_stored_conversation(talk: Talk) -> None:
    model = await talk.agent()
    first = await talk.client.responses.create(model=model, input="My name is Ann.", background=True)
    first_run = first.id.removeprefix("resp_")
    with pytest.raises(openai.ConflictError, match="not ended yet"):
        await talk.client.responses.create(model=model, input="Who am I?", previous_response_id=first.id)
    await finished(talk, first_run, "Hello Ann.")
    second = await talk.client.responses.create(
        model=model, input="Who am I?", previous_response_id=first.id, background=True
    )
    run = second.id.removeprefix("resp_")
    assert (second.previous_response_id, await talk.message(run)) == (first.id, "Who am I?")
    session = (await talk.row(run))["subject"]
    async with talk.database.begin(talk.who.tenant) as transaction:
        earlier = await sessions_store.earlier(transaction, session, run, 10)
    assert [message["text"] for message in earlier] == ["My name is Ann.", "Hello Ann."]
    other = await talk.agent("other")
    with pytest.raises(openai.BadRequestError, match="another agent's"):
        await talk.client.responses.create(model=other, input="Who am I?", previous_response_id=first.id)
    with pytest.raises(openai.NotFoundError) as caught:
        await talk.client.responses.create(model=model, input="Who am I?", previous_response_id="resp_none")
    assert caught.value.code == "previous_response_not_found"
