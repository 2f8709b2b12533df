"""The one Temporal client of a process: our converter, our tracing, and a namespace that has our search attributes."""

from __future__ import annotations

import asyncio

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError

from schemas.errors import EngineDown
from schemas.settings import Settings
from schemas.workflow_contracts import SEARCH_ATTRIBUTES
from services.gateways.temporal_payloads import perdure_data_converter


def perdure_plugin() -> SimplePlugin:
    """Converter and guard in one place; workers take it from the client."""
    return SimplePlugin("PerdurePlugin", data_converter=perdure_data_converter)


def plugins() -> list[SimplePlugin]:
    """For a client; its workers take them from it. The tracer provider must be `infra.telemetry`'s."""
    return [perdure_plugin(), OpenTelemetryPlugin(add_temporal_spans=True)]


async def connect(settings: Settings, address: str, *, patience_s: float = 10) -> Client:
    """EngineDown when Temporal does not answer within `patience_s`."""
    api_key = settings.temporal_api_key
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            return await Client.connect(
                address,
                namespace=settings.temporal_namespace,
                api_key=api_key.get_secret_value() if api_key else None,
                plugins=plugins(),
            )
        except (RPCError, RuntimeError) as error:
            if asyncio.get_running_loop().time() >= deadline:
                raise EngineDown("temporal", f"Temporal does not answer at {address}") from error
            await asyncio.sleep(0.1)


async def require_search_attributes(client: Client) -> None:
    """Registers what the namespace lacks; a worker must not start without: an unknown attribute stalls its run for ever."""
    namespace = client.namespace
    listed = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
    missing = [name for name in SEARCH_ATTRIBUTES.all() if name not in listed.custom_attributes]
    if not missing:
        return
    wanted = dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=namespace, search_attributes=wanted)
        )
    except RPCError as error:
        names = ", ".join(missing)
        raise EngineDown(
            "temporal", f"Add these Keyword search attributes to namespace {namespace}: {names}"
        ) from error
