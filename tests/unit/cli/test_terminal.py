"""The command as a process: on a terminal, without colour, and interrupted."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.contract_server import KEY, ContractServer
from tests.unit.cli.test_ask import EVENTS, STARTED

COMMAND = [sys.executable, "-c", "from services.cli.app import app; app()"]
ROOT = Path(__file__).parents[3]


@dataclass
class Terminal:
    """A process on a pseudo-terminal of 80 columns; `screen` is all it wrote to stdout."""

    process: subprocess.Popen[bytes]
    written: list[bytes] = field(default_factory=list)

    def finish(self) -> str:
        assert self.process.wait(timeout=60) is not None
        self.reader.join(timeout=10)
        return b"".join(self.written).decode()

    def read_from(self, descriptor: int) -> None:
        def read() -> None:
            while chunk := _read(descriptor):
                self.written.append(chunk)

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says EIO when the last writer has closed
        return b""


def environment(server: ContractServer, **extra: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**plain, "PERDURE_URL": server.url, "PERDURE_API_KEY": KEY, "TERM": "xterm-256color", **extra}


def on_terminal(server: ContractServer, *arguments: str, **extra: str) -> Terminal:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment(server, **extra)
    )
    os.close(theirs)
    terminal = Terminal(process)
    terminal.read_from(ours)
    return terminal


@pytest.fixture
def answering(server: ContractServer) -> ContractServer:
    server.events = list(EVENTS)
    server.replies |= {
        ("POST", "/v1/answers"): (202, STARTED),
        ("GET", "/v1/answers/a1"): (200, server.answer),
    }
    return server


def test_a_terminal_sees_movement_and_text_that_was_taken_back_is_erased(answering: ContractServer) -> None:
    terminal = on_terminal(answering, "ask", "When?", "--space", "handbook")
    screen = terminal.finish()
    assert terminal.process.returncode == 0
    assert "\x1b[2K" in screen
    assert "Wrong" not in screen.rpartition("\x1b[2K")[2]
    assert "Within one day [1]." in screen.rpartition("\x1b[2K")[2]


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colour_nothing_moves_and_no_escape_code_is_written(
    answering: ContractServer, tmp_path: Path, plain: dict[str, str]
) -> None:
    (tmp_path / "a.md").write_text("text")
    asked = on_terminal(answering, "ask", "When?", "--space", "handbook", **plain).finish()
    ingested = on_terminal(answering, "ingest", str(tmp_path), "--space", "handbook", **plain).finish()
    assert "\x1b" not in asked + ingested
    assert "(the text begins again)" in asked
    assert "ready      a.md  v1" in ingested


def test_a_pipe_gets_the_finished_answer_and_no_escape_code(answering: ContractServer) -> None:
    done = subprocess.run(
        [*COMMAND, "ask", "When?", "--space", "handbook"], capture_output=True, cwd=ROOT, env=environment(answering)
    )
    assert done.stdout.decode().startswith("Within one day [1].\n\nCitations\n")
    assert b"\x1b" not in done.stdout + done.stderr


def test_ctrl_c_leaves_the_work_going_on_and_says_so(server: ContractServer, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    looked = threading.Event()

    def never_ready(document: dict[str, Any]) -> None:
        document["looks"] = 0
        looked.set()

    server.on_look = never_ready
    process = subprocess.Popen(
        [*COMMAND, "ingest", str(tmp_path), "--space", "handbook", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment(server),
    )  # fmt: skip
    assert looked.wait(timeout=60)

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert out == b""
    assert "1 of 1 files are with the server, which goes on with them." in err.decode()


def test_ctrl_c_in_the_middle_of_an_upload_says_that_it_may_not_have_arrived(
    server: ContractServer, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("text")
    server.holds_uploads = True
    process = subprocess.Popen(
        [*COMMAND, "ingest", str(tmp_path), "--space", "handbook"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment(server),
    )  # fmt: skip
    assert server.upload_began.wait(timeout=60)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "0 of 1 files are with the server" in err.decode()
    assert "run the same command again" in err.decode()
