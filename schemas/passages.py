"""What retrieval hands on: leg hits, chunks, passages and the citations that resolve to them.

All offsets are Unicode code points. `start`/`end` of a chunk index the version's canonical text; offsets named
`passage_*` index `Passage.text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.answers import Citation


class Shape(BaseModel):
    """Base of the shapes below: immutable, and closed to unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class QueryTokens(Shape):
    """A question as the keyword engines read it.

    `tokens` are alternatives (OR). `exact` are the identifiers among them: a chunk that holds one ranks first.
    `variants` are the words another Chinese-writing region would use; a weak extra, never needed for a hit.
    """

    tokens: list[str] = Field(default_factory=list)
    exact: list[str] = Field(default_factory=list)
    variants: list[str] = Field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Nothing to look for: the keyword leg yields no hits at all."""
        return not self.tokens


class LegHit(Shape):
    """A chunk that one leg found."""

    chunk_id: str
    score: float


class LegRanking(Shape):
    """The hits of one leg for one query, best first. `weight` is the leg's, `query_weight` the query's."""

    leg: str
    hits: list[LegHit]
    weight: float = 1.0
    query_weight: float = 1.0


class FusedHit(Shape):
    """A chunk with its fused score; `scores` holds each leg's best raw score for `explain`."""

    chunk_id: str
    score: float
    scores: dict[str, float] = Field(default_factory=dict)


class PassageChunk(Shape):
    """A live, readable chunk as stored. A summary has null offsets: it is found but never cited."""

    chunk_id: str
    document_id: str
    document_version: int
    ordinal: int
    title: str | None = None
    text: str
    start: int | None = None
    end: int | None = None
    page_start: int | None = None
    page_end: int | None = None
    heading_path: list[str] = Field(default_factory=list)
    parent_start: int | None = None
    parent_end: int | None = None
    context: str | None = None
    kind: Literal["text", "table", "code", "summary"] = "text"
    tokens: int = 0
    updated_at: datetime | None = None
    space_id: str | None = None

    @property
    def citable(self) -> bool:
        return self.start is not None and self.end is not None


class PassagePart(Shape):
    """A range of a passage and the chunk it came from: passage.text[passage_start:passage_end] == chunk text[start:end]."""

    passage_start: int
    passage_end: int
    document_id: str
    document_version: int
    chunk_id: str
    start: int
    end: int
    page_start: int | None = None
    page_end: int | None = None
    context: str | None = None
    kind: Literal["text", "table", "code", "summary"] = "text"


class Passage(Shape):
    """A numbered piece of one document version that a model may read and cite.

    Ranges of `text` that no part covers are separators of ours. `duplicates` are the parts of near-identical
    passages that were left out in its favour. A passage without parts (`n` = 0) is background: read, never cited.
    """

    n: int
    document_id: str
    document_version: int
    title: str | None = None
    text: str
    score: float
    heading_path: list[str] = Field(default_factory=list)
    page_start: int | None = None
    page_end: int | None = None
    updated_at: datetime | None = None
    context: str | None = None
    parts: list[PassagePart] = Field(default_factory=list)
    hit_chunk_ids: list[str] = Field(default_factory=list)
    duplicates: list[PassageDuplicate] = Field(default_factory=list)
    tokens: int = 0


class PassageDuplicate(Shape):
    """Another chunk that says nearly the same as the passage's hit."""

    document_id: str
    document_version: int
    chunk_id: str
    title: str | None = None
    start: int | None
    end: int | None


class CitedSentence(Shape):
    """text[start:end] of an answer, its marks included, and the passages it cites, in order.

    `marks` are the places of its marks in the text.
    """

    start: int
    end: int
    marks: list[tuple[int, int]] = Field(default_factory=list)
    numbers: list[int] = Field(default_factory=list)


class CitedText(Shape):
    """An answer whose every mark is a supplied number. `used` is in order of first use."""

    text: str
    used: list[int] = Field(default_factory=list)
    sentences: list[CitedSentence] = Field(default_factory=list)


class CheckedText(Shape):
    """An answer whose citations were checked. `unsupported` are spans of `text`, each ending with its visible mark."""

    text: str
    citations: list[Citation] = Field(default_factory=list)
    unsupported: list[tuple[int, int]] = Field(default_factory=list)


class SpaceStatistics(Shape):
    """What the evidence score needs to know of a space.

    `chunks` counts what `term_counts` was counted over; a term's count is the number of chunks that hold it
    (terms as `services.retrieval.analyser.terms` makes them). `mean_vector` is the mean of the chunk vectors.
    """

    chunks: int
    mean_vector: list[float]
    term_counts: Mapping[str, int]


class ExtractiveSentence(Shape):
    """A verbatim quote: passage `n`'s text[start:end], with the table header it belongs under, if it is a row."""

    n: int
    text: str
    start: int
    end: int
    score: float
    header: str | None = None


Passage.model_rebuild()
