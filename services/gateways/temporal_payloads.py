"""The one data converter: pydantic JSON with a guard on size (invariant 5).

Inputs and results are references and small records. A payload over the bound fails the workflow with a clear reason instead of
stalling its task for ever, which is what the server's own limit does.
"""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)
from temporalio.exceptions import ApplicationError

MAX_PAYLOAD_BYTES = 64_000
PAYLOAD_TOO_LARGE = "PayloadTooLarge"


class GuardedJsonConverter(PydanticJSONPlainPayloadConverter):
    """Refuses what is too big for a workflow's history."""

    def to_payload(self, value: Any) -> Payload | None:
        payload = super().to_payload(value)
        if payload is not None and len(payload.data) > MAX_PAYLOAD_BYTES:
            raise ApplicationError(
                f"a payload of {len(payload.data)} bytes is over {MAX_PAYLOAD_BYTES}: pass a reference",
                type=PAYLOAD_TOO_LARGE,
                non_retryable=True,
            )
        return payload


class PerdurePayloadConverter(CompositePayloadConverter):
    """Temporal's default converters with ours in the place of plain JSON."""

    def __init__(self) -> None:
        json_converter = GuardedJsonConverter()
        super().__init__(
            *(
                json_converter if isinstance(converter, JSONPlainPayloadConverter) else converter
                for converter in DefaultPayloadConverter.default_encoding_payload_converters
            )
        )


perdure_data_converter = DataConverter(payload_converter_class=PerdurePayloadConverter)
