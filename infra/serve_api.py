"""The HTTP server inside a process that also works: uvicorn without its own signal handlers, on a socket we bound."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

STOP_WITHIN_S = 3
BACKLOG = 512


def bind(port: int) -> socket.socket:
    """A listening socket on loopback; port 0 takes a free one. OSError when the port is taken."""
    listening = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    # Connections inherit it. asyncio sets it only on sockets that name their protocol, which those of this kind do not,
    # and without it every reply that goes out in two writes waits 40 ms for the client's delayed acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class QuietServer(uvicorn.Server):
    """Leaves SIGINT and SIGTERM to the process, which stops all its parts in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def build_server(app: Starlette) -> QuietServer:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=STOP_WITHIN_S,
        timeout_keep_alive=30,
        server_header=False,
    )
    return QuietServer(config)
