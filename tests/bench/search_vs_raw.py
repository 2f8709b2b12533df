"""The search service, against the same query embedding, both engines and one fetch of the texts called bare."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import psycopg
from sqlalchemy import make_url

from schemas.identity import SpaceDraft
from schemas.index_records import IndexFilter, KeywordQuery
from schemas.search import SearchRequest
from services.access.access_filter import index_filter
from services.access.identity import Identity
from services.access.load_access import load_access
from services.retrieval.analyser import analyse_query
from tests.bench import material
from tests.bench.in_process import InProcess, services_at
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.synthetic_chunks import fill

SPACE = "bench"
LIMIT = 10
FETCH = "SELECT id, document_id, text FROM chunks WHERE id = ANY(%s)"
Ask = Callable[[str], Awaitable[None]]


async def measure(bench: Bench) -> Measured:
    """Two sides by turns on one store that is filled twice, so that both sizes have one history."""
    sizes = {"10k": 10_000, "100k": 100_000}
    if bench.quick:
        sizes = {"10k": 2_000, "100k": 10_000}
    report: Measured = {"raw": {}}
    async with services_at(bench.folder / "search") as plain:
        space = await Identity.of(plain.services.engines.database).spaces.create(plain.admin, SpaceDraft(name=SPACE))
        have, texts = 0, []
        for name, size in sizes.items():
            say(f"filling up to {size} chunks")
            texts = await fill(plain, space.id, have, size)
            have = size
            raw = await _compare(plain, space.id, texts, bench.times(400, 60), random.Random(size))
            report[f"search_p50_vs_raw_{name}"] = round(raw["service_ms"]["p50"] / raw["bare_ms"]["p50"], 3)
            report["raw"][name] = {"chunks": size, **raw}
            say(f"{size} chunks: {raw['service_ms']['p50']} ms by the service, {raw['bare_ms']['p50']} ms bare")
    return report


async def _compare(plain: InProcess, space: str, texts: list[str], pairs: int, rng: random.Random) -> Measured:
    """Every query is new to the process, because the model remembers the vectors of those it had."""
    database = plain.services.engines.database
    async with database.begin(plain.admin.actor.tenant) as transaction:
        access = await load_access(transaction, plain.admin.actor)
    assert access is not None
    flt = index_filter(access, [space], None)
    url = make_url(database.url).set(drivername="postgresql").render_as_string(hide_password=False)
    taken_ms: dict[str, list[float]] = {"service": [], "bare": []}
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        tenant = plain.admin.actor.tenant
        await connection.execute("SELECT set_config('perdure.tenant', %s, false)", (tenant,))
        sides: dict[str, Ask] = {
            "service": lambda query: _by_service(plain, space, query),
            "bare": lambda query: _bare(plain, connection, flt, query),
        }
        for pair in range(-10, pairs):
            for name in ("service", "bare") if pair % 2 else ("bare", "service"):
                query = material.question(rng, rng.choice(texts))
                started = time.perf_counter()
                await sides[name](query)
                if pair >= 0:
                    taken_ms[name].append((time.perf_counter() - started) * 1_000)
    ratio_p95 = percentile(taken_ms["service"], 0.95) / percentile(taken_ms["bare"], 0.95)
    return {**{f"{name}_ms": spread(values) for name, values in taken_ms.items()}, "p95_ratio": round(ratio_p95, 3)}


async def _by_service(plain: InProcess, space: str, query: str) -> None:
    request = SearchRequest(query=query, space=space, limit=LIMIT)
    found = await plain.services.search.search(plain.admin.actor, request)
    assert len(found.hits) == LIMIT
    assert not found.degraded


async def _bare(
    plain: InProcess, connection: psycopg.AsyncConnection[tuple[object, ...]], flt: IndexFilter, query: str
) -> None:
    """As deep as the service looks, which fetches the texts of all that both engines found."""
    engines = plain.services.engines
    depth, model = engines.settings.retrieval.recall, engines.model
    tokens = analyse_query(query)
    words = KeywordQuery([*tokens.tokens, *tokens.variants], tokens.exact, engines.settings.retrieval.title_weight)

    vector = await model.embed_query(query)
    by_vector, by_words = await asyncio.gather(
        engines.vectors.search(vector.tolist(), flt, depth, model.name), engines.keywords.search(words, flt, depth)
    )
    ids = list({hit.id for hit in (*by_vector, *by_words)})
    cursor = await connection.execute(FETCH, (ids,))
    assert len(await cursor.fetchall()) == len(ids)
