"""Tools of the session's sandbox, on the real local server: files stay, outputs are given to the person, nothing runs twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from schemas.errors import NotFound, PermanentFailure
from services.agents.artifacts import Artifacts
from services.agents.tool import ToolFailed
from services.agents.turn_reading import TurnWork, turn_rows
from services.gateways.e2b_sandboxes import E2bSandboxes
from services.gateways.sandbox import Sandboxes
from tests.fakes.openai_server import OpenAIServer, Reply
from tests.integration.agents.agency import Agency, build_agency, calls
from tests.integration.sandboxes.server_process import SandboxServer
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASK = "[[plan]] Compute it."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    server = SandboxServer(tmp_path_factory.mktemp("sandboxes")).start()
    yield server
    server.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def lab(world: World, server: SandboxServer) -> AsyncIterator[Agency]:
    """An agency whose agents have sandboxes."""
    options = server.sdk_options

    async def connect() -> Sandboxes:
        return E2bSandboxes(options["api_key"], url=options["api_url"])

    async with OpenAIServer() as models:
        yield build_agency(world, models, connect)


def results(lab: Agency) -> list[str]:
    """What the model was told of this turn's calls."""
    told = [message["content"] for message in lab.shown() if message["role"] == "tool"]
    return [json.loads(each)["error"] if each.startswith('{"error":') else each for each in told]


async def until_there(lab: Agency, work: TurnWork, path: str) -> None:
    """Waits for a file in the workspace of the turn's session."""
    async with lab.world.database.begin(work.tenant) as transaction:
        context = (await turn_rows(transaction, work)).context(work, "look")
    tool = lab.registry.get("read_file")
    assert tool is not None
    while True:
        with contextlib.suppress(ToolFailed, PermanentFailure):
            await tool.call(context, {"path": path})
            return
        await asyncio.sleep(0.05)


async def test_a_session_keeps_its_files_from_turn_to_turn_and_another_session_does_not_see_them(lab: Agency) -> None:
    session = await lab.session(mode="read_only")
    lab.plan(Reply(calls=[calls("write_file", path="notes/a.txt", text="heron")]), Reply(text="Written."))
    await lab.ask(session, ASK)
    lab.plan(
        Reply(calls=[calls("read_file", path="notes/a.txt"), calls("list_files", path="notes")]), Reply(text="Read.")
    )
    await lab.ask(session, ASK)
    assert results(lab)[-2] == "heron"
    assert "notes/a.txt" in results(lab)[-1]
    await lab.ask(await lab.session(), ASK)
    assert "heron" not in results(lab)[-2]


async def test_what_a_command_leaves_in_outputs_is_given_to_the_person_once(lab: Agency) -> None:
    command = "mkdir -p outputs/tables && echo 1,2 > outputs/tables/a.csv && echo working"
    lab.plan(
        Reply(calls=[calls("run_command", command=command)]),
        Reply(calls=[calls("run_command", command="cat outputs/tables/a.csv")]),
        Reply(text="There it is."),
    )
    session = await lab.session()
    run = await lab.ask(session, ASK)
    assert run["state"] == "succeeded"
    artifacts = Artifacts(lab.world.database, lab.world.blobs)
    actor = lab.world.root.actor
    (left,) = await artifacts.of_run(actor, run["id"], "", 10)
    assert (left.name, left.media_type, left.bytes, left.session_id) == ("tables/a.csv", "text/csv", 4, session)
    content = await artifacts.content(actor, left.id)
    assert b"".join([piece async for piece in content.pieces]) == b"1,2\n"
    stranger = (await lab.world.person()).actor
    with pytest.raises(NotFound):
        await artifacts.content(stranger, left.id)


async def test_how_a_command_ended_is_told_apart(lab: Agency) -> None:
    lab.plan(
        Reply(calls=[calls("run_command", command="echo out; echo err >&2; exit 3")]),
        Reply(calls=[calls("run_command", command="sleep 60", timeout=1)]),
        Reply(calls=[calls("run_command", command="kill -SEGV $$")]),
        Reply(text="I see."),
    )
    await lab.ask(await lab.session(), ASK)
    failed, late, crashed = results(lab)
    assert "exit code 3" in failed
    assert "stdout:\nout" in failed
    assert "stderr:\nerr" in failed
    assert late.startswith("timeout:")
    assert crashed.startswith("signal:")


async def test_paths_out_of_the_workspace_are_refused_with_a_sentence(lab: Agency) -> None:
    lab.plan(
        Reply(calls=[calls("read_file", path="/etc/shadow"), calls("read_file", path="../../etc/passwd")]),
        Reply(text="No."),
    )
    await lab.ask(await lab.session(), ASK)
    outside, upwards = refusals = results(lab)
    assert "is outside the workspace" in outside
    assert "cannot go up" in upwards
    assert "root:" not in "".join(refusals)


async def test_a_command_that_was_cut_off_is_not_run_again_and_nobody_is_asked(lab: Agency) -> None:
    lab.plan(Reply(calls=[calls("run_command", command="echo once >> log; sleep 30")]), Reply(text="I look."))
    session = await lab.session()
    work = TurnWork(lab.world.root.actor.tenant, await lab.say(session, ASK), session)
    await lab.begin(work)
    (call,) = (await lab.thinking.run(work, 1, "attempt-1")).calls
    running = asyncio.create_task(lab.calling.run(work, call.step))
    await until_there(lab, work, "log")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await lab.calling.run(work, call.step)
    await lab.thinking.run(work, 2, "attempt-2")
    assert "cut off in the middle" in results(lab)[0]
    assert await lab.approvals.newest(lab.world.root.actor, "unknown_effect", None, 10) == []
    lab.plan(Reply(calls=[calls("run_command", command="cat log; pgrep -c sleep || true")]), Reply(text="Once."))
    await lab.ending.end(work, lab.ended("cancelled"))
    await lab.ask(session, ASK)
    assert "once\n0" in results(lab)[-1], "it ran once, and what was stopped does not go on"


async def test_an_artifact_that_may_come_from_a_removed_document_loses_its_name_and_its_bytes(lab: Agency) -> None:
    space = await lab.world.space(lab.world.root)
    document = await lab.world.ingest(lab.world.root, space, "vault.md", "# Vault\n\nThe code is heliotrope.\n")
    lab.plan(
        Reply(calls=[calls("read_document", document_id=document.id)]),
        Reply(calls=[calls("write_file", path="outputs/heliotrope.txt", text="heliotrope")]),
        Reply(text="Done."),
    )
    run = await lab.ask(await lab.session(), ASK)
    artifacts, actor = Artifacts(lab.world.database, lab.world.blobs), lab.world.root.actor
    (left,) = await artifacts.of_run(actor, run["id"], "", 10)
    await lab.world.remove(lab.world.root, document.id)
    (after,) = await artifacts.of_run(actor, run["id"], "", 10)
    assert (after.name, after.withheld) == (None, True)
    with pytest.raises(NotFound):
        await artifacts.content(actor, left.id)
    assert "heliotrope" not in await lab.world.everything_stored()
