"""The first process of a sandbox as seen from outside: started by bubblewrap, spoken to in packets, ended with all it holds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.e2b_local.seccomp_filter import filter_of_this_machine

_START_WITHIN_S = 20.0
_ENDS_WITHIN_S = 2.0
_PACKET_BYTES = 4_096
_PACKETS_AT_ONCE = 50  # then everybody else has a turn
_CREDENTIALS = struct.Struct("3i")

Arguments = Callable[[int, int], list[str]]
"""bubblewrap's, from the descriptors of the control socket and of the filter."""


class CellFailed(Exception):
    """The namespaces could not be made; the text is bubblewrap's own first line."""


@dataclass
class CellProcess:
    """`pid` is the first process's number outside; `handle` a descriptor of it, which no other process can come to mean."""

    pid: int
    handle: int
    _bubblewrap: Process
    _control: socket.socket
    _is_over: bool = False

    @classmethod
    async def start(cls, arguments: Arguments, owner: int | None, *, memory_is_counted: bool) -> CellProcess:
        """Returns when it waits for commands. Main thread only: bubblewrap ends with the thread that started it."""
        rules = filter_of_this_machine(memory_is_counted=memory_is_counted)
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        control.setblocking(False)
        control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        complaints, their_complaints = os.pipe()
        with contextlib.ExitStack() as ours:
            ours.callback(os.close, complaints)
            on_failure = ours.enter_context(contextlib.ExitStack())
            on_failure.callback(control.close)
            with contextlib.ExitStack() as inherited:
                inherited.callback(theirs.close)
                inherited.callback(os.close, their_complaints)
                filter_file = file_in_memory(rules)
                inherited.callback(os.close, filter_file)
                bubblewrap = await _spawn(arguments, owner, theirs.fileno(), filter_file, their_complaints)
            first_words = await _first_words(control)
            if first_words is None:
                await _over(bubblewrap)
                why = os.read(complaints, _PACKET_BYTES).decode("utf-8", "replace").strip().partition("\n")[0]
                raise CellFailed(why or f"it ended with {bubblewrap.returncode}")
            on_failure.pop_all()
        pid, handle = first_words
        return cls(pid, handle, bubblewrap, control)

    def listen(self, on_packet: Callable[[list[str]], None]) -> None:
        """Words of each packet from now on. They come from inside: believe nothing."""
        asyncio.get_running_loop().add_reader(self._control, self._receive, on_packet)

    def say(self, words: str, descriptors: Sequence[int] = ()) -> None:
        """OSError when it has ended, or does not read what it is told."""
        socket.send_fds(self._control, [words.encode()], descriptors)

    def kill(self) -> None:
        if not self._is_over:  # afterwards the descriptor's number may be another's
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    async def wait(self) -> None:
        """Returns when no process of the sandbox is left: the first one ends after all others."""
        await _readable(self.handle)  # as a process's descriptor is once it has ended
        await self._bubblewrap.wait()
        self._is_over = True
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        os.close(self.handle)

    def _receive(self, on_packet: Callable[[list[str]], None]) -> None:
        for _ in range(_PACKETS_AT_ONCE):
            try:
                packet = self._control.recv(_PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                asyncio.get_running_loop().remove_reader(self._control)
                return
            on_packet(packet.decode("utf-8", "replace").split(" ", 3))


async def _spawn(arguments: Arguments, owner: int | None, control: int, rules: int, complaints: int) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *arguments(control, rules),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=complaints,
            pass_fds=(control, rules),
            env={},
            cwd="/",
            user=owner,
            group=owner,
            extra_groups=None if owner is None else [],
        )
    except OSError as error:
        raise CellFailed(str(error)) from error


async def _over(bubblewrap: Process) -> None:
    """It has mostly ended by itself, and must then not be signalled: asyncio would lose its exit status."""
    try:
        await asyncio.wait_for(bubblewrap.wait(), _ENDS_WITHIN_S)
    except TimeoutError:
        bubblewrap.kill()
        await bubblewrap.wait()


async def _first_words(control: socket.socket) -> tuple[int, int] | None:
    """(pid, descriptor of that process) of who says that it is ready; None when it ended or says nothing.

    The kernel writes into a packet who sent it: that number is true whatever the sender says.
    """
    with contextlib.suppress(TimeoutError, ProcessLookupError):
        await asyncio.wait_for(_readable(control.fileno()), _START_WITHIN_S)
        packet, ancillary, _, _ = control.recvmsg(_PACKET_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
        if packet == b"ready":
            pid: int = _CREDENTIALS.unpack(ancillary[0][2])[0]
            return pid, os.pidfd_open(pid)
    return None


def file_in_memory(data: bytes) -> int:
    """A descriptor to be read from its beginning."""
    descriptor = os.memfd_create("perdure")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
