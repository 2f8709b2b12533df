"""The console script `perdure`: the processes that this package runs, and the HTTP client's commands beside them.

A process's module is imported when it is run: the engines' clients take seconds to import, and a command that only speaks HTTP
needs none of them.
"""

from __future__ import annotations

import inspect
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import uvloop

from infra.interpreter import share_evenly
from infra.load_settings import BadSettings, load_settings
from schemas.errors import Failure, PerdureError
from services.cli.app import register

BAD_CONFIGURATION = 78  # EX_CONFIG of sysexits.h
UNAVAILABLE = 69  # EX_UNAVAILABLE
DEFAULT_PORT = 8700

app = typer.Typer(
    name="perdure",
    no_args_is_help=True,
    add_completion=False,
    help="Documents become cited answers; every piece of work is a durable workflow.",
)
register(app)

DataDirOption = Annotated[Path, typer.Option("--data-dir", help="Where everything is kept.")]


@app.command("up")
def up_command(
    data_dir: DataDirOption = Path(".perdure"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = DEFAULT_PORT,
    demo: Annotated[bool, typer.Option("--demo", help="Load the example handbook and ask three questions.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON line when ready.")] = False,
) -> None:
    """Start everything on this machine and stay up."""
    _run("up", "infra.up:up", data_dir, port, demo, json)


@app.command("api")
def api_command(
    role: Annotated[str, typer.Option(help="'serving' opens the indexes; 'stream' needs Postgres alone.")] = "serving",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = DEFAULT_PORT,
) -> None:
    """Run the HTTP API apart, on shared servers."""
    if role not in ("serving", "stream"):
        raise typer.BadParameter("use 'serving' or 'stream'", param_hint="--role")
    _run("api", "infra.run_roles:api", role, port)


@app.command("worker")
def worker_command() -> None:
    """Run the workers apart, on shared servers."""
    _run("worker", "infra.run_roles:worker")


@app.command("relay")
def relay_command() -> None:
    """Run relay and reconciler apart, on shared servers."""
    _run("relay", "infra.run_relay:run")


@app.command("consumers")
def consumers_command() -> None:
    """Run the Kafka consumers (needs PERDURE_DATABASE_URL and PERDURE_KAFKA_BOOTSTRAP)."""
    _run("consumers", "infra.run_consumers:run")


events = typer.Typer(no_args_is_help=True, help="Change events on Kafka.")
app.add_typer(events, name="events")


@events.command("redrive")
def redrive_command(data_dir: DataDirOption = Path(".perdure")) -> None:
    """Send dead letters to where they came from (PERDURE_KAFKA_BOOTSTRAP, or the broker of a running `up`)."""
    _run("events", "infra.redrive_events:redrive_events", data_dir)


@app.command("rebuild")
def rebuild_command(
    data_dir: DataDirOption = Path(".perdure"),
    indexes: Annotated[bool, typer.Option("--indexes", help="Refill the vector and keyword indexes.")] = False,
) -> None:
    """Make the read models anew from the events, or the indexes from Postgres. Nothing else may run on the data."""
    _run("rebuild", "infra.rebuild:rebuild", data_dir, indexes)


def _run(role: str, process: str, *arguments: Any) -> NoReturn:
    """Settings, logs, traces, then `module:function`; each kind of refusal has its exit code and one line."""
    code: int | None = 0
    try:
        settings = load_settings(os.environ)
        share_evenly()
        module, _, function = process.partition(":")
        telemetry = import_module("infra.telemetry")
        telemetry.configure_logs(settings.log_level)
        telemetry.configure_traces(os.environ, role)
        code = getattr(import_module(module), function)(settings, *arguments)
        if inspect.iscoroutine(code):
            code = uvloop.run(code)
    except (BadSettings, ValueError) as error:
        _leave(BAD_CONFIGURATION, f"perdure: {error}")
    except Failure as failure:
        _leave(UNAVAILABLE, f"perdure: {failure.detail}")
    except (PerdureError, OSError) as error:
        _leave(getattr(error, "exit_code", UNAVAILABLE), f"perdure: {error}")
    _leave(code or 0)


def _leave(code: int, line: str | None = None) -> NoReturn:
    """Ends without the interpreter's teardown: the Temporal SDK's threads can abort a process that is already done."""
    if line is not None:
        print(line, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
