"""The commands against a real `perdure up`: what a person does on the first day."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

ROOT = Path(__file__).parents[3]
POLICY = "# Lost devices\n\nA lost laptop must be reported to the service desk within one working day.\n"
LEAVE = "# Leave\n\nEverybody in the Malmö office has thirty-one days of paid leave each year.\n"


class RunningPerdure(Protocol):
    """What the session's fixture gives."""

    url: str
    key: str
    data_dir: Path


Perdure = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def perdure(running_perdure: RunningPerdure) -> Perdure:
    """The installed command, told where by the data directory alone."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(Path(sys.executable).with_name("perdure")),
            *arguments,
            "--data-dir",
            str(running_perdure.data_dir),
        ]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=plain, timeout=120)

    return call


@pytest.fixture
def space(perdure: Perdure) -> str:
    name = f"cli-{uuid4().hex[:8]}"
    assert perdure("spaces", "create", name).returncode == 0
    return name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people").mkdir()
    (tmp_path / "security.md").write_text(POLICY)
    (tmp_path / "people" / "leave.md").write_text(LEAVE)
    return tmp_path


def lines(done: subprocess.CompletedProcess[str]) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_folder_is_ready_once_and_unchanged_after(perdure: Perdure, space: str, folder: Path) -> None:
    first = perdure("ingest", str(folder), "--space", space, "--wait", "--json")
    assert first.returncode == 0, first.stderr
    assert {(each["external_id"], each["state"], each["version"]) for each in lines(first)} == {
        ("security.md", "ready", 1),
        ("people/leave.md", "ready", 1),
    }
    again = perdure("ingest", str(folder), "--space", space, "--json")
    assert again.returncode == 0
    assert {each["outcome"] for each in lines(again)} == {"unchanged"}
    assert {each["document_id"] for each in lines(again)} == {each["document_id"] for each in lines(first)}


def test_an_answers_quote_is_the_documents_own_text(perdure: Perdure, space: str, folder: Path) -> None:
    assert perdure("ingest", str(folder), "--space", space).returncode == 0
    asked = perdure("ask", "When must a lost laptop be reported?", "--space", space, "--json")
    assert asked.returncode == 0, asked.stderr
    (answer,) = lines(asked)
    assert answer["state"] == "succeeded"
    assert answer["answered"] is True
    for citation in answer["citations"]:
        text = perdure("documents", "text", citation["document_id"]).stdout
        assert text[citation["start"] : citation["end"]] == citation["quote"]
    assert any("one working day" in citation["quote"] for citation in answer["citations"])

    shown = perdure("ask", "When must a lost laptop be reported?", "--space", space)
    assert "Citations" in shown.stdout
    assert "one working day" in shown.stdout


def test_a_removed_document_is_no_longer_found(perdure: Perdure, space: str, folder: Path) -> None:
    ready = lines(perdure("ingest", str(folder / "security.md"), "--space", space, "--json"))
    found = lines(perdure("search", "lost laptop", "--space", space, "--json"))[0]["hits"]
    assert [hit["document_id"] for hit in found] == [ready[0]["document_id"]]

    removed = perdure("documents", "remove", ready[0]["document_id"], "--wait", "--json")

    assert removed.returncode == 0, removed.stderr
    assert lines(perdure("search", "lost laptop", "--space", space, "--json"))[0]["hits"] == []
    assert perdure("documents", "show", ready[0]["document_id"]).returncode == 1


def test_bad_files_fail_alone_and_an_unknown_space_fails_first(perdure: Perdure, space: str, folder: Path) -> None:
    (folder / "empty.md").write_bytes(b"")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    done = perdure("ingest", str(folder), "--space", space, "--json")
    states = {each["external_id"]: each["state"] for each in lines(done)}
    assert done.returncode == 3
    assert states == {"security.md": "ready", "people/leave.md": "ready", "empty.md": "failed", "broken.pdf": "failed"}
    assert all(each["error"]["code"] for each in lines(done) if each["state"] == "failed")

    unknown = perdure("ingest", str(folder), "--space", f"{space}-none", "--json")
    assert unknown.returncode == 2
    assert "perdure spaces create" in unknown.stderr


def test_a_reader_sees_only_after_a_grant(
    running_perdure: RunningPerdure, perdure: Perdure, space: str, folder: Path
) -> None:
    assert perdure("ingest", str(folder), "--space", space).returncode == 0
    email = f"{uuid4().hex[:8]}@example.org"
    assert perdure("users", "create", email, "Ann").returncode == 0
    key = perdure("keys", "create", email, "--scope", "read").stdout.strip()
    theirs = {**os.environ, "PERDURE_URL": running_perdure.url, "PERDURE_API_KEY": key}

    def search() -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("perdure")), "search", "paid leave", "--space", space, "--json"]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=theirs, timeout=60)

    assert (search().returncode, "(not_found)" in search().stderr) == (1, True)
    assert perdure("spaces", "grant", space, f"user:{email}", "viewer").returncode == 0
    assert "thirty-one days" in lines(search())[0]["hits"][0]["text"]


def test_doctor_and_status_find_it_well(running_perdure: RunningPerdure, perdure: Perdure) -> None:
    assert perdure("doctor").returncode == 0
    status = perdure("status", "--json")
    assert status.returncode == 0
    assert lines(status)[0]["url"] == running_perdure.url
    assert lines(status)[0]["ready"] is True
