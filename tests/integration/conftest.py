"""One embedding model and one parser pool for all tests that ingest; a world of its own for each."""

from __future__ import annotations

from tests.builders import embedding_fixture, parsers_fixture, world_fixture

__all__ = ["embedding_fixture", "parsers_fixture", "world_fixture"]
