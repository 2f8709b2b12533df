"""What callers send about documents (contract: Documents). Multipart uploads are read by `services/api/upload_form.py`."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def _reader(value: str) -> str:
    kind, _, key = value.partition(":")
    if value != "space" and (kind not in {"user", "group"} or not key):
        raise ValueError("a reader is `space`, `user:<id>` or `group:<id>`")
    return value


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("a URL begins with http:// or https:// and names a host")
    return value


Reader = Annotated[str, StringConstraints(max_length=200), AfterValidator(_reader)]
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
MediaType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+$", max_length=127)]
WebAddress = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000), AfterValidator(_web_address)]
MAX_READERS = 1_000


class _Named(BaseModel):
    model_config = ConfigDict(extra="forbid")

    space: str = Field(min_length=1)
    external_id: str | None = Field(None, min_length=1)
    media_type: MediaType | None = None
    readers: list[Reader] | None = Field(None, max_length=MAX_READERS)
    tags: list[Tag] | None = None


class TextDocument(_Named):
    """A document written as text."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "space": "handbook",
                    "title": "Leave",
                    "text": "# Leave\n\nEverybody has 30 days.",
                    "media_type": "text/markdown",
                }
            ]
        },
    )

    title: str = Field(min_length=1)
    text: str


class UrlDocument(_Named):
    """A document fetched from the web."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"space": "handbook", "url": "https://example.org/leave.html"}]},
    )

    url: WebAddress
    title: str | None = Field(None, min_length=1)


class ReadersChange(BaseModel):
    """The new readers, all of them."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"readers": ["space"]}]})

    readers: list[Reader] = Field(max_length=MAX_READERS)


class TagsChange(BaseModel):
    """The new tags, all of them."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"tags": ["policy", "2026"]}]})

    tags: list[Tag]
