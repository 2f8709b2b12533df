"""What every figure gets and gives."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Measured = dict[str, Any]
"""A figure's keys of the report, and under `raw` what they were computed from."""


@dataclass(frozen=True)
class Bench:
    """One run of the benchmarks. `folder` is scratch; `quick` asks for a rough look instead of a measurement."""

    folder: Path
    quick: bool

    def times(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def say(text: str) -> None:
    """Progress, for people: stdout belongs to the report."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float], digits: int = 2) -> dict[str, float]:
    """How a row of measurements looks: count, median, 95th percentile, extremes."""
    told = {
        "p50": statistics.median(values),
        "p95": percentile(values, 0.95),
        "least": min(values),
        "most": max(values),
    }
    return {"count": len(values), **{name: round(value, digits) for name, value in told.items()}}
