"""What must be true whatever was killed when."""

from __future__ import annotations

from collections import Counter

from schemas.runs import TERMINAL_EVENTS
from tests.durability.conversation import PATIENCE_S, document, facts_of, history
from tests.running.processes import PerdureProcess, wait_until


def prove_one_end(perdure: PerdureProcess, run_id: str, state: str = "succeeded") -> None:
    """Row, domain events and stream agree on one end; the stream's numbers have no gap."""
    facts = facts_of(perdure)
    row = facts.run(run_id)
    assert (row["state"], row["waiting_for"]) == (state, None), row
    domain = facts.stream(f"run:{run_id}")
    assert [event["stream_version"] for event in domain] == list(range(1, len(domain) + 1))
    types = Counter(event["type"] for event in domain)
    assert types["run.queued"] == 1
    assert types["run.started"] <= 1
    assert types["run.ended"] == 1
    assert domain[-1]["type"] == "run.ended"
    told = facts.run_events(run_id)
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert [event["type"] for event in told if event["type"] in TERMINAL_EVENTS] == [f"run.{state}"]
    assert told[-1]["type"] == f"run.{state}"
    with perdure.client() as client:
        assert client.get(f"/runs/{run_id}").json()["state"] == state


def prove_ready(perdure: PerdureProcess, document_id: str, *, version: int = 1) -> None:
    """The newest version is live; each of its events happened once; history shows every event of the stream."""
    found = document(perdure, document_id)
    assert found is not None
    assert (found["state"], found["version"], found["live_version"]) == ("ready", version, version), found
    facts = facts_of(perdure)
    events = facts.stream(f"document:{document_id}")
    assert [event["stream_version"] for event in events] == list(range(1, len(events) + 1))
    of_version = [event for event in events if event["data"].get("version") == version]
    once = Counter((event["type"], event["data"].get("stage")) for event in of_version)
    assert [key for key, times in once.items() if times > 1] == []
    for type in ("document.received", "document.published", "document.ready"):
        assert sum(event["type"] == type for event in of_version) == 1, type
    told = history(perdure, document_id)
    assert [(each["stream_version"], each["type"]) for each in told] == [
        (event["stream_version"], event["type"]) for event in events
    ]
    chunks = facts.chunks(document_id)
    published = next(event for event in of_version if event["type"] == "document.published")
    assert published["data"]["chunks"] == len(chunks) > 0


def prove_removed(perdure: PerdureProcess, document_id: str) -> None:
    """404 everywhere, no row and no blob left, one `document.removed`."""
    assert document(perdure, document_id) is None
    facts = facts_of(perdure)
    with perdure.client() as client:
        for part in ("text", "chunks", "file", "history", "versions"):
            assert client.get(f"/documents/{document_id}/{part}").status_code == 404, part
    types = Counter(event["type"] for event in facts.stream(f"document:{document_id}"))
    assert (types["document.removing"], types["document.removed"]) == (1, 1)
    assert facts.leftovers(document_id) == {}
    blobs = [str(path) for path in (perdure.data_dir / "blobs").rglob("*") if path.is_file()]
    assert [path for path in blobs if document_id in path] == []


def prove_audited(perdure: PerdureProcess, within_s: float = PATIENCE_S) -> None:
    """The audit log, kept over Kafka by the consumers, ends up equal to the facts: nothing missing, nothing doubled."""
    facts = facts_of(perdure)
    try:
        wait_until(lambda: not facts.unaudited(), within_s)
    except TimeoutError:
        raise AssertionError(f"audit log differs: {facts.unaudited()[:5]}\n{perdure.log()[-2000:]}") from None
