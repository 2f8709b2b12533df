"""What every command shares: its options, the client it opens, and how it ends."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import pydantic
import typer

from services.cli import output
from services.cli.client import ApiClient
from services.cli.connection import find_connection
from services.cli.exit_codes import ExitCode
from services.cli.failures import BadUsage, CliFailure

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="The data directory of the Perdure to speak to; else PERDURE_URL, else .perdure."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
SpaceOption = Annotated[str, typer.Option("--space", "-s", help="Name or id of the space.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most this many.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

P = ParamSpec("P")
R = TypeVar("R")


def group(help: str) -> typer.Typer:
    return typer.Typer(help=help, no_args_is_help=True)


def command(function: Callable[P, R]) -> Callable[P, R]:
    """A failure becomes its line on stderr and its exit code, Ctrl-C becomes 130; never a traceback."""

    @functools.wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        _tolerate_narrow_encodings()
        try:
            return function(*arguments, **options)
        except CliFailure as failure:
            output.print_failure(failure)
            raise typer.Exit(failure.exit_code) from None
        except pydantic.ValidationError as error:
            output.print_failure(_unknown_reply(error))
            raise typer.Exit(ExitCode.REFUSED) from None
        except KeyboardInterrupt:
            output.say("Interrupted. What the server has accepted goes on there.")
            raise typer.Exit(ExitCode.INTERRUPTED) from None

    return run


def open_client(data_dir: Path | None) -> ApiClient:
    return ApiClient(find_connection(data_dir, os.environ))


def show(value: Any, as_json: bool, render: Callable[[Any], None]) -> None:
    if as_json:
        output.print_json(value)
    else:
        render(value)


def confirm(question: str, yes: bool) -> None:
    """Asks on a terminal; elsewhere --yes is needed, for nobody is there to answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadUsage(f"{question} needs a yes.", "Give --yes.")
    typer.confirm(question, abort=True, err=True)


def _unknown_reply(error: pydantic.ValidationError) -> CliFailure:
    place = ".".join([error.title, *(str(part) for part in error.errors()[0]["loc"])])
    remedy = "Use the `perdure` of the server's own version."
    return CliFailure(f"The server's reply has another shape than expected ({place}).", "unknown_reply", remedy)


def _tolerate_narrow_encodings() -> None:
    """A Latin-1 terminal shows `?` for what it lacks; the command does not end over it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
