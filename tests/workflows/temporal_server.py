"""A real Temporal dev server whose workflows skip time, with the client that the product connects with."""

from __future__ import annotations

import sys
from pathlib import Path

from opentelemetry import trace
from temporalio.common import SearchAttributeKey
from temporalio.contrib.opentelemetry import ReplaySafeTracerProvider
from temporalio.testing import WorkflowEnvironment

from infra import telemetry, temporal_client
from infra.local_stack.temporal_engine import DYNAMIC_CONFIG
from schemas.workflow_contracts import SEARCH_ATTRIBUTES

CONTINUE_AS_NEW_AFTER_EVENTS = 40
"""Low, so that what continues as new does so within a test."""

_FOR_TESTS = (
    "frontend.WorkflowTimeSkippingEnabled=true",
    "system.forceSearchAttributesCacheRefreshOnRead=true",
    'history.timerProcessorMaxTimeShift="10ms"',  # or each skip takes a second
    f"limit.historyCount.suggestContinueAsNew={CONTINUE_AS_NEW_AFTER_EVENTS}",
)


def tracer_provider() -> ReplaySafeTracerProvider:
    """The product's, set once for this process."""
    if not isinstance(trace.get_tracer_provider(), ReplaySafeTracerProvider):
        telemetry.configure_traces({}, "tests")
    provider = trace.get_tracer_provider()
    assert isinstance(provider, ReplaySafeTracerProvider), "another test has set a tracer provider of its own"
    return provider


async def start_environment() -> WorkflowEnvironment:
    """Boots within a second. The identity is fixed, so that no recorded history names a machine."""
    tracer_provider()
    values = [part for value in (*DYNAMIC_CONFIG, *_FOR_TESTS) for part in ("--dynamic-config-value", value)]
    return await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        dev_server_extra_args=values,
        dev_server_log_level="error",
        search_attributes=[SearchAttributeKey.for_keyword(name) for name in SEARCH_ATTRIBUTES.all()],
        plugins=temporal_client.plugins(),
        identity="perdure-tests",
    )
