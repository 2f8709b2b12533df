"""Every timeout and retry, in named profiles (invariant 6). Workflows name a profile and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypedDict

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

HEARTBEAT_TIMEOUT = timedelta(seconds=2)
"""With a beat every 0.5 s and a throttle of 1 s a killed worker is noticed within 5 s."""

FOREVER = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=30),
)
"""Attempts lost to kills cost nothing, so there is no maximum here: run_steps counts what really failed."""


class ActivityOptions(TypedDict, total=False):
    """What a profile sets of an activity."""

    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


def _profile(start_to_close: timedelta) -> ActivityOptions:
    return ActivityOptions(
        start_to_close_timeout=start_to_close,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=FOREVER,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


BOOKKEEPING: Any = _profile(timedelta(minutes=1))
"""A few rows: claim, waits, ends."""

STAGE: Any = _profile(timedelta(hours=6))
"""A stage of an ingest or a removal: as long as the document is; the heartbeat watches it."""

INTERACTIVE: Any = _profile(timedelta(minutes=15))
"""A person waits for it."""
