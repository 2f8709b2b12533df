"""`python -m tests.bench [--quick] [NAME...]`: one JSON object on stdout, progress on stderr.

Every figure is measured in one run beside its baseline; docs/reference/performance.md says how.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import uvloop

from infra.interpreter import share_evenly
from tests.bench import (
    agents,
    cancel,
    event_to_handler,
    first_token,
    ingest_vs_loop,
    recovery,
    reembedding,
    search_vs_raw,
    search_while_ingesting,
    start_and_stop,
)
from tests.bench.goals import missed
from tests.bench.measuring import Bench, Measured, say

FIGURES: dict[str, Callable[[Bench], Awaitable[Measured]]] = {
    "start_and_stop": start_and_stop.measure,
    "event_to_handler": event_to_handler.measure,
    "first_token": first_token.measure,
    "cancel": cancel.measure,
    "reembedding": reembedding.measure,
    "recovery": recovery.measure,
    "ingest_vs_loop": ingest_vs_loop.measure,
    "search_while_ingesting": search_while_ingesting.measure,
    "search_vs_raw": search_vs_raw.measure,
    "agents": agents.measure,
}


async def _measure(names: list[str], bench: Bench) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    for name in names:
        say(f"== {name}")
        measured = await FIGURES[name](bench)
        raw[name] = measured.pop("raw")
        keys |= measured
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    return {**keys, "goals_missed": missed(keys), "quick": bench.quick, "machine": machine, "raw": raw}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measures Perdure on this machine.")
    parser.add_argument("figures", nargs="*", metavar="NAME", help=f"only these of {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="a rough look: fewer rounds, smaller stores")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.figures if name not in FIGURES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    return arguments


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def main() -> None:
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _end)
    folder = Path(tempfile.mkdtemp(prefix="perdure-bench-"))
    try:
        share_evenly()
        report = uvloop.run(_measure(arguments.figures or list(FIGURES), Bench(folder, arguments.quick)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for key in report["goals_missed"]:
        say(f"goal missed: {key} = {report[key]}")
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
