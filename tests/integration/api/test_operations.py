"""Health, diagnostics, metrics, traces, documentation, and roles."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from fastapi import FastAPI
from sqlalchemy import select

from schemas.errors import EngineDown
from services.api.app import create_app
from services.api.metrics import create_metrics_app
from services.container import EngineProbe, Serving
from services.stores.database import Database
from services.stores.tables.facts import domain_events
from tests.integration.api import serving
from tests.integration.api.serving import BASE, Person, client, person, space_of, stream_role, upload

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def _fine() -> str:
    return "answers"


async def _away() -> str:
    raise EngineDown("kafka", "Kafka does not answer")


async def test_ready_is_200_or_503_for_anyone_and_names_parts_to_who_has_a_key(
    database: Database, tmp_path: Path
) -> None:
    for needed, status in ((False, 200), (True, 503)):
        probes = [
            EngineProbe("postgres", _fine, "", needed=True),
            EngineProbe("kafka", _away, "Start it.", needed=needed),
        ]
        container = serving.serving(database, tmp_path / "blobs", probes=probes)
        app = create_app(container)
        admin = await person(database, app, role="admin")
        for path in ("/health/ready", "/v1/health/ready"):
            bare = await client(app, None).get(path)
            assert (bare.status_code, "parts" in bare.json()) == (status, False)
            parts = (await admin.http.get(path)).json()["parts"]
            assert [(part["name"], part["severity"]) for part in parts] == [("postgres", "ok"), ("kafka", "error")]
        assert (await client(app, "prd_wrong").get("/health/ready")).status_code == status
        assert (await client(app, None).get("/health/live")).json()["status"] == "live"
        found = (await admin.http.get("/v1/diagnostics")).json()["items"]
        kafka = next(part for part in found if part["name"] == "kafka")
        assert (kafka["detail"], kafka["remedy"]) == ("Kafka does not answer", "Start it.")


async def test_postgres_away_is_503_with_a_time_to_come_back(tmp_path: Path) -> None:
    nowhere = Database(f"postgresql+psycopg://perdure@/none?host={tmp_path}")
    app = create_app(serving.serving(nowhere, tmp_path / "blobs"))
    reply = await client(app, "prd_any").get("/v1/me")
    assert (reply.status_code, reply.json()["engine"]) == (503, "postgres")
    assert reply.headers["retry-after"]
    assert (await client(app, "prd_any").get("/health/ready")).status_code == 200
    await nowhere.close()


async def test_metrics_need_an_admin_or_the_loopback_port(admin: Person, member: Person, container: Serving) -> None:
    space = await space_of(admin)
    await upload(admin, space)
    assert (await member.http.get("/metrics")).status_code == 403
    text = (await admin.http.get("/metrics")).text
    assert re.search(r'perdure_http_requests_total\{method="POST",route="[^"]*/documents",status="202"\} [1-9]', text)
    assert 'perdure_outbox_rows{destination="temporal"} 1.0' in text
    assert 'perdure_open_runs{kind="ingest",state="queued"} 1.0' in text
    assert "perdure_sse_subscribers 0.0" in text
    assert space not in text
    transport = httpx.ASGITransport(create_metrics_app(container))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as loopback:
        assert "perdure_open_runs" in (await loopback.get("/metrics")).text


async def test_a_trace_goes_on_from_its_caller_into_the_events(admin: Person, database: Database) -> None:
    space = await space_of(admin)
    header = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "X-Request-Id": "mine-1"}
    files = [("file", ("a.md", b"a"))]
    reply = await admin.http.post("/v1/documents", data={"space": space}, files=files, headers=header)
    assert reply.headers["x-request-id"] == "mine-1"
    assert reply.headers["traceparent"].split("-")[1] == TRACE
    async with database.begin("acme") as transaction:
        row = (await transaction.all(select(domain_events).where(domain_events.c.type == "document.received")))[0]
    assert row["traceparent"].split("-")[1] == TRACE
    made = await admin.http.get("/v1/me", headers={"traceparent": "nonsense", "X-Request-Id": "a\tb"})
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", made.headers["traceparent"])
    assert made.headers["x-request-id"] != "a\tb"


async def test_the_documentation_needs_no_key_and_loads_nothing(app: FastAPI) -> None:
    page = await client(app, None).get("/docs")
    assert page.status_code == 200
    assert "/v1/documents/{document_id}/history" in page.text
    assert not re.search(r"""(src|href)=["']https?:""", page.text)
    assert "`" not in re.sub(r"<pre>.*?</pre>", "", page.text, flags=re.DOTALL), "code spans are rendered"
    document = (await client(app, None).get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    operations = [
        (path, method, each) for path, methods in document["paths"].items() for method, each in methods.items()
    ]
    for path, _, operation in operations:
        assert operation["tags"], path
        assert bool(operation.get("security")) != path.startswith("/v1/health"), path
    bodies = {
        content["schema"]["$ref"].rpartition("/")[2]
        for _, _, each in operations
        for kind, content in each.get("requestBody", {}).get("content", {}).items()
        if kind == "application/json"
    }
    assert all(document["components"]["schemas"][name].get("examples") for name in bodies)


async def test_the_stream_role_has_runs_and_identity_and_nothing_that_needs_an_index(database: Database) -> None:
    async with serving.running(stream_role(database)) as app:
        admin = await person(database, app, role="admin")
        assert (await admin.http.get("/v1/me")).status_code == 200
        assert (await admin.http.get("/v1/runs")).status_code == 200
        assert (await admin.http.post("/v1/search", json={"query": "a"})).status_code == 404
        assert (await admin.http.get("/v1/documents")).status_code == 404
