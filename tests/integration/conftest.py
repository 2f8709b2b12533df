"""One embedding model and one parser pool for all tests that ingest; a world of its own for each."""

from __future__ import annotations

from tests.world.fixtures import children_fixture, embedding_fixture, world_fixture

__all__ = ["children_fixture", "embedding_fixture", "world_fixture"]
