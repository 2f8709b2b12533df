"""Documents given by URL: through the guard, and an error page is never content (B71)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from schemas.documents import Receipt, Upload
from schemas.errors import TransientFailure
from schemas.settings import FetchSettings
from services.gateways.safe_fetch import SafeFetch
from services.ingestion.fetch_stage import FetchStage
from tests.fakes.web_listener import WebListener, listening, page
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
HTML = b"<html><title>Leave</title><body><main><h1>Leave</h1><p>Thirty days of leave.</p></main></body></html>"


@pytest_asyncio.fixture(loop_scope="session")
async def web(world: World) -> AsyncIterator[WebListener]:
    """A web server on loopback, which this world's fetch stage may reach."""
    fetch = SafeFetch(FetchSettings(allow_private=True, timeout_s=5), 100_000)
    world.work.fetch = FetchStage(world.database, world.blobs, fetch)
    async with listening() as listener:
        yield listener
    await fetch.close()


async def given(world: World, url: str) -> Receipt:
    space = await world.space(world.root)
    return await world.reception.receive(world.root.actor, Upload(space_id=space, external_id=url, url=url))


async def test_a_page_becomes_a_document_with_its_bytes_and_type(world: World, web: WebListener) -> None:
    web.pages["/leave"] = page(200, HTML, Content_Type="text/html; charset=utf-8")
    receipt = await given(world, web.url("/leave"))
    assert (receipt.outcome, receipt.duplicate_of) == ("accepted", None)
    await world.work.everything(world.root.actor.tenant)
    assert receipt.document_id is not None
    document = await world.document(world.root, receipt.document_id)
    assert (document.state, document.media_type, document.bytes) == ("ready", "text/html", len(HTML))
    assert any("Thirty days" in text for text in await world.found(world.root, "days of leave"))


async def test_a_page_is_fetched_once_however_often_the_stage_runs(world: World, web: WebListener) -> None:
    web.pages["/leave"] = page(200, HTML, Content_Type="text/html")
    work = await world.claimed(await given(world, web.url("/leave")))
    await world.work.fetch.run(work)
    await world.work.fetch.run(work)
    assert len(web.asked) == 1


@pytest.mark.parametrize(("status", "code"), [(404, "unsupported"), (401, "unsupported"), (200, "empty")])
async def test_what_is_no_page_fails_and_its_words_are_in_no_store(
    world: World, web: WebListener, status: int, code: str
) -> None:
    web.pages["/x"] = page(status, b"" if status == 200 else b"<h1>Quokka not found</h1>")
    receipt = await given(world, web.url("/x"))
    await world.work.everything(world.root.actor.tenant)
    assert receipt.document_id is not None
    document = await world.document(world.root, receipt.document_id)
    assert document.error is not None
    assert (document.state, document.error.code, document.error.stage) == ("failed", code, "received")
    assert await world.count("chunks") == 0
    assert "quokka" not in (await world.everything_stored()).lower()


async def test_a_server_error_may_pass_and_leaves_nothing_behind(world: World, web: WebListener) -> None:
    web.pages["/x"] = page(503, b"Quokka overloaded")
    work = await world.claimed(await given(world, web.url("/x")))
    with pytest.raises(TransientFailure):
        await world.work.fetch.run(work)
    assert await world.blob_keys() == set()
    assert "quokka" not in (await world.everything_stored()).lower()


async def test_a_page_over_the_bound_fails_and_no_part_of_it_is_kept(world: World, web: WebListener) -> None:
    web.pages["/big"] = page(200, b"x" * 200_000)
    receipt = await given(world, web.url("/big"))
    await world.work.everything(world.root.actor.tenant)
    assert receipt.document_id is not None
    document = await world.document(world.root, receipt.document_id)
    assert document.error is not None
    assert document.error.code == "too_large"
    assert await world.blob_keys() == set()


async def test_without_leave_an_inside_address_is_never_connected_to(world: World) -> None:
    async with listening() as inside:
        inside.pages["/x"] = page(200, HTML)
        receipt = await given(world, inside.url("/x"))
        await world.work.everything(world.root.actor.tenant)
        assert inside.asked == []
    assert receipt.document_id is not None
    document = await world.document(world.root, receipt.document_id)
    assert document.error is not None
    assert (document.state, document.error.code) == ("failed", "unsupported")
