"""What became of one file: the contract's line of `perdure ingest --json`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.documents import DocumentView, Receipt

GOOD_STATES = frozenset({"ready"})


class IngestResult(BaseModel):
    """`outcome` is null when the file never reached the server."""

    document_id: str | None
    external_id: str
    state: str
    version: int | None
    warnings: list[dict[str, Any]] = Field(default_factory=list)
    error: dict[str, Any] | None = None
    outcome: str | None = None

    @property
    def is_good(self) -> bool:
        return self.state in GOOD_STATES

    @property
    def word(self) -> str:
        """What a person reads: a ready document whose bytes were there already is `unchanged`."""
        return "unchanged" if self.is_good and self.outcome == "unchanged" else self.state


def of_receipt(receipt: Receipt) -> IngestResult:
    """A rejected file and an accepted one that nobody waits for."""
    failed = receipt.outcome == "rejected"
    return IngestResult(
        document_id=receipt.document_id,
        external_id=receipt.external_id,
        state="failed" if failed else receipt.state or "received",
        version=receipt.version,
        error=receipt.error,
        outcome=receipt.outcome,
    )


def of_view(view: DocumentView, receipt: Receipt, state: str | None = None) -> IngestResult:
    """`state` is the sent version's own, when a newer one has taken its place in the document's view."""
    is_newest = state is None
    return IngestResult(
        document_id=view.id,
        external_id=view.external_id,
        state=state or view.state,
        version=receipt.version if receipt.version is not None else view.version,
        warnings=[warning.model_dump() for warning in view.warnings] if is_newest else [],
        error=view.error.model_dump() if view.error is not None and is_newest else None,
        outcome=receipt.outcome,
    )


def not_sent(external_id: str, code: str, detail: str) -> IngestResult:
    error = {"code": code, "stage": "received", "retryable": True, "detail": detail}
    return IngestResult(document_id=None, external_id=external_id, state="failed", version=None, error=error)
