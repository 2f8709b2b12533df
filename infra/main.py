"""The console script `perdure`: the processes that this package runs, and the HTTP client's commands beside them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from infra import run_consumers, run_relay, run_roles, telemetry
from infra.load_settings import BadSettings, load_settings
from infra.local_stack import DataDirHeld, DataDirUnusable
from infra.rebuild import rebuild
from infra.up import UpOptions, up
from schemas.errors import EngineDown
from schemas.settings import Settings
from services.cli.app import register

BAD_CONFIGURATION = 78  # EX_CONFIG of sysexits.h
UNAVAILABLE = 69
HELD = 75
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
    options = UpOptions(data_dir, port, demo, json)
    _run("up", lambda settings: _finished(up(settings, options)))


@app.command("api")
def api_command(
    role: Annotated[str, typer.Option(help="'serving' opens the indexes; 'stream' needs Postgres alone.")] = "serving",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = DEFAULT_PORT,
) -> None:
    """Run the HTTP API apart, on shared servers."""
    if role not in ("serving", "stream"):
        raise typer.BadParameter("use 'serving' or 'stream'", param_hint="--role")
    _run("api", lambda settings: _finished(run_roles.api(settings, "stream" if role == "stream" else "serving", port)))


@app.command("worker")
def worker_command() -> None:
    """Run the workers apart, on shared servers."""
    _run("worker", lambda settings: _finished(run_roles.worker(settings)))


@app.command("relay")
def relay_command() -> None:
    """Run relay and reconciler apart, on shared servers."""
    _run("relay", run_relay.run)


@app.command("consumers")
def consumers_command() -> None:
    """Run the Kafka consumers (needs PERDURE_DATABASE_URL and PERDURE_KAFKA_BOOTSTRAP)."""
    _run("consumers", run_consumers.run)


@app.command("rebuild")
def rebuild_command(
    data_dir: DataDirOption = Path(".perdure"),
    indexes: Annotated[bool, typer.Option("--indexes", help="Refill the vector and keyword indexes.")] = False,
) -> None:
    """Make the read models anew from the events, or the indexes from Postgres. Nothing else may run on the data."""
    _run("rebuild", lambda settings: _finished(rebuild(settings, data_dir, indexes=indexes)))


def _finished(process: Coroutine[Any, Any, None]) -> int:
    asyncio.run(process)
    return 0


def _run(role: str, process: Callable[[Settings], int]) -> NoReturn:
    """Settings, logs, traces, then the process; each kind of refusal has its exit code and one line."""
    code = 0
    try:
        settings = load_settings(os.environ)
        telemetry.configure_logs(settings.log_level)
        telemetry.configure_traces(os.environ, role)
        code = process(settings)
    except (BadSettings, ValueError) as error:
        _leave(BAD_CONFIGURATION, f"perdure: {error}")
    except DataDirHeld as error:
        _leave(HELD, f"perdure: {error}")
    except (EngineDown, DataDirUnusable, OSError) as error:
        _leave(UNAVAILABLE, f"perdure: {error}")
    _leave(code)


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
