"""Whether a call runs, is asked for, or is denied: the mode table of spec 03, after rights and before the call."""

from __future__ import annotations

from collections.abc import Collection

from schemas.tools import Mode, Risk, ToolSpec, Verdict

VERSION = 1
_TABLE: dict[Mode, dict[Risk, Verdict]] = {
    "read_only": {"read": "run", "write": "deny", "destructive": "deny"},
    "ask": {"read": "run", "write": "ask", "destructive": "ask"},
    "auto": {"read": "run", "write": "run", "destructive": "ask"},
}
_ALWAYS_ASKED: dict[Mode, Verdict] = {"read_only": "deny", "ask": "ask", "auto": "ask"}


def verdict(
    spec: ToolSpec, mode: Mode, always_ask: Collection[str], granted: Collection[tuple[str, str]] = ()
) -> Verdict:
    """`granted` are the (tool, risk) pairs that somebody approved for the rest of the session; they spare the asking, and
    allow nothing that the mode denies."""
    if spec.asks:
        return "ask"
    wanted = _ALWAYS_ASKED[mode] if spec.name in always_ask else _TABLE[mode][spec.risk]
    return "run" if wanted == "ask" and (spec.name, spec.risk) in granted else wanted
