"""`perdure doctor` and `perdure status`: is it well, who am I to it, and what to do when it is not."""

from __future__ import annotations

import typer
from rich.text import Text

from schemas.identity import HealthPart, Me
from services.cli import output
from services.cli.client import ApiClient, path_of
from services.cli.command import AsJson, DataDir, command, open_client, show
from services.cli.exit_codes import ExitCode

_UNDER_WAY = ("running", "waiting", "queued")
_COUNTED = 100


@command
def doctor(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check every part of the running Perdure and say what to do. Exit codes: 3 when a part is in error, 4 no server."""
    with open_client(data_dir) as client:
        _, reply = client.probe(path_of("diagnostics"))
    parts = [HealthPart.model_validate(part) for part in reply["items"]]
    show(reply, as_json, lambda _: _print_parts(parts))
    raise typer.Exit(ExitCode.SOME_FAILED if any(part.severity == "error" for part in parts) else ExitCode.OK)


@command
def status(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show where Perdure runs, who this key is, and what is at work."""
    with open_client(data_dir) as client:
        me = Me.model_validate(client.get(path_of("me")))
        ready = client.probe(path_of("health", "ready"))[0] == 200
        at_work = {state: _count(client, state) for state in _UNDER_WAY}
    found = {"url": client.connection.url, "ready": ready, **me.model_dump(), "runs": at_work}
    show(found, as_json, lambda value: output.print_fields({**value, "runs": _words(at_work)}))
    raise typer.Exit(ExitCode.OK if ready else ExitCode.SOME_FAILED)


def _print_parts(parts: list[HealthPart]) -> None:
    rows = [part.model_dump(include={"severity", "name", "detail"}) for part in parts]
    output.print_table(rows, ("severity", "name", "detail"), empty="The server named no parts.")
    for part in parts:
        if part.remedy and part.severity != "ok":
            line = Text.assemble((f"{output.one_line(part.name)}: ", "bold"), output.one_line(part.remedy))
            output.out().print(line)


def _count(client: ApiClient, state: str) -> str:
    found = client.items(path_of("runs"), {"state": state}, limit=_COUNTED)
    return f"{len(found['items'])}{'+' if found['next_cursor'] else ''}"


def _words(at_work: dict[str, str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in at_work.items())
