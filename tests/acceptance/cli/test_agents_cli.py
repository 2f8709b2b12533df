"""An agent made, talked to and approved with the real commands, against a real `perdure up` and a scripted model."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.running.processes import PerdureProcess, wait_until
from tests.unit.cli.typing_terminal import TypingTerminal

ROOT = Path(__file__).parents[3]
PERDURE = str(Path(sys.executable).with_name("perdure"))
BEFORE = "# Travel\n\nThe allowance for meals is forty euro a day."
AFTER = "# Travel\n\nThe allowance for meals is fifty euro a day."
LONG = "word " * 60
Perdure = Callable[..., "subprocess.CompletedProcess[str]"]


def plan(url: str, space: str) -> None:
    """What the model says when a user wrote `[[raise]]` or `[[long]]`."""

    def calls(name: str, **arguments: str) -> list[dict[str, str]]:
        return [{"name": name, "arguments": json.dumps(arguments)}]

    write = calls("write_document", space=space, external_id="travel.md", title="Travel", text=AFTER)
    replies = [
        {"text": "I look first.", "calls": calls("search", query="allowance for meals")},
        {"text": "I raise it.", "calls": write},
        {"text": "Before, the allowance for meals was forty euro a day [1]."},
    ]
    plans = {"raise": replies, "long": [{"text": LONG + "end.", "delay_s": 0.1}]}
    httpx.post(url.removesuffix("/v1") + "/script", json={"plans": plans}, trust_env=False).raise_for_status()


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "tests.fakes.openai_server"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model: str) -> Iterator[PerdureProcess]:
    env = {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "scripted", "PERDURE_CHAT_MODEL": "openai-chat:scripted"}
    process = PerdureProcess(tmp_path_factory.mktemp("agents") / "data", env)
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def env(running: PerdureProcess) -> dict[str, str]:
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("PERDURE_") and name != "NO_COLOR"
    }
    return {**plain, "PERDURE_URL": running.url, "PERDURE_API_KEY": running.key, "TERM": "xterm-256color"}


@pytest.fixture
def perdure(env: dict[str, str]) -> Perdure:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PERDURE, *arguments], capture_output=True, text=True, cwd=ROOT, env=env, timeout=60)

    return call


@pytest.fixture
def agent(perdure: Perdure, model: str, tmp_path: Path) -> str:
    """Named as its space, which holds one document that it is going to change."""
    name = f"editor-{uuid4().hex[:8]}"
    assert perdure("spaces", "create", name).returncode == 0
    (tmp_path / "travel.md").write_text(BEFORE)
    assert perdure("ingest", str(tmp_path / "travel.md"), "--space", name).returncode == 0
    plan(model, name)
    made = perdure("agents", "create", name, "--tool", "search", "--tool", "write_document", "--space", name)
    assert made.returncode == 0, made.stderr
    return name


def start(env: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PERDURE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=dict(env)
    )


def one(done: subprocess.CompletedProcess[str]) -> Any:
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def text_of(perdure: Perdure, space: str) -> str:
    (document,) = one(perdure("documents", "list", "--space", space, "--json"))["items"]
    return perdure("documents", "text", document["id"]).stdout


def pending(perdure: Perdure) -> dict[str, Any] | None:
    items: list[dict[str, Any]] = one(perdure("approvals", "list", "--state", "pending", "--json"))["items"]
    return items[0] if items else None


def test_a_write_is_made_once_somebody_has_approved_it(perdure: Perdure, env: dict[str, str], agent: str) -> None:
    chat = start(env, "chat", agent, "Raise", "it", "[[raise]]", "--json")
    asked = wait_until(lambda: pending(perdure), 60, every_s=0.5)

    shown = perdure("approvals", "show", asked["id"])
    for part in (
        "write_document  write  pending",
        "I raise it.",
        "-The allowance for meals is forty",
        "+The allowance",
    ):
        assert part in shown.stdout
    (link,) = perdure("approvals", "link", asked["id"]).stdout.split()
    assert "+The allowance" in httpx.get(link, trust_env=False).raise_for_status().text
    assert text_of(perdure, agent) == BEFORE
    approved = one(perdure("approvals", "approve", asked["id"], "--json"))
    assert (approved["state"], approved["outcome"]) == ("approved", "recorded")

    out, err = chat.communicate(timeout=60)
    assert chat.returncode == 0, err
    assert f"perdure approvals approve {asked['id']}" in err
    result = json.loads(out)
    assert result["state"] == "succeeded"
    assert result["approvals"] == [{"id": asked["id"], "tool": "write_document", "state": "approved"}]
    (citation,) = result["citations"]
    assert BEFORE[citation["start"] : citation["end"]] == citation["quote"]
    wait_until(lambda: text_of(perdure, agent) == AFTER, 60, every_s=0.5)

    again = one(perdure("approvals", "approve", asked["id"], "--json"))
    assert again["outcome"] == "already_recorded"
    otherwise = perdure("approvals", "reject", asked["id"], "--json")
    assert otherwise.returncode == 1
    assert one(otherwise)["state"] == "approved"
    assert "It stands as approved by you, " in otherwise.stderr


def test_a_person_rejects_in_the_conversation_and_goes_on_in_it(
    perdure: Perdure, env: dict[str, str], agent: str
) -> None:
    terminal = TypingTerminal([PERDURE, "chat", agent], env)
    try:
        terminal.wait_for("> ")
        terminal.type("Raise it [[raise]]\r")
        terminal.wait_for("write_document: [a]pprove")
        assert "✓ search query=" in terminal.screen
        assert "+The allowance for meals is fifty euro a day." in terminal.screen
        terminal.type("r not this year\r")
        terminal.wait_for("They said: not this year")
        terminal.wait_for("Citations")
        terminal.type("Say more [[long]]\r")
        terminal.wait_for("word word")
        terminal.type("/stop\r")
        terminal.wait_for("Stopped.")
        terminal.type("/quit\r")
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert f"perdure chat {agent} --session " in terminal.screen
    assert text_of(perdure, agent) == BEFORE


def test_an_agent_is_listed_changed_and_removed(perdure: Perdure, agent: str) -> None:
    changed = one(perdure("agents", "change", agent, "--mode", "read_only", "--tokens", "5000", "--json"))
    assert (changed["mode"], changed["tools"], changed["version"]) == ("read_only", ["search", "write_document"], 2)
    assert agent in perdure("agents", "list").stdout
    assert "5000 tokens" in perdure("agents", "show", agent).stdout
    assert perdure("agents", "remove", agent, "--yes").returncode == 0
    assert perdure("chat", agent, "Are you there?").returncode == 2


class Forwarder:
    """A port that stays while the server behind it goes and comes back on another one."""

    def __init__(self, running: PerdureProcess) -> None:
        self._running = running
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            ours, _ = self._listening.accept()
            try:
                port = int(self._running.url.rpartition(":")[2])
                theirs = socket.create_connection(("127.0.0.1", port), timeout=5)
            except (OSError, KeyError):  # it is away: so is this
                ours.close()
                continue
            theirs.settimeout(None)
            for ends in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads the other way


def test_a_turn_is_followed_over_the_end_of_the_server(
    running: PerdureProcess, env: dict[str, str], agent: str
) -> None:
    terminal = TypingTerminal(
        [PERDURE, "chat", agent, "Say much [[long]]"], {**env, "PERDURE_URL": Forwarder(running).url}
    )
    try:
        terminal.wait_for("word word")
        running.kill()
        running.start()
        terminal.wait_for("end.")
        assert terminal.end() == 0
    finally:
        terminal.close()
    last = terminal.raw.rpartition("\x1b[2K")[2]
    assert last.count("word") == LONG.count("word")
