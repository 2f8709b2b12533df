"""What every vector index does beyond the common contract."""

from __future__ import annotations

import pickle
import random
from array import array

import pytest

from services.stores.vector_index import EmbeddingDimensionChanged, VectorIndex
from tests.integration.stores.indexes.chunks import MODEL, axis, chunk, chunk_id, scope


async def test_nearest_come_first_and_the_score_is_the_cosine(vector_index: VectorIndex) -> None:
    await vector_index.upsert(
        [
            chunk("same", vector=axis(0)),
            chunk("leaning", vector=axis(0, lean=1.0)),
            chunk("across", vector=axis(4)),
            chunk("against", vector=[-1.0, *[0.0] * 7]),
        ]
    )
    hits = await vector_index.search(axis(0), scope(), 10, MODEL)
    assert [hit.id for hit in hits] == [chunk_id(name) for name in ("same", "leaning", "across", "against")]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.5**0.5, 0.0, -1.0], abs=1e-5)
    assert len(await vector_index.search(axis(0), scope(), 2, MODEL)) == 2


async def test_ten_of_tenant_b_are_all_found_among_five_thousand_nearer_ones_of_tenant_a(
    vector_index: VectorIndex,
) -> None:
    chance = random.Random(23)
    near = [
        chunk(f"near {number}", vector=[1.0, *(chance.gauss(0, 0.05) for _ in range(7))]) for number in range(5_000)
    ]
    far = [chunk(f"far {number}", tenant="b", vector=axis(4, lean=number / 10)) for number in range(10)]
    await vector_index.upsert(near[:2_500])
    await vector_index.upsert(far)
    await vector_index.upsert(near[2_500:])
    hits = await vector_index.search(axis(0), scope("b"), 10, MODEL)
    assert {hit.id for hit in hits} == {one.id for one in far}


async def test_vectors_of_another_model_of_the_same_dimension_are_never_searched(vector_index: VectorIndex) -> None:
    await vector_index.upsert([chunk("old", model="axes-8", vector=axis(0)), chunk("kept", vector=axis(1))])
    await vector_index.upsert([chunk("old", model="turned-8", vector=axis(3))])
    turned = await vector_index.search(axis(0), scope(), 10, "turned-8")
    assert [hit.id for hit in turned] == [chunk_id("old")]
    assert [hit.id for hit in await vector_index.search(axis(0), scope(), 10, "axes-8")] == [chunk_id("kept")]
    assert await vector_index.search(axis(0), scope(), 10, "unknown-8") == []
    assert (await vector_index.document_state("a", "d")).models == ("axes-8", "turned-8")
    assert await vector_index.model_counts() == {"axes-8": 1, "turned-8": 1}


async def test_a_model_of_another_dimension_is_refused_by_name_and_not_answered_with_nothing(
    vector_index: VectorIndex,
) -> None:
    await vector_index.upsert([chunk("1")])
    wide = chunk("2", model="axes-16", vector=axis(0, 16))
    with pytest.raises(EmbeddingDimensionChanged, match=r"8 dimensions and axes-16 gives 16") as refused:
        await vector_index.search(axis(0, 16), scope(), 10, "axes-16")
    assert (refused.value.indexed, refused.value.given, refused.value.code) == (8, 16, "model_unavailable")
    with pytest.raises(EmbeddingDimensionChanged):
        await vector_index.upsert([chunk("3"), wide])
    assert await vector_index.document_ids("a", "d") == {chunk_id("1")}, "nothing of a refused batch is written"
    await vector_index.clear()
    await vector_index.upsert([wide])
    assert [hit.id for hit in await vector_index.search(axis(0, 16), scope(), 10, "axes-16")] == [chunk_id("2")]


async def test_vectors_come_back_at_unit_length_for_the_ids_that_are_there(vector_index: VectorIndex) -> None:
    await vector_index.upsert([chunk("1", vector=[3.0, 4.0, *[0.0] * 6]), chunk("2", vector=axis(2))])
    stored = await vector_index.vectors([chunk_id("1"), chunk_id("2"), chunk_id("gone")])
    assert set(stored) == {chunk_id("1"), chunk_id("2")}
    assert stored[chunk_id("1")] == pytest.approx([0.6, 0.8, *[0.0] * 6])
    assert await vector_index.vectors([]) == {}


async def test_vectors_may_be_given_as_float32_bytes(vector_index: VectorIndex) -> None:
    await vector_index.upsert([chunk("1", vector=array("f", axis(5)).tobytes()), chunk("2", vector=axis(0))])
    hits = await vector_index.search(axis(5), scope(), 1, MODEL)
    assert [hit.id for hit in hits] == [chunk_id("1")]


async def test_a_chunk_without_vector_or_model_is_a_mistake_of_the_caller(vector_index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="no vector or no model"):
        await vector_index.upsert([chunk("1", vector=())])
    with pytest.raises(ValueError, match="no vector or no model"):
        await vector_index.upsert([chunk("1", model="")])


def test_the_dimension_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(EmbeddingDimensionChanged(8, 16, "axes-16")))
    assert (error.indexed, error.given, error.model) == (8, 16, "axes-16")
