"""A pytest plugin: a test that its own timeout cannot end takes its worker with it, and shows every task and stack first.

pytest-timeout raises in whatever frame is running; a stuck teardown, or a task that swallows the exception, then waits for
ever. pytest's own `faulthandler_timeout` does not help: it stands down as soon as a test has failed.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

GRACE_S = 120.0
"""Beyond the test's own timeout: for pytest-timeout's exception to be handled and fixtures to be torn down."""
SHOWN_BEFORE_S = 10.0
_stderr = -1
_ended_at = 0.0


def pytest_configure() -> None:
    global _stderr
    _stderr = os.dup(2)  # before the tests' output is captured


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global _ended_at
    within_s = _timeout_of(item) + GRACE_S
    _ended_at = time.monotonic() + within_s
    showing = threading.Timer(within_s - SHOWN_BEFORE_S, _show_tasks, [item.nodeid])
    showing.daemon = True
    showing.start()
    _arm()
    try:
        return (yield)
    finally:
        showing.cancel()
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact() -> None:
    _arm()  # pytest's own faulthandler plugin has just disarmed it


def _timeout_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker is not None and marker.args else item.config.getini("timeout"))


def _arm() -> None:
    faulthandler.dump_traceback_later(max(1.0, _ended_at - time.monotonic()), exit=True, file=_stderr)


def _show_tasks(test: str) -> None:
    with os.fdopen(os.dup(_stderr), "w", encoding="utf-8") as out:
        print(f"\n{test} does not end. Its unfinished tasks:", file=out)
        for task in [each for each in gc.get_objects() if isinstance(each, asyncio.Task) and not each.done()]:
            print(task.get_name(), file=out)
            task.print_stack(file=out)
