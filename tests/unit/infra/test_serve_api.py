"""The listening socket of the API."""

from __future__ import annotations

import socket

from infra import serve_api


def test_a_connection_sends_small_replies_at_once() -> None:
    with serve_api.bind(0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
