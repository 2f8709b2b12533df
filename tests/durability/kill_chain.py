"""One piece of work, killed at one stage boundary after the other: each start must bring it to the next one."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence

from tests.running.processes import PerdureProcess

DEATH_WITHIN_S = 150.0


def die_at(perdure: PerdureProcess, failpoint: str) -> None:
    """Waits until the failpoint has ended the process; anything else that ends it fails the test."""
    try:
        code = perdure.wait_for_death(DEATH_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{failpoint} was never reached\n{perdure.log()[-3000:]}") from None
    assert code == -signal.SIGKILL, f"{failpoint}: ended with {code}\n{perdure.log()[-3000:]}"


def kill_along(
    perdure: PerdureProcess,
    failpoints: Sequence[str],
    at_death: Callable[[str], None] = lambda failpoint: None,
) -> None:
    """The process is armed with the first failpoint and at work. Afterwards it runs unarmed and is ready."""
    die_at(perdure, failpoints[0])
    at_death(failpoints[0])
    for failpoint in failpoints[1:]:
        perdure.launch(PERDURE_FAILPOINTS=failpoint)
        die_at(perdure, failpoint)
        at_death(failpoint)
    perdure.start()


def both_sides(*stages: str) -> list[str]:
    return [f"{stage}.{side}" for stage in stages for side in ("before", "after")]
