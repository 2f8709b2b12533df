"""Links that decide: what they show, what they decide, and when they do not; the pages over HTTP, the rest real."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from schemas.approvals import ApprovalView
from schemas.errors import Conflict
from services.agents.decision_links import DecisionLinks
from services.stores.tables.agents import approvals as approvals_table
from services.stores.tables.identity import users
from tests.fakes.openai_server import Reply
from tests.integration.agents.agency import Agency, calls
from tests.integration.api.serving import BASE, running, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASK = "[[plan]] Ring it."
KEY = "a key of this installation"
Visit = Callable[[httpx.AsyncClient, ApprovalView, str], Awaitable[None]]


def links_of(agency: Agency, *keys: str, hours: float = 72) -> DecisionLinks:
    return DecisionLinks(agency.world.database, agency.approvals, keys or [KEY], hours)


@asynccontextmanager
async def pages(agency: Agency, blobs: Path, links: DecisionLinks) -> AsyncIterator[httpx.AsyncClient]:
    container = replace(serving(agency.world.database, blobs), approvals=agency.approvals, decision_links=links)
    async with (
        running(container) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client,
    ):
        yield client


async def ring(agency: Agency, blobs: Path, visit: Visit, *replies: Reply, hours: float = 72) -> dict[str, Any]:
    """Runs a turn that asks; `visit` gets the request and the path of its link. The run afterwards."""
    links = links_of(agency, hours=hours)
    agency.plan(*(replies or (Reply(text="I ring.", calls=[calls("ring_bell", times=2)]),)), Reply(text="Done."))
    async with pages(agency, blobs, links) as client:

        async def decide(request: ApprovalView) -> None:
            issued = await links.issue(agency.world.root.actor, request.id)
            await visit(client, request, f"/decide/{issued.token}")

        return dict(await agency.ask(await agency.session(), ASK, decide))


async def decided(client: httpx.AsyncClient, path: str, word: str, **fields: str) -> httpx.Response:
    return await client.post(path, data={"decision": word, **fields})


async def test_looking_changes_nothing_and_the_form_decides_once(agency: Agency, tmp_path: Path) -> None:
    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        for method in ("GET", "GET", "HEAD", "OPTIONS"):
            await client.request(method, path)
        assert (await agency.approvals.get(agency.world.root.actor, request.id)).state == "pending"
        page = await client.get(path)
        assert page.status_code == 200
        assert "rings 2 times" in page.text
        assert page.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        first = await decided(client, path, "approve", feedback="Softly.")
        again = await decided(client, path, "approve", feedback="Softly.")
        other = await decided(client, path, "reject")
        assert [each.status_code for each in (first, again, other)] == [200, 200, 409]
        assert "Recorded: approved" in first.text
        assert "Recorded already: approved" in again.text
        assert "was approved already" in other.text
        assert "<form" not in other.text

    await ring(agency, tmp_path, visit)
    assert agency.bell.heard == [{"times": 2}]


async def test_other_arguments_are_held_against_the_schema_and_then_run(agency: Agency, tmp_path: Path) -> None:
    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        for wrong in ("{", "[]", '{"loud": true}'):
            page = await decided(client, path, "approve", arguments=wrong)
            assert page.status_code == 422
            assert 'role="alert"' in page.text
        assert (await decided(client, path, "shout")).status_code == 422
        assert (await agency.approvals.get(agency.world.root.actor, request.id)).state == "pending"
        assert (await decided(client, path, "approve", arguments='{"times": 5}')).status_code == 200

    await ring(agency, tmp_path, visit)
    assert agency.bell.heard == [{"times": 5}]


async def test_a_rejection_by_link_reaches_the_model(agency: Agency, tmp_path: Path) -> None:
    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        await decided(client, path, "reject", feedback="Not at\x00 night.")

    run = await ring(agency, tmp_path, visit)
    assert run["state"] == "succeeded"
    assert "Not at night." in agency.shown_text()
    assert agency.bell.heard == []


async def test_hostile_text_stays_text(agency: Agency, tmp_path: Path) -> None:
    hostile = "</textarea></pre><script>alert(1)</script><img src=x onerror=alert(1)>"

    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        page = await client.get(path)
        assert "alert(1)" in page.text
        assert re.findall(r"<(script|img)", page.text) == []
        back = await decided(client, path, "approve", arguments=hostile, feedback=hostile)
        assert back.status_code == 422
        assert re.findall(r"<(script|img)", back.text) == []

    await ring(agency, tmp_path, visit, Reply(text=hostile, calls=[calls("ask_user", question=hostile)]))


async def test_a_link_is_nobodys_after_its_user_its_request_or_its_time_is_gone(agency: Agency, tmp_path: Path) -> None:
    root = agency.world.root.actor

    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        for forged in (f"{path}x", path[:-4], "/decide/nothing"):
            assert (await client.get(forged)).status_code == 404
            assert (await decided(client, forged, "approve")).status_code == 404
        async with agency.world.database.begin(root.tenant) as transaction:
            changed = update(users).where(users.c.id == root.user).values(disabled_at=transaction.now)
            await transaction.execute(changed)
        refused = [await client.get(path), await decided(client, path, "approve")]
        async with agency.world.database.begin(root.tenant) as transaction:
            await transaction.execute(update(users).where(users.c.id == root.user).values(disabled_at=None))
        assert [each.status_code for each in refused] == [404, 404]
        async with agency.world.database.begin(root.tenant) as transaction:
            changed = update(approvals_table).where(approvals_table.c.id == request.id)
            await transaction.execute(changed.values(args_hash="another"))
        asked_otherwise = await decided(client, path, "approve")
        assert asked_otherwise.status_code == 409
        assert "has changed" in asked_otherwise.text
        assert (await agency.approvals.get(root, request.id)).state == "pending"
        raise Stop

    with pytest.raises(Stop):
        await ring(agency, tmp_path, visit)
    assert agency.bell.heard == []


class Stop(Exception):
    """What was to be seen was seen."""


async def test_a_link_is_over_before_its_request_is(agency: Agency, tmp_path: Path) -> None:
    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        late = await decided(client, path, "approve")
        assert late.status_code == 409
        assert "This link is over" in late.text
        await agency.decision("reject")(request)
        assert "is rejected" in (await client.get(path)).text

    await ring(agency, tmp_path, visit, hours=1e-9)


async def test_keys_are_rotated_without_losing_links(agency: Agency, tmp_path: Path) -> None:
    async def visit(client: httpx.AsyncClient, request: ApprovalView, path: str) -> None:
        token = path.rpartition("/")[2]
        assert links_of(agency, KEY, "a newer key").ticket(token).approval_id == request.id
        async with pages(agency, tmp_path, links_of(agency, "a newer key")) as others:
            assert (await others.get(path)).status_code == 404
        with pytest.raises(Conflict, match="PERDURE_AGENTS__LINK_KEYS"):
            await DecisionLinks(agency.world.database, agency.approvals, [], 1).issue(
                agency.world.root.actor, request.id
            )
        await agency.decision("reject")(request)
        with pytest.raises(Conflict, match="rejected already"):
            await links_of(agency).issue(agency.world.root.actor, request.id)

    await ring(agency, tmp_path, visit)
