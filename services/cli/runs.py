"""`perdure runs`: every piece of work, watched or ended from the terminal."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.text import Text

from schemas.runs import TERMINAL_EVENTS
from services.cli import output
from services.cli.client import ApiClient, path_of
from services.cli.command import AsJson, DataDir, Limit, command, group, open_client, show
from services.cli.event_stream import StreamEvent, follow_run
from services.cli.exit_codes import ExitCode
from services.cli.failures import EndedBadly

app = group("Pieces of work: list, show, watch, cancel.")
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
_SUMMARY_CHARS = 200


@app.command("list")
@command
def list_runs(
    state: Annotated[
        str | None, typer.Option(help="queued, running, waiting, succeeded, failed, cancelled, expired.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="ingest, remove, answer, …")] = None,
    limit: Limit = 20,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    with open_client(data_dir) as client:
        found = client.items(path_of("runs"), {"state": state, "kind": kind}, limit=limit)
    columns = ("id", "kind", "state", "waiting_for", "started_at", "ended_at")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty="No runs."))


@app.command("show")
@command
def show_run(run_id: RunId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one run."""
    with open_client(data_dir) as client:
        show(client.get(path_of("runs", run_id)), as_json, output.print_fields)


@app.command("watch")
@command
def watch_run(run_id: RunId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print a run's events as they come, from its start to its end. Exit code 3 when it does not succeed."""
    with open_client(data_dir) as client:
        client.get(path_of("runs", run_id))
        try:
            end = watch(client, run_id, as_json)
        except KeyboardInterrupt:
            output.say(f"Interrupted. The run goes on; `perdure runs cancel {run_id}` ends it.")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    raise_if_bad(end)


@app.command("cancel")
@command
def cancel_run(run_id: RunId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Ask a run to end now."""
    with open_client(data_dir) as client:
        reply = client.send("POST", path_of("runs", run_id, "cancel"))
    show(reply or {"run_id": run_id}, as_json, lambda _: output.say(f"Run {run_id} was asked to end."))


def watch(client: ApiClient, run_id: str, as_json: bool) -> StreamEvent:
    """Prints each event; returns the terminal one."""
    for event in follow_run(client, run_id):
        if as_json:
            output.print_json({"id": event.id, "type": event.type, "data": event.data})
        else:
            output.out().print(_event_text(event))
        last = event
    return last


def wait_for(client: ApiClient, run_id: str) -> None:
    """Until the run has ended; EndedBadly unless it succeeded."""
    *_, end = follow_run(client, run_id)
    raise_if_bad(end)


def raise_if_bad(end: StreamEvent) -> None:
    if end.type == "run.succeeded" or end.type not in TERMINAL_EVENTS:
        return
    word = end.type.removeprefix("run.")
    raise EndedBadly(str(end.data.get("detail", f"The run was {word}.")), str(end.data.get("code", word)))


def _event_text(event: StreamEvent) -> Text:
    data = output.one_line(json.dumps(event.data, ensure_ascii=False)) if event.data else ""
    text = Text.assemble((f"{event.id:>8}", "dim"), (f"  {event.type:<18}", "cyan"), " ")
    if len(data) > _SUMMARY_CHARS:
        data = data[:_SUMMARY_CHARS] + " …"
    return text.append(data)
