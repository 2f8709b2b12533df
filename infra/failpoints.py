"""Named places where a durability test kills this process. Off unless PERDURE_FAILPOINTS asks.

`PERDURE_FAILPOINTS=embed.before,publish.after` ends the process by SIGKILL at the first of these it comes to;
`name:3` waits for the third time.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

from schemas.failpoint_names import FAILPOINTS


def failpoint_from(setting: str | None) -> Callable[[str], None]:
    """The function that work calls at each named place. ValueError for a name that does not exist."""
    if not setting:
        return _nothing
    wanted: dict[str, int] = {}
    for part in setting.split(","):
        name, _, times = part.strip().partition(":")
        if name not in FAILPOINTS:
            raise ValueError(f"PERDURE_FAILPOINTS: there is no failpoint '{name}'")
        wanted[name] = int(times or 1)
    seen: Counter[str] = Counter()

    def at(name: str) -> None:
        seen[name] += 1
        if wanted.get(name) == seen[name]:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def _nothing(_: str) -> None:
    return None
