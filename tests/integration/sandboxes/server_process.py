"""The local sandbox server as a real child process, to be used, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from schemas.sandboxes import SandboxLimits
from tests.architecture.repository import ROOT

PYTHON_IN_SANDBOX = f"/opt/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"

LIMITS = SandboxLimits(
    memory_mb=192,
    cpu_s=2,
    processes=48,
    open_files=128,
    workspace_mb=24,
    workspace_files=1_000,
    tmp_mb=16,
    output_mb=1,
    command_s=30,
    sandboxes=40,
)
"""Small enough that each is reached within a second or two."""


class SandboxServer:
    """`python -m infra.e2b_local` on one data directory. `start` may be called again after any end."""

    def __init__(self, data_dir: Path, limits: SandboxLimits = LIMITS, before: tuple[str, ...] = ()) -> None:
        """`before` are words between the interpreter and the module, such as another way to start it."""
        self.data_dir = data_dir
        self._limits = limits
        self._before = before or ("-m",)
        self._process: subprocess.Popen[str] | None = None
        self.info: dict[str, Any] = {}

    def start(self) -> SandboxServer:
        argv = [sys.executable, *self._before, "infra.e2b_local", "--data-dir", str(self.data_dir), "--port", "0"]
        secrets = {"PERDURE_TEST_SECRET": "of the host", "PATH": os.environ["PATH"]}
        self._process = subprocess.Popen(
            [*argv, "--limits", self._limits.model_dump_json()],
            stdout=subprocess.PIPE,
            text=True,
            env=secrets,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the server ended with {self._process.wait()}"
        self.info = json.loads(line)
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return str(self.info["url"])

    @property
    def api_key(self) -> str:
        return Path(self.info["api_key_file"]).read_text(encoding="utf-8").strip()

    @property
    def sdk_options(self) -> dict[str, Any]:
        return {"api_key": self.api_key, "api_url": self.url, "sandbox_url": self.url}

    def kill(self) -> None:
        """As the kernel would: it can do nothing about it."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


def processes_of(marker: str) -> list[int]:
    """Processes of this machine whose command line holds `marker`."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                command = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in command and int(path.name) != os.getpid():
                found.append(int(path.name))
    return found
