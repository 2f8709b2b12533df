"""Cuts texts into chunks and chunks into index words, in niced children beside the parsers'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter

from schemas.parsed_documents import ChunkDraft
from schemas.settings import ChunkingSettings, ParsingSettings
from services.documents.child_frames import ChildReply, ChildRequest
from services.documents.child_pool import ChildPool
from services.retrieval.index_tokens import ChunkTokens


class CutRequest(ChildRequest):
    """The canonical document at `path` is to be cut; `name` stands in for a missing title."""

    kind: Literal["cut"] = "cut"
    path: str
    document_id: str
    members: list[str]
    sizes: ChunkingSettings


class ChunkWords(NamedTuple):
    """What of a chunk is analysed."""

    title: str
    heading_path: list[str]
    context: str
    text: str


class WordsRequest(ChildRequest):
    """The chunks are to be analysed for the keyword index."""

    kind: Literal["words"] = "words"
    chunks: list[ChunkWords]


TextRequest = Annotated[CutRequest | WordsRequest, Field(discriminator="kind")]
TEXT_REQUEST: TypeAdapter[CutRequest | WordsRequest] = TypeAdapter(TextRequest)


class CutReply(ChildReply):
    """Chunks in reading order, each with its id."""

    chunks: list[tuple[str, ChunkDraft]] = Field(default_factory=list)


class WordsReply(ChildReply):
    """Tokens of each chunk of the request, in its order."""

    tokens: list[ChunkTokens] = Field(default_factory=list)


class TextPool(ChildPool):
    """One child is enough: it keeps the tokenizer (some 250 MB), and embedding is slower than it by far."""

    module = "services.ingestion.text_child"

    def __init__(self, limits: ParsingSettings, sizes: ChunkingSettings) -> None:
        super().__init__(limits.model_copy(update={"workers": 1}))
        self._sizes = sizes

    async def cut(
        self, canonical: Path, document_id: str, name: str, members: Sequence[str] = ()
    ) -> list[tuple[str, ChunkDraft]]:
        """The chunks of the CanonicalDocument in that file, in reading order, with their ids. Raises what `ask` does."""
        request = CutRequest(
            name=name, path=str(canonical), document_id=document_id, members=list(members), sizes=self._sizes
        )
        return (await self.ask(request, CutReply)).chunks

    async def words(self, name: str, chunks: Sequence[ChunkWords]) -> list[ChunkTokens]:
        """The index tokens of each of the chunks of document `name`, in order. Raises what `ask` does."""
        return (await self.ask(WordsRequest(name=name, chunks=list(chunks)), WordsReply)).tokens
