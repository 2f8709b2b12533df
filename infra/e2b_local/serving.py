"""The server put together, and its life from the first socket to the last sandbox."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2b.envd.filesystem.filesystem_connect import FilesystemASGIApplication
from e2b.envd.process.process_connect import ProcessASGIApplication
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from infra import serve_api
from infra.e2b_local.control_api import ControlApi
from infra.e2b_local.control_group_places import find_control_groups
from infra.e2b_local.data_folder import DataFolder
from infra.e2b_local.file_transfer import FileTransfer
from infra.e2b_local.filesystem_service import FilesystemService
from infra.e2b_local.host import Host
from infra.e2b_local.host_places import find_places, leave_places
from infra.e2b_local.process_service import ProcessService
from infra.e2b_local.rlimit_groups import RlimitGroups
from infra.e2b_local.sandboxes import Sandboxes
from infra.e2b_local.trial import why_not
from schemas.sandboxes import SandboxLimits

_OPEN_FILES = 1 << 16
"""At most, where the machine lets us: a running command takes a handful."""

_STOP_WITHIN_S = 30
_THREADS = 32
"""Packing a workspace holds one for seconds; the looks at all others must not wait for it."""


def prepare(data: DataFolder, limits: SandboxLimits) -> Host:
    """First of all, while there is one thread and no child: it may change what this process sees mounted."""
    data.hold()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_FILES, most), most))
    return Host(find_places(data), find_control_groups(data.path) or RlimitGroups(), limits)


async def serve(data: DataFolder, host: Host, port: int, api_key_file: Path | None) -> None:
    """Returns after SIGTERM or SIGINT, when no process of any sandbox is left. OSError when the port is taken."""
    stop = asyncio.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    key, key_file = data.api_key(api_key_file)
    listening = serve_api.bind(port)
    sandboxes = Sandboxes(data, host, await why_not(data, host))
    sandboxes.load()
    server = serve_api.build_server(build_app(sandboxes, key))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    expiring = asyncio.create_task(sandboxes.expire())
    stopping = asyncio.create_task(stop.wait())
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    print(json.dumps(_ready(url, key_file, sandboxes)), flush=True)  # the socket listens already
    await asyncio.wait({serving, stopping, expiring}, return_when=asyncio.FIRST_COMPLETED)
    signal.alarm(_STOP_WITHIN_S)  # a kill loses nothing, a server that never ends holds its data
    await sandboxes.close()
    server.should_exit = True
    await serving
    host.groups.sweep()
    leave_places(data)
    if not expiring.cancel():
        expiring.result()  # it should have gone on for ever


def build_app(sandboxes: Sandboxes, api_key: str) -> Starlette:
    """The control API and envd on one address: the SDK's headers say which sandbox is meant."""
    files = FileTransfer(sandboxes)
    return Starlette(
        routes=[
            Mount("/process.Process", ProcessASGIApplication(ProcessService(sandboxes))),
            Mount("/filesystem.Filesystem", FilesystemASGIApplication(FilesystemService(sandboxes))),
            Route("/files", files.handle, methods=["GET", "POST"]),
            Route("/health", files.health),
            *ControlApi(sandboxes, api_key).routes(),
        ]
    )


def _ready(url: str, key_file: Path, sandboxes: Sandboxes) -> Mapping[str, str | None]:
    return {
        "url": url,
        "api_key_file": str(key_file),
        "bounded_by": sandboxes.host.groups.kind,
        "refusal": sandboxes.refusal,
    }
