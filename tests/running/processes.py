"""A real `perdure up` in a process of its own, to be used, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.running.warm_start import WarmProcess

T = TypeVar("T")
STOP_WITHIN_S = 60.0
END_WITHIN_S = 120.0


class PerdureProcess:
    """`perdure up --port 0 --json` on one data directory. `start` may be called again after any end.

    `warm` saves the imports of each start (tests/running/warm_start.py).
    """

    def __init__(self, data_dir: Path, env: Mapping[str, str] | None = None, *, warm: bool = False) -> None:
        self.data_dir = data_dir
        self._warm = warm
        self._env = dict(env or {})
        self._log_file = data_dir.parent / f"{data_dir.name}.log"
        self._process: subprocess.Popen[str] | WarmProcess | None = None
        self._announced: threading.Thread | None = None
        self.info: dict[str, Any] = {}
        self.key = ""

    def start(self, **env: str) -> PerdureProcess:
        """Waits for the ready line. `env` adds to the environment of this start only, say PERDURE_FAILPOINTS."""
        self.launch(**env)
        assert self._announced is not None
        self._announced.join()
        if not self.info:
            raise AssertionError(f"perdure up ended with {self.wait_for_death(STOP_WITHIN_S)}:\n{self.log()[-3000:]}")
        return self

    def launch(self, **env: str) -> None:
        """Does not wait: a failpoint may end the process before it is ready. `info` fills when it is."""
        assert not self.running
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
        arguments = ["up", "--data-dir", str(self.data_dir), "--port", "0", "--json"]
        env = {**kept, **self._env, **env}
        self.info = {}
        if self._warm:
            self._process = WarmProcess(arguments, env, str(self._log_file))
        else:
            with self._log_file.open("a") as log:
                argv = [sys.executable, "-m", "infra.main", *arguments]
                self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
        self._announced = threading.Thread(target=self._read_announcement, args=(self._process,), daemon=True)
        self._announced.start()

    def _read_announcement(self, process: subprocess.Popen[str] | WarmProcess) -> None:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line and process is self._process:
            info = json.loads(line)
            self.key = Path(info["admin_key_file"]).read_text(encoding="utf-8").strip()
            self.info = info

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return str(self.info["api_url"])

    def client(self, key: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return httpx.Client(base_url=f"{self.url}/v1", headers=headers, timeout=60, trust_env=False)

    def kill(self) -> None:
        """SIGKILL to the serving process alone; its children must go with it by themselves."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self.wait_for_death(STOP_WITHIN_S)

    def wait_for_death(self, within_s: float = END_WITHIN_S) -> int:
        """The exit code of a process that a failpoint ends."""
        assert self._process is not None
        code = self._process.wait(within_s)
        self.info = {}
        return code

    def stop(self) -> int:
        """SIGTERM and the exit code; nothing when it is gone already."""
        if self._process is None or self._process.poll() is not None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_WITHIN_S)

    def engine_pid(self, name: str) -> int:
        """The process id of an engine or child, from its record in the data directory."""
        record = json.loads((self.data_dir / "run" / f"{name}.json").read_text(encoding="utf-8"))
        return int(record["pid"])

    def log(self) -> str:
        return self._log_file.read_text(encoding="utf-8")


def wait_until(look: Callable[[], T | None], within_s: float = END_WITHIN_S, every_s: float = 0.05) -> T:
    """The first truthy thing `look` gives; TimeoutError after `within_s`."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(every_s)
    raise TimeoutError(f"nothing within {within_s:.0f} s")
