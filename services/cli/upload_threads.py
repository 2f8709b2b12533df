"""Several files on their way at once, from threads that never keep an interrupted command from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from schemas.documents import Receipt
from services.cli.collect_files import LocalFile
from services.cli.ingest_result import IngestResult

UPLOADS_AT_ONCE = 4
Reply = Receipt | IngestResult


class Uploads:
    """Daemon threads, for an executor's are joined at exit: Ctrl-C would wait for a server that holds an upload."""

    def __init__(self, upload: Callable[[LocalFile], Reply], files: Sequence[LocalFile]) -> None:
        self.left = len(files)
        self._upload = upload
        self._waiting: queue.SimpleQueue[LocalFile] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[LocalFile, Reply | BaseException]] = queue.SimpleQueue()
        for file in files:
            self._waiting.put(file)
        for _ in range(min(UPLOADS_AT_ONCE, len(files))):
            threading.Thread(target=self._work, name="upload", daemon=True).start()

    def ended(self, timeout_s: float) -> Iterator[tuple[LocalFile, Reply]]:
        """Those that ended within `timeout_s`, without waiting for a second. Raises what stopped one for all."""
        wait = True
        while self.left:
            try:
                file, reply = self._ended.get(block=wait, timeout=timeout_s if wait else None)
            except queue.Empty:
                return
            wait = False
            self.left -= 1
            if isinstance(reply, BaseException):
                raise reply
            yield file, reply

    def _work(self) -> None:
        """Ends with its first failure: what refuses one file this way refuses all, and the main thread is told."""
        while True:
            try:
                file = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._ended.put((file, self._upload(file)))
            except BaseException as error:
                self._ended.put((file, error))
                return
