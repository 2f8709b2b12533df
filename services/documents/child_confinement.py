"""What a pool's child gives up before it sees a document: memory, time, network, core dumps, a life of its own."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

from schemas.settings import ParsingSettings

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWNET = 0x4000_0000


def confine(limits: ParsingSettings, parent: int) -> None:
    """Applies to this process for good. What the kernel refuses (network, on some systems) is left as it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)  # it died before the kernel knew that we go with it
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.unshare(_CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    with suppress(OSError):
        os.nice(limits.niceness)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    address_space = _address_space_bytes() + limits.memory_mb * 1_048_576
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


def allow_cpu_seconds(seconds: float) -> None:
    """From now on this process may use that many seconds more; then SIGXCPU ends it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _address_space_bytes() -> int:
    """What the interpreter and the parsers' libraries take by themselves."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
