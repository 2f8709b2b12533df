"""The consumers in a process of their own, which a test can kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


class ConsumerProcess:
    """`perdure consumers` against a test's own database and broker."""

    def __init__(self, database_url: str, bootstrap: str, **settings: str) -> None:
        self._env = {
            "PATH": os.environ["PATH"],
            "PERDURE_DATABASE_URL": database_url,
            "PERDURE_KAFKA_BOOTSTRAP": bootstrap,
            "PERDURE_EVENTS__FETCH_WAIT_MS": "5",
            "PERDURE_EVENTS__HANDLER_TRIES": "2",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ConsumerProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "infra.run_consumers"],
            cwd=REPOSITORY,
            env=self._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def terminate(self) -> tuple[int, float]:
        """The exit code, and the seconds that the process took to go."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=30)
        self._process = None
        return code, time.monotonic() - began
