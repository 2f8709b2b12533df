"""Every failure Perdure names, drawn as a tree.

PerdureError
├── Failure                     a step of durable work could not be done
│   ├── PermanentFailure        trying again gives the same end
│   ├── TransientFailure        trying again soon may help
│   └── EngineDown              an engine does not answer; the workflow waits for it
└── Problem                     a caller's request could not be met (RFC 9457)
    ├── InvalidRequest          400/422
    ├── Unauthenticated         401
    ├── Forbidden               403  (only for what the key may see)
    ├── NotFound                404  (unknown and hidden look the same)
    ├── Conflict                409
    ├── TooLarge                413
    ├── RateLimited             429
    └── Unavailable             503
"""

from __future__ import annotations


class PerdureError(Exception):
    """Root of all errors raised on purpose."""


class Failure(PerdureError):
    """A step of durable work failed. `code` is one of the contract's error codes; `detail` is one sentence for a person."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.code, self.detail)  # crosses the parser's process boundary


class PermanentFailure(Failure):
    """The same input will fail the same way: the run ends failed(code)."""


class TransientFailure(Failure):
    """May work when tried again. `retry_after_s` is what the other side asked for, if it did."""

    def __init__(self, code: str, detail: str, retry_after_s: float | None = None) -> None:
        super().__init__(code, detail)
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type, tuple[str, str, float | None]]:  # type: ignore[override]
        return type(self), (self.code, self.detail, self.retry_after_s)


class EngineDown(Failure):
    """`engine` does not answer. The workflow waits on a timer and holds no worker slot."""

    def __init__(self, engine: str, detail: str) -> None:
        super().__init__("engine_down", detail)
        self.engine = engine

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.engine, self.detail)


class Problem(PerdureError):
    """An RFC 9457 problem. Subclasses own their status and type; `extra` are fields of the case."""

    status = 500
    type = "internal"
    title = "Something went wrong on our side"

    def __init__(self, detail: str, *, type: str | None = None, status: int | None = None, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.type = type or self.type
        self.status = status or self.status
        self.extra = extra


class InvalidRequest(Problem):
    """What was sent is malformed or out of bounds."""

    status, type, title = 422, "invalid_request", "The request is not valid"


class Unauthenticated(Problem):
    """No key, or one that is unknown, expired or revoked."""

    status, type, title = 401, "unauthenticated", "A valid API key is needed"


class Forbidden(Problem):
    """The key may see the thing and not do this to it."""

    status, type, title = 403, "forbidden", "This key may not do that"


class NotFound(Problem):
    """Unknown and hidden look the same."""

    status, type, title = 404, "not_found", "There is no such thing here"


class Conflict(Problem):
    """What is there now does not allow it."""

    status, type, title = 409, "conflict", "The request conflicts with what is there"


class TooLarge(Problem):
    """Over a bound in bytes."""

    status, type, title = 413, "too_large", "The request is too large"


class RateLimited(Problem):
    """Over a bound per time."""

    status, type, title = 429, "rate_limited", "Too many requests"


class Unavailable(Problem):
    """An engine is away; trying again later may help."""

    status, type, title = 503, "unavailable", "A part of Perdure is not available"
