"""The main job on the cluster's engines: documents in, cited answers out, over a real Kafka and Elasticsearch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running.processes import PerdureProcess, wait_until

pytestmark = pytest.mark.peers
TEXT = b"# Leave policy\n\nEvery employee has 27 days of annual leave. The form is HR-4711.\n"
QUESTION = "How many days of annual leave does every employee have?"


@pytest.fixture(scope="module")
def perdure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PerdureProcess]:
    kafka, elasticsearch = (os.environ.get(f"PERDURE_TEST_{name}") for name in ("KAFKA_BOOTSTRAP", "ELASTICSEARCH_URL"))
    if not kafka or not elasticsearch:
        pytest.skip("needs PERDURE_TEST_KAFKA_BOOTSTRAP and PERDURE_TEST_ELASTICSEARCH_URL: run `make test-peers`")
    env = {"PERDURE_KAFKA_BOOTSTRAP": kafka, "PERDURE_ELASTICSEARCH_URL": elasticsearch}
    process = PerdureProcess(tmp_path_factory.mktemp("peers") / "data", env)
    try:
        yield process.start()
    finally:
        process.stop()


def test_a_document_is_found_cited_told_of_and_removed_on_real_kafka_and_elasticsearch(perdure: PerdureProcess) -> None:
    with perdure.client() as api:
        space = api.post("/spaces", json={"name": "peers"}).raise_for_status().json()["id"]
        sent = api.post("/documents", data={"space": space}, files={"file": ("leave.md", TEXT)}).raise_for_status()
        document = sent.json()["documents"][0]["document_id"]
        wait_until(lambda: api.get(f"/documents/{document}").json()["state"] == "ready")

        found = api.post("/search", json={"query": "HR-4711", "space": space}).raise_for_status().json()
        assert [leg["name"] for leg in found["legs"] if leg["hits"] and not leg["error"]] == ["vector", "keyword"]
        assert found["hits"][0]["document_id"] == document

        asked = api.post("/answers", json={"question": QUESTION, "space": space}).raise_for_status().json()
        answer = wait_until(lambda: _ended(api.get(f"/answers/{asked['answer_id']}").json()))
        assert answer["answered"]
        assert answer["citations"][0]["document_id"] == document

        removal = api.delete(f"/documents/{document}").raise_for_status().json()["run_id"]
        assert wait_until(lambda: _ended(api.get(f"/runs/{removal}").json()))["state"] == "succeeded"
        assert api.post("/search", json={"query": "HR-4711", "space": space}).json()["hits"] == []
        wait_until(lambda: _delivered(api.get("/diagnostics").json()))


def _ended(record: dict[str, Any]) -> dict[str, Any] | None:
    return record if record["state"] in ("succeeded", "failed", "cancelled", "expired") else None


def _delivered(diagnostics: Any) -> bool:
    """Every event was handled by the audit consumer: nothing waits in the outbox any more."""
    return "0 waiting" in json.dumps(diagnostics)


def test_the_engines_that_are_servers_are_not_started_beside(perdure: PerdureProcess) -> None:
    assert not (Path(perdure.data_dir) / "run" / "kafka.json").exists()
    assert not any((Path(perdure.data_dir) / "tantivy").glob("*"))
