"""`perdure ingest`: files and folders become documents of a space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli import output
from services.cli.client import ApiClient, path_of
from services.cli.collect_files import Collection, collect_files
from services.cli.command import AsJson, DataDir, SpaceOption, command, open_client
from services.cli.exit_codes import ExitCode
from services.cli.failures import BadUsage, CliFailure, Refusal
from services.cli.ingest_board import board_for
from services.cli.ingest_result import IngestResult
from services.cli.ingestion import Ingestion
from services.cli.upload import Destination

_SHOWN_SKIPPED = 3


@command
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders; folders are read to the bottom.")
    ],
    space: SpaceOption,
    external_id: Annotated[str | None, typer.Option(help="Name of the document, for one file.")] = None,
    reader: Annotated[list[str] | None, typer.Option(help="space, user:ID or group:ID; repeatable.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag to set; repeatable.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Stay until each document is ready or has failed.")
    ] = True,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Send files and folders to a space.

    A file in a folder is named by its path inside that folder. Sending the same bytes again changes nothing. Exit codes:
    0 all ready or unchanged, 2 bad usage, 3 some failed, 4 no server.
    """
    found = collect_files(paths, external_id)
    _tell_skipped(found)
    with open_client(data_dir) as client:
        _require_space(client, space)
        if not found.files:
            raise BadUsage("There is no file to send.", kind="nothing_to_send")
        destination = Destination(space, reader or [], tag or [])
        results = _ingest(client, destination, found, wait=wait, as_json=as_json)
    if not as_json:
        output.say(_summary(results))
    failed = [result for result in results if result.state == "failed" or (wait and not result.is_good)]
    raise typer.Exit(ExitCode.SOME_FAILED if failed else ExitCode.OK)


def _ingest(
    client: ApiClient, destination: Destination, found: Collection, *, wait: bool, as_json: bool
) -> list[IngestResult]:
    board = board_for(as_json, len(found.files))
    work = Ingestion(client, destination, board, wait=wait)
    try:
        with board:
            return work.run(found.files)
    except KeyboardInterrupt:
        output.say(_cut_short(work, len(found.files), "Interrupted"))
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except CliFailure as failure:
        if work.sent:
            failure.remedy = f"{_cut_short(work, len(found.files), 'Stopped')} {failure.remedy or ''}".strip()
        raise


def _require_space(client: ApiClient, space: str) -> None:
    """Nothing is made unasked: a mistyped name would otherwise become a space. A key that may only write cannot look,
    and learns it from its first upload.
    """
    try:
        client.get(path_of("spaces", space))
    except Refusal as refusal:
        if refusal.status == 403:
            return
        if refusal.status != 404:
            raise
        raise BadUsage(
            f"There is no space {space!r}, or this key may not see it.",
            f"Make it with `perdure spaces create {space}`, or see `perdure spaces list`.",
            kind="not_found",
        ) from None


def _tell_skipped(found: Collection) -> None:
    for reason, paths in found.skipped.items():
        named = ", ".join(str(path) for path in paths[:_SHOWN_SKIPPED])
        more = f" and {len(paths) - _SHOWN_SKIPPED} more" if len(paths) > _SHOWN_SKIPPED else ""
        output.say(f"skipped ({reason}): {named}{more}")


def _cut_short(work: Ingestion, total: int, how: str) -> str:
    """What goes on, and that running the same command again is safe."""
    rest = total - work.sent
    unsent = f" {rest} may not have been sent: run the same command again, what is there stays." if rest else ""
    return f"{how}: {work.sent} of {total} files are with the server, which goes on with them.{unsent}"


def _summary(results: list[IngestResult]) -> str:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.word] = counts.get(result.word, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
