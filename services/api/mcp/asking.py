"""Tool `ask`: an answer from the documents, with its citations."""

from __future__ import annotations

import asyncio

import anyio
from pydantic import Field

from schemas.answers import AnswerRequest, AnswerView, Citation
from services.api.mcp.tool import Arguments, Asker, ReadTool, Shown, Words
from services.api.openai_following import Attended, gather, require_slot, slot
from services.api.openai_outcome import Withheld


class AskArguments(Arguments):
    """A question, and where to look for its answer."""

    question: Words = Field(min_length=1, description="one question, in full")
    space: Words | None = Field(None, description="only in this space, by id or name")
    spaces: list[Words] | None = Field(None, description="only in these spaces")


async def _ask(asker: Asker, asked: AskArguments) -> Shown:
    """Waits for the answer. A client that goes away cannot ask for it again here, so its answer is stopped."""
    require_slot(asker.state, asker.caller)
    request = AnswerRequest(question=asked.question, space=asked.space, spaces=asked.spaces)
    with asker.container.database.precedence.ahead():
        started = await asker.container.asking.start(asker.caller.actor, request)
    attended = Attended(asker.state, asker.caller, started.run_id, stops_when_left=True)
    try:
        with slot(attended):
            await gather(attended)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await attended.left()
        raise
    answer = await asker.container.asking.view(asker.caller.actor, started.answer_id)
    if answer.withheld or answer.answer is None:
        raise Withheld("The answer came from a document that this key may not read now, so it is not shown.")
    sources = "\n".join(_source(citation) for citation in answer.citations)
    return Shown(answer, f"{answer.answer}\n\nSources:\n{sources}" if sources else answer.answer)


def _source(citation: Citation) -> str:
    page = f", page {citation.page_start}" if citation.page_start is not None else ""
    return f"[{citation.n}] {citation.title or 'Untitled'}{page} (document {citation.document_id}): “{citation.quote}”"


ASK = ReadTool(
    "ask",
    "Ask the documents",
    "Answers a question from the team's documents, each statement with a citation, or says that they do not answer it.",
    AskArguments,
    AnswerView,
    _ask,
)
