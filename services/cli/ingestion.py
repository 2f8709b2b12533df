"""Several uploads at a time, and each document watched until it is ready or has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.documents import ENDED_STATES, DocumentView, Receipt
from services.cli.client import ApiClient, path_of
from services.cli.collect_files import LocalFile
from services.cli.failures import Refusal
from services.cli.ingest_board import Board
from services.cli.ingest_result import IngestResult, not_sent, of_receipt, of_view
from services.cli.upload import Destination, upload_file
from services.cli.upload_threads import Uploads

_FIRST_LOOK_S, _LONGEST_PAUSE_S, _LOOKS_PER_S = 0.1, 1.0, 40


@dataclass
class _Watched:
    file: LocalFile
    receipt: Receipt
    next_look: float
    pause_s: float = _FIRST_LOOK_S


class Ingestion:
    """One run of `perdure ingest`: `sent` and `results` say how far it came when it is cut short."""

    def __init__(self, client: ApiClient, destination: Destination, board: Board, *, wait: bool) -> None:
        self.sent = 0
        self.results: list[IngestResult] = []
        self._client = client
        self._destination = destination
        self._board = board
        self._wait = wait
        self._watched: list[_Watched] = []

    def run(self, files: Sequence[LocalFile]) -> list[IngestResult]:
        uploads = Uploads(self._upload, files)
        while uploads.left or self._watched:
            self._collect(uploads)
            self._look()
        return self.results

    def _upload(self, file: LocalFile) -> Receipt | IngestResult:
        self._board.sending(file)
        return upload_file(self._client, self._destination, file)

    def _collect(self, uploads: Uploads) -> None:
        """Takes in ended uploads; waits for one, or until the next document is due for a look."""
        now = self._client.now()
        pause_s = max(0.0, min((watched.next_look for watched in self._watched), default=now + 60) - now)
        if not uploads.left:
            self._client.sleep(pause_s)
            return
        for file, reply in uploads.ended(pause_s):
            self._take_in(file, reply)

    def _take_in(self, file: LocalFile, reply: Receipt | IngestResult) -> None:
        if isinstance(reply, IngestResult):
            self._end(file, reply)
            return
        self.sent += 1
        if reply.document_id is None or reply.outcome == "rejected" or not self._wait:
            self._end(file, of_receipt(reply))
            return
        self._board.working(file, None)
        self._watched.append(_Watched(file, reply, self._client.now()))

    def _look(self) -> None:
        longest = max(_LONGEST_PAUSE_S, len(self._watched) / _LOOKS_PER_S)
        for watched in list(self._watched):
            if watched.next_look > self._client.now():
                continue
            result = self._result_of(watched)
            if result is not None:
                self._watched.remove(watched)
                self._end(watched.file, result)
            watched.pause_s = min(longest, watched.pause_s * 1.5)
            watched.next_look = self._client.now() + watched.pause_s

    def _result_of(self, watched: _Watched) -> IngestResult | None:
        """None while the version sent is at work."""
        document_id, version = str(watched.receipt.document_id), watched.receipt.version
        try:
            view = DocumentView.model_validate(self._client.get(path_of("documents", document_id)))
            if version is None or view.version <= version:
                self._board.working(watched.file, view)
                return of_view(view, watched.receipt) if view.state in ENDED_STATES else None
            versions = self._client.get(path_of("documents", document_id, "versions"))
        except Refusal as refusal:
            if refusal.status != 404:
                raise
            gone = not_sent(watched.file.external_id, "removed", "The document was removed while it was being read.")
            return gone.model_copy(update={"document_id": document_id, "version": version})
        entries = versions["items"] if isinstance(versions, dict) else versions
        state = next((entry["state"] for entry in entries if entry["version"] == version), "superseded")
        return of_view(view, watched.receipt, state) if state in ENDED_STATES else None

    def _end(self, file: LocalFile, result: IngestResult) -> None:
        self.results.append(result)
        self._board.ended(file, result)
