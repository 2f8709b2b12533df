"""One command of a sandbox: what it is, what it has written, who listens, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from infra.e2b_local.command_end import Cause, CommandEnd
from infra.e2b_local.command_input import CommandInput

Stream = Literal["stdout", "stderr"]
Piece = tuple[Stream, bytes]
_READ_BYTES = 1 << 16
_MOST_READS_TO_DRAIN = 16  # a full pipe
_DROP_EVERY_S = 0.1


@dataclass(frozen=True)
class CommandRequest:
    """As the caller asked. `folder` and `environment` are what that means inside; after `seconds` it is ended, with `too_slow`
    as the reason."""

    program: str
    arguments: tuple[str, ...]
    envs: dict[str, str]
    cwd: str | None
    tag: str | None
    takes_input: bool
    folder: str
    environment: dict[str, str]
    seconds: float
    too_slow: str

    def encoded(self) -> bytes:
        """The words that `cell_init` reads."""
        words = [self.folder, str(1 + len(self.arguments)), self.program, *self.arguments]
        words += [f"{name}={value}" for name, value in self.environment.items()]
        return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)


@dataclass
class Evidence:
    """Counters when the command began, to be compared when it ends."""

    memory_kills: int
    refused_tasks: int


@dataclass(eq=False)
class Command:
    """While it runs its two output pipes are read as fast as they fill. What a tagged command writes is kept for whoever
    attaches later; of any other the first listener gets all, a later one what comes after it began to listen.

    `cause` is why it is being ended, once that is decided; the first decision stays.
    """

    request: CommandRequest
    number: int
    most_output_bytes: int
    evidence: Evidence
    too_much_output: Callable[[Command], None]
    started: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    end: CommandEnd | None = None
    cause: Cause | None = None
    written_bytes: int = 0
    deadline: asyncio.TimerHandle | None = None
    input: CommandInput = field(default_factory=lambda: CommandInput(None))
    _keeps_history: bool = True
    _history: list[Piece] = field(default_factory=list)
    _listeners: list[asyncio.Queue[Piece | None]] = field(default_factory=list)
    _pipes: dict[int, Stream] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        """Inside the sandbox; only after it has started."""
        return self.started.result()

    @property
    def is_connected(self) -> bool:
        """Somebody may still write to its output."""
        return bool(self._pipes)

    @contextlib.contextmanager
    def listen(self) -> Iterator[asyncio.Queue[Piece | None]]:
        """A queue of output in order; None when there will be no more."""
        queue: asyncio.Queue[Piece | None] = asyncio.Queue()
        for piece in self._history:
            queue.put_nowait(piece)
        if self.request.tag is None:
            self._keeps_history = False
            self._history.clear()
        if self.end is not None:
            queue.put_nowait(None)
        self._listeners.append(queue)
        try:
            yield queue
        finally:
            self._listeners.remove(queue)

    def connect(self, stdin: int | None, stdout: int, stderr: int) -> None:
        """Takes our ends of its pipes."""
        self.input = CommandInput(stdin)
        loop = asyncio.get_running_loop()
        streams: tuple[tuple[int, Stream], ...] = ((stdout, "stdout"), (stderr, "stderr"))
        for pipe, stream in streams:
            os.set_blocking(pipe, False)
            self._pipes[pipe] = stream
            loop.add_reader(pipe, self._read, pipe)

    def drain(self) -> None:
        """Reads what has been written and not been read; what others still hold open is not waited for."""
        for pipe in list(self._pipes):
            for _ in range(_MOST_READS_TO_DRAIN):  # somebody who was left behind may fill it as fast as it is emptied
                if pipe not in self._pipes or not self._read(pipe):
                    break

    def finish(self, end: CommandEnd) -> None:
        """Tells all listeners. Processes it left behind may go on writing: that is read and dropped, in no hurry."""
        self.end = end
        for pipe in self._pipes:
            asyncio.get_running_loop().remove_reader(pipe)
        self._drop_output()
        self.input.close()
        if self.deadline is not None:
            self.deadline.cancel()
        for queue in self._listeners:
            queue.put_nowait(None)

    def disconnect(self) -> None:
        """After the sandbox's processes have ended."""
        for pipe in list(self._pipes):
            self._close(pipe)
        self.input.close()

    def _read(self, pipe: int) -> bool:
        """Whether there may be more at once."""
        try:
            data = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close(pipe)
            return False
        if self.end is None and self.written_bytes <= self.most_output_bytes:
            self._publish((self._pipes[pipe], data))
        return True

    def _drop_output(self) -> None:
        for pipe in list(self._pipes):
            self._read(pipe)
        if self._pipes:
            asyncio.get_running_loop().call_later(_DROP_EVERY_S, self._drop_output)

    def _publish(self, piece: Piece) -> None:
        self.written_bytes += len(piece[1])
        if self.written_bytes > self.most_output_bytes:
            self.too_much_output(self)
            return
        if self._keeps_history:
            self._history.append(piece)
        for queue in self._listeners:
            queue.put_nowait(piece)

    def _close(self, pipe: int) -> None:
        asyncio.get_running_loop().remove_reader(pipe)
        del self._pipes[pipe]
        os.close(pipe)
