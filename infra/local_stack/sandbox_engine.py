"""The sandbox server of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from infra.local_stack.data_dir import DataDir
from infra.local_stack.ports import RememberedPorts
from infra.local_stack.supervised_process import Command, Program
from schemas.sandboxes import SandboxLimits

PASSED_ON = ("PATH", "HOME", "PYTHONPATH", "LANG")


class SandboxEngine(Program):
    """`infra.e2b_local` on a remembered loopback port, with a folder of its own in the data directory."""

    name = "sandboxes"

    def __init__(self, data_dir: DataDir, ports: RememberedPorts, limits: SandboxLimits) -> None:
        self._folder = data_dir.path / "sandboxes"
        self._cwd = data_dir.run
        self._limits = limits
        self._port = ports.take(self.name)
        self.key_file: Path = data_dir.keys / "sandboxes.key"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def command(self) -> Command:
        argv = (
            *(sys.executable, "-m", "infra.e2b_local", "--data-dir", str(self._folder), "--port", str(self._port)),
            *("--api-key-file", str(self.key_file), "--limits", self._limits.model_dump_json()),
        )
        return Command(
            argv=argv,
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
            cwd=self._cwd,
            stop_within_s=4.0,
            death_signal=signal.SIGTERM,
            ports={self.name: self._port},
        )

    async def answer(self) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return
