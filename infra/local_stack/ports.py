"""Loopback ports that stay the same from one start to the next."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
SPAN = 10_000


class RememberedPorts:
    """Free ports of 127.0.0.1 by name, written to a file so that URLs survive a restart.

    They lie just below the kernel's ephemeral range: a port inside it could be handed to an outgoing connection while
    its engine is being restarted (or a client that keeps dialling it could even connect to itself).
    """

    def __init__(self, file: Path, rng: random.Random) -> None:
        self._file = file
        self._rng = rng
        self._ports: dict[str, int] = _read(file)
        self._taken: set[int] = set()

    def take(self, name: str) -> int:
        """The port this name had last time when it is still free, else a new one."""
        remembered = self._ports.get(name)
        if remembered is not None and remembered not in self._taken and is_free(remembered):
            return self._keep(name, remembered)
        return self.take_another(name)

    def take_another(self, name: str) -> int:
        """A port this name did not have: somebody was quicker to bind the last one."""
        low, high = _range_below_ephemeral()
        for _ in range(500):
            port = self._rng.randrange(low, high)
            if port != self._ports.get(name) and port not in self._taken and is_free(port):
                return self._keep(name, port)
        raise OSError(f"no free port between {low} and {high}")

    def _keep(self, name: str, port: int) -> int:
        self._taken.add(port)
        self._ports[name] = port
        self._file.write_text(json.dumps(self._ports), encoding="utf-8")
        return port


def is_free(port: int) -> bool:
    """Whether a server could bind it now. SO_REUSEADDR as servers set it, or TIME_WAIT would look like a listener."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _range_below_ephemeral() -> tuple[int, int]:
    try:
        low = int(EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        low = 32_768
    return (low - SPAN, low) if low > SPAN + 1_024 else (20_000, 30_000)


def _read(file: Path) -> dict[str, int]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): int(port) for name, port in found.items()} if isinstance(found, dict) else {}
