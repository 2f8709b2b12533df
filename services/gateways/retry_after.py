"""The Retry-After header (RFC 9110, section 10.2.3): seconds or a date."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds from `now`; None when the header is missing or means nothing."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None
