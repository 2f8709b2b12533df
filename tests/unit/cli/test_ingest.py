"""Files go up, are watched to their end, and the exit code says how it went."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from tests.unit.cli.conftest import Perdure, json_lines
from tests.unit.cli.contract_server import ContractServer

UPLOAD = ("POST", "/v1/documents")


def test_a_folder_becomes_documents_named_by_their_path_inside_it(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    decomposed = unicodedata.normalize("NFD", "é.md")
    for name in ("a.md", "deep/b.md", f"deep/{decomposed}", ".git/config", ".hidden.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("text")
    (tmp_path / "deep" / "loop").symlink_to(tmp_path)

    result = perdure("ingest", str(tmp_path), "--space", "handbook", "--json", "--tag", "x", "--tag", "y")

    assert result.exit_code == 0, result.output
    assert sorted(upload["external_id"] for upload in server.uploads) == ["a.md", "deep/b.md", "deep/é.md"]
    assert all(upload["tags"] == ["x", "y"] and upload["readers"] == [] for upload in server.uploads)
    assert len({upload["idempotency_key"] for upload in server.uploads}) == 3
    lines = json_lines(result)
    assert [line["state"] for line in lines] == ["ready"] * 3
    assert {"document_id", "external_id", "state", "version", "warnings", "error"} <= set(lines[0])
    assert "skipped (hidden)" in result.stderr
    assert "skipped (link back to a folder above)" in result.stderr


def test_a_failed_document_gives_exit_code_3_and_its_reason(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    for name in ("fine.md", "locked.pdf"):
        (tmp_path / name).write_text("text")

    result = perdure("ingest", str(tmp_path), "--space", "handbook")

    assert result.exit_code == 3
    assert "ready      fine.md  v1" in result.stdout
    assert "failed     locked.pdf  v1  It has a password. (encrypted)" in result.stdout
    assert "1 failed, 1 ready" in result.stderr


def test_a_rejected_file_is_a_line_of_its_own_and_stops_no_other(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("")
    (tmp_path / "fine.md").write_text("text")

    result = perdure("ingest", str(tmp_path), "--space", "handbook", "--json")

    assert result.exit_code == 3
    by_name = {line["external_id"]: line for line in json_lines(result)}
    assert by_name["fine.md"]["state"] == "ready"
    assert by_name["empty.md"]["state"] == "failed"
    assert by_name["empty.md"]["error"]["code"] == "empty"


def test_the_same_bytes_again_are_unchanged_and_fine(perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    perdure("ingest", str(tmp_path), "--space", "handbook")

    result = perdure("ingest", str(tmp_path), "--space", "handbook")

    assert result.exit_code == 0
    assert result.stdout.startswith("unchanged  a.md")


def test_without_waiting_an_accepted_file_is_enough(server: ContractServer, perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "locked.pdf").write_text("text")

    result = perdure("ingest", str(tmp_path), "--space", "handbook", "--no-wait", "--json")

    assert result.exit_code == 0
    assert json_lines(result)[0]["state"] == "received"
    assert server.documents["d1"]["looks"] == 0


def test_an_unknown_space_is_named_before_anything_is_sent(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("text")

    result = perdure("ingest", str(tmp_path), "--space", "hanbook")

    assert result.exit_code == 2
    assert "perdure spaces create hanbook" in result.stderr
    assert not server.uploads


def test_a_missing_path_and_an_external_id_for_many_are_bad_usage(perdure: Perdure, tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("text")
    assert perdure("ingest", str(tmp_path / "none"), "--space", "handbook").exit_code == 2
    assert perdure("ingest", str(tmp_path), "--space", "handbook", "--external-id", "one").exit_code == 2
    assert perdure("ingest", str(tmp_path)).exit_code == 2


def test_two_files_that_would_be_one_document_are_refused(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "README.md").write_text(folder)

    result = perdure("ingest", str(tmp_path / "one"), str(tmp_path / "two"), "--space", "handbook")

    assert result.exit_code == 2
    assert "would both be the document 'README.md'" in result.stderr
    assert not server.uploads


def test_a_server_that_restarts_while_we_wait_is_waited_for(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("text")
    server.faults.away_on_look = 1

    result = perdure("ingest", str(tmp_path), "--space", "handbook", "--json")

    assert result.exit_code == 0, result.output
    assert json_lines(result)[0]["state"] == "ready"


def test_a_limited_upload_waits_as_told_and_is_the_same_request(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("text")
    server.faults.limited_uploads = 1

    result = perdure("ingest", str(tmp_path), "--space", "handbook", "--json")

    assert result.exit_code == 0, result.output
    keys = [headers["idempotency-key"] for verb, path, headers, _ in server.requests if (verb, path) == UPLOAD]
    assert len(keys) == 2
    assert keys[0] == keys[1]


def test_a_revoked_key_stops_the_whole_command(server: ContractServer, perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    server.faults.key_revoked = True

    result = perdure("ingest", str(tmp_path), "--space", "handbook", "--json")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "error: The key is not valid. (unauthenticated)" in result.stderr
