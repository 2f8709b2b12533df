"""The two forms of Retry-After, and what servers send instead."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.gateways.retry_after import retry_after_s

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("12", 12.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Mon, 04 May 2026 12:02:00 GMT", 120.0),
        ("Mon, 04 May 2026 11:00:00 GMT", 0.0),
        ("Mon, 04 May 2026 14:00:00 +0200", 0.0),
        ("later", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_a_header_gives_the_seconds_to_wait_from_now(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds
