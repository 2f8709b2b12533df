"""The API against requests made from its own OpenAPI: nothing it is sent makes it fail, and it answers as it says."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from services.api.app import create_app
from services.stores.database import Database
from tests.integration.api import serving
from tests.integration.api.served import serve
from tests.integration.api.serving import Person, person, space_of, upload

EXAMPLES = int(os.environ.get("PERDURE_TEST_API_EXAMPLES", "4"))
STREAM = "/v1/runs/{run_id}/events"
"""Does not end by itself: asked for as a list here, streamed in test_event_stream."""
REPLY_S = 30
"""Hypothesis takes pytest's timeout for a failing example and asks again, without any: a request must end by itself."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@dataclass
class Target:
    """A server in a thread of its own, for a client that blocks; ids in it that exist."""

    base: str = ""
    key: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    openapi: dict[str, Any] = field(default_factory=dict)
    up: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    async def run(self, database_url: str, blobs: Path) -> None:
        database = Database(database_url)
        container = serving.serving(database, blobs, {"requests_per_minute": 1_000_000})
        async with serve(container) as self.base:
            app = create_app(container)
            self.openapi = app.openapi()
            await self._fill(await person(database, app, role="admin"))
            self.up.set()
            await asyncio.to_thread(self.done.wait)
        await database.close()

    async def _fill(self, admin: Person) -> None:
        self.key = admin.key
        space = await space_of(admin)
        receipt = await upload(admin, space)
        answer = (await admin.http.post("/v1/answers", json={"question": "Why?"})).json()
        group = (await admin.http.post("/v1/groups", json={"name": "Finance"})).json()
        self.ids = {
            "space": space,
            "document_id": receipt["document_id"],
            "run_id": answer["run_id"],
            "answer_id": answer["answer_id"],
            "group_id": group["id"],
            "principal": "tenant",
        }


@pytest.fixture
def target(database_url: str, tmp_path: Path) -> Iterator[Target]:
    target = Target()
    thread = threading.Thread(target=lambda: asyncio.run(target.run(database_url, tmp_path / "blobs")))
    thread.start()
    try:
        assert target.up.wait(60)
        yield target
    finally:
        target.done.set()
        thread.join(60)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("known", [True, False], ids=["ids that exist", "any ids"])
def test_the_api_answers_its_own_openapi_as_it_promises(target: Target, mode: GenerationMode, known: bool) -> None:
    schema = schemathesis.openapi.from_dict(target.openapi)
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {target.key}"
    asked = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        path = {name: id for name, id in target.ids.items() if "{" + name + "}" in operation.path}
        if (known and not path) or (known and operation.method == "delete"):
            continue

        @hypothesis.settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(mode, path_parameters=path if known else None))
        def call(case: schemathesis.Case[Any]) -> None:
            nonlocal asked
            query = {"format": "json"} if case.operation.path == STREAM else {}
            case.query = {**(case.query or {}), **query}
            case.call_and_validate(base_url=target.base, session=session, checks=CHECKS, timeout=REPLY_S)
            asked += 1

        try:
            call()
        except hypothesis.errors.Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE  # nothing about this operation can be wrong
    assert asked > EXAMPLES
