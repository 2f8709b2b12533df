"""The sandbox leaves contexts out, so nothing that converts our payloads may need one."""

from __future__ import annotations

from temporalio.converter import WithSerializationContext

from infra.workflow_runner import ContextFreeSandbox, sandbox
from services.gateways.temporal_payloads import PerdurePayloadConverter, perdure_data_converter


def test_no_converter_of_ours_changes_with_its_context_and_none_stores_payloads_outside() -> None:
    assert perdure_data_converter.payload_converter_class is PerdurePayloadConverter
    parts = [
        *PerdurePayloadConverter().converters.values(),
        perdure_data_converter.failure_converter,
        perdure_data_converter.payload_codec,
    ]
    assert [part for part in parts if isinstance(part, WithSerializationContext)] == []
    assert perdure_data_converter.external_storage is None


def test_our_data_shapes_pass_through_the_sandbox_and_our_workflows_do_not() -> None:
    runner = sandbox()
    assert isinstance(runner, ContextFreeSandbox)
    assert "schemas" in runner.restrictions.passthrough_modules
    assert "workflows" not in runner.restrictions.passthrough_modules
