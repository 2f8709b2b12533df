"""How the interpreter of a serving process shares itself out."""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.0005
"""After this long a thread that computes lets others have the interpreter. The default, ten times as long, is what every answer
and search would wait, many times over, while a workflow's sandbox computes in a thread beside the event loop."""


def share_evenly() -> None:
    sys.setswitchinterval(SWITCH_S)


def settle() -> None:
    """Takes what the start has built out of the collector's sight: looking at all of it again stops everything for 0.1 s."""
    gc.collect()
    gc.freeze()
