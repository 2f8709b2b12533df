"""The first process inside a sandbox: starts its commands, reaps what ends, signals when told. Ends when the server does.

`python -I -S cell_init.py CONTROL_FD CPU_SECONDS LIMIT=MOST…`. A program of its own that imports built-in modules alone,
because it starts with every sandbox and stays in its memory. It binds itself to its limits before it asks for anything to run;
from then on it is as little trusted as the code beside it, and nothing it says is believed without a check.

From the server, one packet each: `run NUMBER` with four descriptors (what to run, stdin, stdout, stderr), `signal PID SIGNAL`
for the session that a command leads, `clear` for everything. To the server: `ready`, `started NUMBER PID`,
`refused NUMBER WHY`, `ended NUMBER STATUS` (of wait). What to run is a file of NUL-ended words: the folder, the count of
arguments, the arguments, then NAME=VALUE.
"""

from __future__ import annotations

import _signal as signals  # type: ignore[import-not-found]
import _socket
import os
import resource
import sys

PACKET_BYTES = 4_096
KILL_ROUNDS = 20
FIRST_OF_OOM = b"800"
"""Beside this number the kernel's memory killer leaves the first process, which has 0, alone."""


class Init:
    """One loop: packets are handled as they come, ends as SIGCHLD interrupts the waiting."""

    def __init__(self, control: _socket.socket, cpu_s: int) -> None:
        self._control = control
        self._cpu_s = cpu_s
        self._commands: dict[int, int] = {}

    def run(self) -> None:
        signals.signal(signals.SIGCHLD, self._reap)
        self._control.send(b"ready")
        while True:
            packet, descriptors = self._receive()
            if not packet:
                return
            word, *rest = packet.decode().split(" ")
            if word == "run":
                self._start(int(rest[0]), descriptors)
            elif word == "signal":
                self._signal(int(rest[0]), int(rest[1]))
            elif word == "clear":
                _quietly(-1, signals.SIGKILL)

    def _receive(self) -> tuple[bytes, list[int]]:
        packet, ancillary, _, _ = self._control.recvmsg(PACKET_BYTES, _socket.CMSG_SPACE(4 * 4))
        found: list[int] = []
        for _, _, data in ancillary:
            found += [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) - 3, 4)]
        return packet, found

    def _start(self, number: int, descriptors: list[int]) -> None:
        request, *streams = descriptors
        words = _read_all(request).decode("utf-8", "surrogateescape").split("\0")
        folder, count = words[0], int(words[1])
        arguments, settings = words[2 : 2 + count], words[2 + count : -1]
        signals.pthread_sigmask(signals.SIG_BLOCK, [signals.SIGCHLD])  # an end must not come before it is expected
        try:
            if not os.path.isdir(folder):  # noqa: PTH112 - pathlib takes longer to import than all of this to start
                raise OSError(2, f"the folder {folder} does not exist")
            pid = os.fork()
            if pid == 0:
                os.close(request)
                self._become(folder, arguments, dict(each.partition("=")[::2] for each in settings), streams)
            self._commands[pid] = number
            self._control.send(b"started %d %d" % (number, pid))
        except OSError as error:
            self._control.send(
                f"refused {number} {error.errno} {error.strerror}".encode("utf-8", "replace")[:PACKET_BYTES]
            )
        finally:
            signals.pthread_sigmask(signals.SIG_UNBLOCK, [signals.SIGCHLD])
            for each in descriptors:
                os.close(each)

    def _become(self, folder: str, arguments: list[str], settings: dict[str, str], streams: list[int]) -> None:
        """In the child, which never returns."""
        try:
            os.setsid()
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
            for stream in streams:
                os.close(stream)
            for number in (signals.SIGCHLD, signals.SIGPIPE, signals.SIGXFSZ, signals.SIGINT):
                signals.signal(number, signals.SIG_DFL)
            signals.pthread_sigmask(signals.SIG_SETMASK, [])
            resource.setrlimit(resource.RLIMIT_CPU, (self._cpu_s, self._cpu_s + 2))
            _write("/proc/self/oom_score_adj", FIRST_OF_OOM)
            os.chdir(folder)
            os.execve(arguments[0], arguments, settings)  # noqa: S606 - to become the command is the purpose
        except OSError as error:
            os.write(2, f"{arguments[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        finally:
            os._exit(127)

    def _signal(self, leader: int, number: int) -> None:
        """To all of the session; SIGKILL again until nobody is left, since some may fork meanwhile."""
        if leader not in self._commands:
            return
        for _ in range(KILL_ROUNDS if number == signals.SIGKILL else 1):
            members = [pid for pid in _processes() if _session(pid) == leader]
            for pid in members:
                _quietly(pid, number)
            if not members:
                return

    def _reap(self, *_: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._commands.pop(pid, None)
            if number is not None:
                self._control.send(b"ended %d %d" % (number, status))


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _session(pid: int) -> int | None:
    """Field 6 of its stat; None when it is gone or waits to be reaped."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        stat = _read_all(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    state, _, _, session, *_ = stat.rpartition(b")")[2].split()
    return None if state in b"ZX" else int(session)


def _quietly(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def _write(path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


def bind(bounds: list[str]) -> None:
    """For this process and all it will start, for good."""
    for bound in bounds:
        what, most = map(int, bound.split("="))
        _, present = resource.getrlimit(what)
        if present != resource.RLIM_INFINITY:
            most = min(most, present)
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    bind(sys.argv[3:])
    os.set_inheritable(int(sys.argv[1]), False)  # commands must not speak to the server
    Init(_socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])).run()
