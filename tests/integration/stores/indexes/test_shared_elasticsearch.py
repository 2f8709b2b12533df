"""Several processes on one Elasticsearch: whoever comes second, or finds the index gone, goes on."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from schemas.errors import EngineDown
from tests.integration.stores.indexes.chunks import chunk, chunk_id, scope
from tests.integration.stores.indexes.conftest import elasticsearch
from tests.integration.stores.indexes.finding import find

pytestmark = pytest.mark.peers


async def test_two_that_make_the_index_together_both_write_to_it() -> None:
    name = f"test-{uuid.uuid4().hex}"
    both = [elasticsearch(name), elasticsearch(name)]
    await asyncio.gather(*(index.upsert([chunk(str(number))]) for number, index in enumerate(both)))
    for index in both:
        assert await find(index, scope()) == {chunk_id("0"), chunk_id("1")}
    await both[0].clear()
    for index in both:
        await index.close()


async def test_an_index_that_another_process_cleared_is_never_made_with_guessed_mappings() -> None:
    name = f"test-{uuid.uuid4().hex}"
    ours, theirs = elasticsearch(name), elasticsearch(name)
    await ours.upsert([chunk("1")])
    await theirs.clear()
    with pytest.raises(EngineDown, match="has gone"):
        await ours.upsert([chunk("1")])
    await ours.upsert([chunk("1")])
    assert await find(ours, scope(documents=["d"])) == {chunk_id("1")}
    await ours.clear()
    for index in (ours, theirs):
        await index.close()
