"""Which server is spoken to, with which key, and what is said when none is there."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.app import app
from services.cli.connection import find_connection
from services.cli.failures import BadUsage, Unreachable
from tests.unit.cli.conftest import Perdure
from tests.unit.cli.contract_server import KEY, ContractServer

ME = {"user_id": "u1", "tenant_id": "t1", "role": "admin", "groups": [], "scopes": ["read"]}


def data_dir(tmp_path: Path, url: str, pid: int) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "admin.key").write_text(KEY + "\n")
    up = {"api_url": url, "admin_key_file": str(tmp_path / "admin.key"), "pid": pid}
    (tmp_path / "run" / "up.json").write_text(json.dumps(up))
    return tmp_path


def test_a_named_data_directory_wins_and_its_key_goes_to_no_other_server(tmp_path: Path) -> None:
    folder = data_dir(tmp_path, "http://127.0.0.1:8700", os.getpid())
    elsewhere = {"PERDURE_URL": "https://other.example", "PERDURE_API_KEY": "theirs"}

    assert find_connection(folder, elsewhere).key == KEY
    assert find_connection(folder, elsewhere).url == "http://127.0.0.1:8700"
    assert find_connection(None, elsewhere).key == "theirs"
    assert find_connection(folder, {"PERDURE_API_KEY": "mine"}).key == "mine"
    with pytest.raises(BadUsage):
        find_connection(None, {"PERDURE_URL": "https://other.example"})
    with pytest.raises(BadUsage):
        find_connection(None, {"PERDURE_URL": "other.example", "PERDURE_API_KEY": "k"})


def test_a_stopped_server_is_not_mistaken_for_who_has_its_port_now(server: ContractServer, tmp_path: Path) -> None:
    gone = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(gone, 0)
    with pytest.raises(Unreachable, match="has stopped"):
        find_connection(data_dir(tmp_path, server.url, gone), {})
    assert not server.requests


@pytest.mark.parametrize(
    "command", [["doctor"], ["search", "q", "-s", "x"], ["ask", "q", "-s", "x"], ["runs", "watch", "r"]]
)
def test_every_command_ends_with_4_and_a_remedy_when_nothing_listens(tmp_path: Path, command: list[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        folder = data_dir(tmp_path, url, os.getpid())
        result = CliRunner().invoke(app, [*command, "--data-dir", str(folder)])

    assert result.exit_code == 4
    assert f"error: Perdure at {url} does not answer. (unreachable)" in result.stderr
    assert f"perdure up --data-dir {folder}" in result.stderr
    assert result.stdout == ""


def test_a_directory_without_a_server_says_how_to_start_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--data-dir", str(tmp_path)])
    assert result.exit_code == 4
    assert "perdure up --data-dir" in result.stderr


def test_status_says_who_the_key_is_and_whether_the_server_is_ready(server: ContractServer, perdure: Perdure) -> None:
    server.replies |= {
        ("GET", "/v1/me"): (200, ME),
        ("GET", "/v1/health/ready"): (503, {"parts": []}),
        ("GET", "/v1/runs"): (200, {"items": [{"id": "r1"}], "next_cursor": None}),
    }
    result = perdure("status", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert found["ready"] is False
    assert found["user_id"] == "u1"
    assert found["runs"]["running"] == "1"
