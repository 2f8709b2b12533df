"""The standard input of a command, written to in the order of the callers, for as long as it reads."""

from __future__ import annotations

import asyncio
import os


class CommandInput:
    """Our end of its pipe; None for a command that takes no input."""

    def __init__(self, pipe: int | None) -> None:
        self._pipe = pipe
        self._in_turn = asyncio.Lock()
        self._writable = asyncio.Event()
        if pipe is not None:
            os.set_blocking(pipe, False)

    async def write(self, data: bytes) -> None:
        """Waits while the command does not read. BrokenPipeError when it takes no input, or no more."""
        async with self._in_turn:
            rest = memoryview(data)
            while rest:
                if self._pipe is None:
                    raise BrokenPipeError("the command takes no input, or its input was closed")
                try:
                    rest = rest[os.write(self._pipe, rest) :]
                except BlockingIOError:
                    await self._until_writable(self._pipe)

    def close(self) -> None:
        """Whoever is writing is told that it is closed."""
        if self._pipe is not None:
            asyncio.get_running_loop().remove_writer(self._pipe)
            os.close(self._pipe)
            self._pipe = None
            self._writable.set()

    async def _until_writable(self, pipe: int) -> None:
        loop = asyncio.get_running_loop()
        self._writable.clear()
        loop.add_writer(pipe, self._writable.set)
        try:
            await self._writable.wait()
        finally:
            if self._pipe is not None:
                loop.remove_writer(pipe)
