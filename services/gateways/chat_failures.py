"""What a chat provider's error means for the run."""

from __future__ import annotations

from pydantic_ai import exceptions

from schemas.errors import EngineDown, Failure, PermanentFailure, TransientFailure

ENGINE = "chat model"
RETRIED_STATUSES = {408, 409, 425, 429}
SERVER_ERROR = 500
DETAIL_CHARACTERS = 300

REJECTED, CONTEXT_LENGTH, REFUSED, UNAVAILABLE = "model_rejected", "context_length", "refused", "model_unavailable"


def chat_failure(name: str, error: Exception) -> Failure:
    """`error` is what pydantic-ai, a provider's SDK or its transport raised for the model `name`."""
    detail = f"{name}: {_reason(error)}"
    match error:
        case exceptions.ModelContextWindowExceededError():
            return PermanentFailure(CONTEXT_LENGTH, detail)
        case exceptions.ContentFilterError():
            return PermanentFailure(REFUSED, detail)
        case exceptions.ModelQuotaExceededError() | exceptions.ModelRequestRejectedError() | exceptions.UserError():
            return PermanentFailure(REJECTED, detail)
        case exceptions.ModelConnectionError(phase="connect"):
            return EngineDown(ENGINE, detail)
        case exceptions.ModelHTTPError() if not _may_pass(error.status_code):
            return PermanentFailure(REJECTED, detail)
        case exceptions.ModelAPIError():
            return TransientFailure(UNAVAILABLE, detail, error.retry_after)
    return TransientFailure(UNAVAILABLE, detail)  # broken streams surface in the shapes of many libraries


def _may_pass(status: int) -> bool:
    return status in RETRIED_STATUSES or status >= SERVER_ERROR


def _reason(error: Exception) -> str:
    """One line; never a key: providers echo at most its last characters."""
    return (" ".join(str(error).split()) or type(error).__name__)[:DETAIL_CHARACTERS]
