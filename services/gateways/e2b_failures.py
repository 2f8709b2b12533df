"""What an error of the E2B client means for the run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import httpx
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b import exceptions
from e2b.envd.rpc import handle_rpc_exception, is_transport_failure

from schemas.errors import EngineDown, Failure, PermanentFailure, TransientFailure
from services.gateways.sandbox import ENGINE, SandboxGone

NOT_FOUND, REFUSED, QUOTA, TOO_LARGE, BUSY, UNAVAILABLE, TIMEOUT, LOST = (
    "not_found",
    "refused",
    "quota",
    "too_large",
    "sandboxes_busy",
    "sandbox_unavailable",
    "timeout",
    "command_lost",
)
_CANNOT_RUN = 501
_SERVER_ERROR = 500
_DETAIL_CHARACTERS = 500


class ListenerFailed(Exception):
    """Carries, as its cause, what a listener of ours raised past the SDK."""


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """Lets failures of ours, of listeners and cancellation through; everything else that is raised becomes a Failure."""
    try:
        yield
    except (Failure, asyncio.CancelledError):
        raise
    except ListenerFailed as error:
        raise error.__cause__ or error from None
    except Exception as error:
        if isinstance(error, ConnectError) and isinstance(error.__cause__, asyncio.CancelledError):
            raise error.__cause__ from None
        raise e2b_failure(error) from error


def e2b_failure(error: Exception) -> Failure:
    """`error` is what the SDK, its protocol client or its transport raised."""
    if isinstance(error, ConnectError):
        if is_transport_failure(error):
            return EngineDown(ENGINE, f"the sandbox server does not answer: {error.message}"[:_DETAIL_CHARACTERS])
        if error.code is Code.FAILED_PRECONDITION:
            return TransientFailure(UNAVAILABLE, _sentence(error))  # the sandbox could not be started this time
        error = handle_rpc_exception(error)
    detail = _sentence(error)
    match error:
        case exceptions.SandboxNotFoundException() | exceptions.SandboxNotRunningException():
            return SandboxGone(detail)
        case exceptions.SandboxUnreachableException() | httpx.TransportError() | OSError():
            return EngineDown(ENGINE, f"the sandbox server does not answer: {detail}")
        case exceptions.NotFoundException():
            return PermanentFailure(NOT_FOUND, detail)
        case exceptions.NotEnoughSpaceException():
            return PermanentFailure(QUOTA, detail)
        case exceptions.RateLimitException() | exceptions.ServiceBusyException():
            return TransientFailure(BUSY, detail)
        case exceptions.TimeoutException():
            return TransientFailure(TIMEOUT, detail)
        case exceptions.SandboxException(status_code=int(status)) if status == _CANNOT_RUN:
            return PermanentFailure(UNAVAILABLE, detail)
        case exceptions.SandboxException(status_code=int(status)) if status >= _SERVER_ERROR:
            return TransientFailure(UNAVAILABLE, detail)
    return PermanentFailure(REFUSED, detail)  # a wrong key, a wrong path, what the other side does not do


def _sentence(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:_DETAIL_CHARACTERS]
