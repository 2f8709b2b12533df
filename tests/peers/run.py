"""`make test-peers`: starts a real Kafka and Elasticsearch, runs the tests marked `peers` on them, and ends both.

A server that the environment names already (PERDURE_TEST_KAFKA_BOOTSTRAP, PERDURE_TEST_ELASTICSEARCH_URL) is used as it is.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx

HERE = Path(__file__).parent
UP_WITHIN_S = 300.0  # the first start downloads its jars
STOP_WITHIN_S = 30.0
KAFKA, ELASTICSEARCH = "PERDURE_TEST_KAFKA_BOOTSTRAP", "PERDURE_TEST_ELASTICSEARCH_URL"


def free_ports() -> tuple[int, int]:
    """A free port whose successor is free too: Kafka's controller takes it."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = int(first.getsockname()[1])
            try:
                with socket.create_server(("127.0.0.1", port + 1)):
                    return port, port + 1
            except OSError:
                continue


def start(stack: ExitStack, engine: str, port: int) -> subprocess.Popen[bytes]:
    folder = Path(tempfile.mkdtemp(prefix=f"perdure-{engine}-"))
    folder.chmod(0o755)  # nginx's workers run as nobody and keep large requests in files below
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    log = stack.enter_context((folder / "start.log").open("wb"))
    process = subprocess.Popen(
        [HERE / engine / "start", str(port), str(folder)], stdout=log, stderr=log, start_new_session=True
    )
    stack.callback(stop, process)
    return process


def stop(process: subprocess.Popen[bytes]) -> None:
    """The whole session of the script: its servers are its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def wait_for(process: subprocess.Popen[bytes], answers: Callable[[], bool], name: str) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    while not answers():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{name} did not start")
        time.sleep(0.5)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_elasticsearch(url: str) -> bool:
    try:
        return httpx.get(f"{url}/_cluster/health", timeout=5, trust_env=False).json().get("status") in (
            "green",
            "yellow",
        )
    except (httpx.HTTPError, ValueError):
        return False


def main() -> int:
    env = dict(os.environ)
    with ExitStack() as stack:
        if KAFKA not in env:
            port, _ = free_ports()
            kafka = start(stack, "kafka", port)
            env[KAFKA] = f"127.0.0.1:{port}"
            wait_for(kafka, lambda: listens(port), "Kafka")
        if ELASTICSEARCH not in env:
            proxy, _ = free_ports()
            node = start(stack, "elasticsearch", proxy)
            env[ELASTICSEARCH] = f"http://127.0.0.1:{proxy}"
            wait_for(node, lambda: is_elasticsearch(env[ELASTICSEARCH]), "Elasticsearch")
        tests = [
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "peers",
            "tests/peers",
            "tests/integration/stores",
            *sys.argv[1:],
        ]
        return subprocess.call(tests, env=env)


if __name__ == "__main__":
    sys.exit(main())
