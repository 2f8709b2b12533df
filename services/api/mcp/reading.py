"""Tools `search`, `read_document` and `list_spaces`: what is there, found and read."""

from __future__ import annotations

from pydantic import BaseModel, Field

from schemas.errors import Conflict, NotFound
from schemas.passages import Passage
from schemas.search import SearchHit, SearchRequest, SearchResult
from services.api.mcp.tool import Arguments, Asker, ReadTool, Shown, Words
from services.retrieval import reading
from services.stores import document_views

WHOLE = 2**31 - 1
MOST_SPACES = 1_000
_PAGE = 100


class SearchArguments(Arguments):
    """What to look for, and where."""

    query: Words = Field(min_length=1, description="what to look for, in words or as a question")
    space: Words | None = Field(None, description="only in this space, by id or name")
    spaces: list[Words] | None = Field(None, description="only in these spaces")
    limit: int = Field(10, ge=1, le=50, description="passages at most")


class ReadArguments(Arguments):
    """Which document, from where to where."""

    document_id: Words = Field(min_length=1, max_length=200, description="as `search` gave it")
    start: int = Field(0, ge=0, le=WHOLE, description="first character to read")
    end: int | None = Field(None, ge=1, le=WHOLE, description="where to stop; without it, as far as fits")


class ReadPassage(BaseModel):
    """A part of a document's text: characters `start` to `end`."""

    text: str
    start: int | None
    end: int | None
    page_start: int | None
    page_end: int | None
    heading_path: list[str]


class ReadText(BaseModel):
    """What was read of the live version; `goes_on_at` is where to go on reading, null at the end."""

    document_id: str
    version: int
    title: str | None
    passages: list[ReadPassage]
    goes_on_at: int | None


class Nothing(Arguments):
    """No arguments."""


class Space(BaseModel):
    """Where documents live."""

    id: str
    name: str


class Spaces(BaseModel):
    """The spaces that this key can see."""

    spaces: list[Space]


async def _search(asker: Asker, asked: SearchArguments) -> Shown:
    request = SearchRequest(query=asked.query, space=asked.space, spaces=asked.spaces, limit=asked.limit)
    with asker.container.database.precedence.ahead():
        found = await asker.container.search.search(asker.caller.actor, request)
    return Shown(found, "\n\n".join(_hit(hit) for hit in found.hits) or "Nothing was found.")


def _hit(hit: SearchHit) -> str:
    where = "" if hit.start is None else f", characters {hit.start}-{hit.end}"
    section = " > ".join(hit.heading_path)
    return "\n".join(
        filter(None, [f"{hit.title or 'Untitled'} (document {hit.document_id}{where})", section, hit.text])
    )


async def _read(asker: Asker, asked: ReadArguments) -> Shown:
    actor = asker.caller.actor
    end = asked.end if asked.end is not None else WHOLE
    async with asker.container.database.begin(actor.tenant) as transaction:
        view = await document_views.get(transaction, actor, asked.document_id)
        if view is None:
            raise NotFound("There is no document with this id that this key can see.")
        if view.live_version is None:
            raise Conflict(f"This document has no readable version yet; it is {view.state}.")
        most = asker.container.settings.agents.read_tokens
        found = await reading.read(transaction, actor, asked.document_id, asked.start, end, most)
    if not found.passages:
        raise NotFound("There is no text in that range.")
    version = found.passages[0].document_version
    passages = [_passage(passage) for passage in found.passages]
    read = ReadText(
        document_id=view.id, version=version, title=view.title, passages=passages, goes_on_at=found.goes_on_at
    )
    more = f"\n\nThe text goes on: read again with start={found.goes_on_at}." if found.goes_on_at is not None else ""
    return Shown(read, "\n\n".join(passage.text for passage in passages) + more)


def _passage(passage: Passage) -> ReadPassage:
    return ReadPassage(
        text=passage.text,
        start=passage.parts[0].start if passage.parts else None,
        end=passage.parts[-1].end if passage.parts else None,
        page_start=passage.page_start,
        page_end=passage.page_end,
        heading_path=list(passage.heading_path),
    )


async def _list_spaces(asker: Asker, asked: Nothing) -> Shown:
    spaces: list[Space] = []
    while len(spaces) < MOST_SPACES:
        after = spaces[-1].id if spaces else ""
        page = await asker.container.identity.spaces.page(asker.caller, after, _PAGE)
        spaces += [Space(id=space.id, name=space.name) for space in page]
        if len(page) < _PAGE:
            break
    lines = [f"{space.name} ({space.id})" for space in spaces]
    return Shown(Spaces(spaces=spaces), "\n".join(lines) or "There are no spaces that this key can see.")


SEARCH = ReadTool(
    "search",
    "Search documents",
    "Finds passages in the team's documents, best first, by meaning and by words.",
    SearchArguments,
    SearchResult,
    _search,
)
READ_DOCUMENT = ReadTool(
    "read_document",
    "Read a document",
    "Reads a document's text by its id, from a character on. Long ones come in parts: go on where it says.",
    ReadArguments,
    ReadText,
    _read,
)
LIST_SPACES = ReadTool("list_spaces", "List spaces", "Names the spaces to look in.", Nothing, Spaces, _list_spaces)
