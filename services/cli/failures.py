"""Why a command could not do what it was asked, said in one line with what to do about it.

CliFailure
├── BadUsage       exit 2: the command line names something that cannot be
├── Unreachable    exit 4: no Perdure answers
├── Refusal        exit 1: the server's problem+json
└── EndedBadly     exit 3: the work was accepted and failed
"""

from __future__ import annotations

import re
from typing import Any

from services.cli.exit_codes import ExitCode

_REMEDIES = {
    "unauthenticated": "Set PERDURE_API_KEY to a key that is not revoked or expired, or name the server's --data-dir.",
    "forbidden": "Use a key with that scope, or ask a manager of the space for a role (`perdure spaces grant`).",
    "not_found": "Check the name or id; this key sees only what it may read.",
    "name_taken": "Give the document another name with --external-id.",
    "too_large": "Send less at once, or raise PERDURE_LIMITS__UPLOAD_BYTES on the server.",
    "rate_limited": "Wait a moment and run the command again.",
    "unavailable": "`perdure doctor` says which part is down and what to do.",
    "engine_down": "`perdure doctor` says which part is down and what to do.",
    "internal": "Look into the server's log; `perdure doctor` checks its parts.",
}
_REMEDIES_BY_STATUS = {
    401: "unauthenticated", 403: "forbidden", 404: "not_found", 413: "too_large", 429: "rate_limited",
    500: "internal", 502: "unavailable", 503: "unavailable", 504: "unavailable",
}  # fmt: skip


class CliFailure(Exception):
    """`detail` is one sentence, `kind` a stable word for scripts, `remedy` what to do next."""

    exit_code = ExitCode.REFUSED

    def __init__(self, detail: str, kind: str, remedy: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.kind = kind
        self.remedy = remedy


class BadUsage(CliFailure):
    """The command line cannot be meant; nothing was sent."""

    exit_code = ExitCode.USAGE

    def __init__(self, detail: str, remedy: str | None = None, kind: str = "usage") -> None:
        super().__init__(detail, kind, remedy)


class Unreachable(CliFailure):
    """No Perdure answers where the command looked."""

    exit_code = ExitCode.UNREACHABLE

    def __init__(self, detail: str, remedy: str | None = None) -> None:
        super().__init__(detail, "unreachable", remedy)


class Refusal(CliFailure):
    """The server answered with a problem (RFC 9457); `problem` is its body, `kind` the last part of its type's URI."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        told = str(problem.get("type") or "about:blank")
        kind = _REMEDIES_BY_STATUS.get(status, "refused") if told == "about:blank" else re.split("[/:]", told)[-1]
        detail = str(problem.get("detail") or problem.get("title") or f"The server answered {status}.")
        super().__init__(detail, kind, _remedy(status, kind, problem))
        self.status = status
        self.problem = problem


class EndedBadly(CliFailure):
    """Work that the server accepted did not succeed."""

    exit_code = ExitCode.SOME_FAILED


def _remedy(status: int, kind: str, problem: dict[str, Any]) -> str | None:
    told = problem.get("remedy")
    if isinstance(told, str):
        return told
    return _REMEDIES.get(kind) or _REMEDIES.get(_REMEDIES_BY_STATUS.get(status, ""))
