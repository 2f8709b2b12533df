"""The cache of query vectors."""

from __future__ import annotations

import numpy as np

from services.gateways.query_vectors import QueryVectors


def vector(value: float) -> np.ndarray:
    return np.full(2, value, np.float32)


def test_the_least_recently_used_vector_goes_first() -> None:
    cache = QueryVectors("model", capacity=2)
    cache.keep("a", vector(1))
    cache.keep("b", vector(2))
    assert cache.get("a") is not None
    cache.keep("c", vector(3))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.get("c") is not None


def test_a_kept_vector_cannot_be_changed_by_its_reader() -> None:
    cache = QueryVectors("model")
    assert not cache.keep("a", vector(1)).flags.writeable


def test_texts_that_are_no_unicode_have_keys_of_their_own() -> None:
    cache = QueryVectors("model")
    cache.keep("\ud800", vector(1))
    assert cache.get("\ud800") is not None
    assert cache.get("\ud801") is None
