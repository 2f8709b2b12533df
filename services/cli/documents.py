"""`perdure documents`: what a space holds, and what can be done to one document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from services.cli import output, runs
from services.cli.client import path_of
from services.cli.command import AsJson, DataDir, Limit, command, group, open_client, show
from services.cli.failures import BadUsage

app = group("Documents of a space: list, read, retry, cancel, remove, readers, tags.")
DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Id of the document.")]
Version = Annotated[int | None, typer.Option("--version", min=1, help="A version other than the live one.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until the work has ended.")]


@app.command("list")
@command
def list_documents(
    space: Annotated[str | None, typer.Option("--space", "-s", help="Name or id of the space.")] = None,
    state: Annotated[str | None, typer.Option(help="ready, failed, parsing, …")] = None,
    tag: Annotated[str | None, typer.Option(help="Only documents with this tag.")] = None,
    limit: Limit = 100,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List documents."""
    with open_client(data_dir) as client:
        found = client.items(path_of("documents"), {"space": space, "state": state, "tag": tag}, limit=limit)
    columns = ("external_id", "state", "version", "title", "id")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty="No documents."))
    if found["next_cursor"] and not as_json:
        output.say("There are more; raise --limit.")


@app.command("show")
@command
def show_document(document_id: DocumentId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one document: state, versions, warnings, readers."""
    with open_client(data_dir) as client:
        show(client.get(path_of("documents", document_id)), as_json, output.print_fields)


@app.command("text")
@command
def text(document_id: DocumentId, version: Version = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print the text that citations point into."""
    with open_client(data_dir) as client:
        found = client.get_text(path_of("documents", document_id, "text"), {"version": version})
    if as_json:
        output.print_json({"document_id": document_id, "version": version, "text": found})
    else:
        sys.stdout.write(output.clean(found) if sys.stdout.isatty() else found)


@app.command("chunks")
@command
def chunks(
    document_id: DocumentId,
    version: Version = None,
    limit: Limit = 1_000,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the pieces a document is found by."""
    with open_client(data_dir) as client:
        found = client.items(path_of("documents", document_id, "chunks"), {"version": version}, limit=limit)
    columns = ("ordinal", "kind", "tokens", "page_start", "heading_path", "text", "id")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty="No chunks."))


@app.command("history")
@command
def history(document_id: DocumentId, limit: Limit = 1_000, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List what happened to a document, oldest first."""
    with open_client(data_dir) as client:
        found = client.items(path_of("documents", document_id, "history"), limit=limit)
    columns = ("stream_version", "at", "type", "actor", "data")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty="No history."))


@app.command("retry")
@command
def retry(document_id: DocumentId, wait: Wait = False, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Read a failed document again."""
    _start("POST", ("documents", document_id, "retry"), wait, data_dir, as_json)


@app.command("cancel")
@command
def cancel(document_id: DocumentId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Stop the work on a document; its live version stays."""
    _start("POST", ("documents", document_id, "cancel"), False, data_dir, as_json)


@app.command("remove")
@command
def remove(document_id: DocumentId, wait: Wait = False, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove a document, its versions and all that was made of them."""
    _start("DELETE", ("documents", document_id), wait, data_dir, as_json)


@app.command("readers")
@command
def readers(
    document_id: DocumentId,
    reader: Annotated[
        list[str] | None, typer.Argument(metavar="[READER]...", help="space, user:ID or group:ID.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show who may read a document, or set it to the READERs given."""
    _change(document_id, "readers", reader, data_dir, as_json)


@app.command("tags")
@command
def tags(
    document_id: DocumentId,
    tag: Annotated[list[str] | None, typer.Argument(metavar="[TAG]...", help="The tags it has from now on.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take all tags away.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a document's tags, or set them to the TAGs given."""
    if clear and tag:
        raise BadUsage("--clear takes all tags away, and here are tags to set.", "Give one or the other.")
    _change(document_id, "tags", [] if clear else tag or None, data_dir, as_json)


def _start(method: str, parts: tuple[str, ...], wait: bool, data_dir: Path | None, as_json: bool) -> None:
    with open_client(data_dir) as client:
        reply = client.send(method, path_of(*parts)) or {}
        show(reply, as_json, lambda value: output.say(f"Run {value.get('run_id')} is at work."))
        if wait and reply.get("run_id"):
            runs.wait_for(client, reply["run_id"])


def _change(document_id: str, name: str, values: list[str] | None, data_dir: Path | None, as_json: bool) -> None:
    with open_client(data_dir) as client:
        if values is None:
            now = client.get(path_of("documents", document_id))
        else:  # the reply, not another look: a change of readers can shut out who made it
            now = client.send("PUT", path_of("documents", document_id, name), {name: values})
    show({name: now[name]}, as_json, output.print_fields)
