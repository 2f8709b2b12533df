"""Both keyword engines find the same chunks for the same tokens; Tantivy alone is held to the expected ids."""

from __future__ import annotations

import os
import random
import uuid
from pathlib import Path

import pytest

from schemas.index_records import KeywordQuery
from services.stores.elasticsearch_keywords import ElasticsearchKeywords, connect_elasticsearch
from services.stores.tantivy_keywords import TantivyKeywords
from tests.integration.stores.indexes.chunks import chunk, chunk_id, scope

BODIES = {
    "leave": "annual annu leave leav carry carri over",
    "refund": "refunds refund come back within 5 days day",
    "zh": "年假 假结 结转 转五 五天",
    "mixed": "gpt-4 gpt 4 模型 型价 价格",
    "id": "ppr-9087 ppr 9087 outage outag",
    "code": "c++ a:b std::vector <t>",
    "accent": "café résumé naïve",
    "emoji": "🚀 launch 𝄞",
    "long": "x" * 400,
    "empty": "",
}
TITLES = {"refund": "refund polici policy", "zh": "年假", "empty": "nothing noth here"}
QUERIES = {
    "leave": {"leave"}, "refund": {"refund"}, "年假": {"zh"}, "假结 leav": {"zh", "leave"}, "polici": {"refund"},
    "gpt-4": {"mixed"}, "4": {"mixed"}, "ppr-9087": {"id"}, "a:b": {"code"}, "c++ <t>": {"code"}, "cafe": set(),
    "café": {"accent"}, "🚀": {"emoji"}, "𝄞 价格": {"emoji", "mixed"}, "x" * 400: {"long"}, "x" * 256: {"long"},
    "x" * 255: {"long"}, "x" * 254: set(), "noth": {"empty"}, "Leave": set(), "day leave refund": {"leave", "refund"},
}  # fmt: skip
CHUNKS = [
    chunk(name, body_tokens=body, title_tokens=TITLES.get(name, ""), exact_tokens="ppr-9087" if name == "id" else "")
    for name, body in BODIES.items()
]


async def test_tantivy_finds_what_the_table_says(tmp_path: Path) -> None:
    index = TantivyKeywords(tmp_path, gather_s=0.001)
    await index.open()
    await index.upsert(CHUNKS)
    for text, expected in QUERIES.items():
        hits = await index.search(KeywordQuery(tokens=text.split()), scope(), 50)
        assert {hit.id for hit in hits} == {chunk_id(name) for name in expected}, text
    await index.close()


@pytest.mark.peers
async def test_elasticsearch_finds_the_same_chunks_as_tantivy_in_the_same_order(tmp_path: Path) -> None:
    url = os.environ.get("PERDURE_TEST_ELASTICSEARCH_URL")
    if not url:
        pytest.skip("PERDURE_TEST_ELASTICSEARCH_URL is not set: tests/peers/README.md says how to start one")
    chance = random.Random(11)
    vocabulary = [f"w{number}" for number in range(60)]
    crowd = [
        chunk(
            f"crowd {number}",
            body_tokens=" ".join(chance.choices(vocabulary, k=chance.randrange(5, 60))),
            title_tokens=" ".join(chance.choices(vocabulary, k=4)),
        )
        for number in range(300)
    ]
    asked = [*QUERIES, *(" ".join(chance.sample(vocabulary, 4)) for _ in range(30))]
    tantivy = TantivyKeywords(tmp_path, gather_s=0.001)
    elastic = ElasticsearchKeywords(connect_elasticsearch(url, None, 30), f"test-{uuid.uuid4().hex}", replicas=0)
    for index in (tantivy, elastic):
        await index.open()
        await index.upsert([*CHUNKS, *crowd])
    for text in asked:
        for query in (KeywordQuery(text.split()), KeywordQuery(text.split(), exact=["ppr-9087"])):
            ours = await tantivy.search(query, scope(), 1_000)
            theirs = await elastic.search(query, scope(), 1_000)
            assert {hit.id for hit in ours} == {hit.id for hit in theirs}, text
            scores = {hit.id: hit.score for hit in theirs}
            assert [hit.score for hit in ours] == pytest.approx([scores[hit.id] for hit in ours], rel=0.05), text
    await elastic.clear()
    for index in (tantivy, elastic):
        await index.close()
