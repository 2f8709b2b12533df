"""System calls that Python does not offer: openat2, unshare, mount and prctl."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x0002_0000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_SLAVE = 0x02, 0x04, 0x1000, 0x4000, 0x8_0000
RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT = 0x02, 0x08, 0x10
_OPENAT2 = 437  # the same number on every architecture

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(directory: int, path: str, flags: int, resolve: int, mode: int = 0) -> int:
    """A new descriptor for `path` below `directory`; the kernel keeps to `resolve` even while somebody moves things.

    OSError: EXDEV when the path leads out, ENOSYS before Linux 5.6.
    """
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    return _checked(
        _libc.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(directory),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        ),
        path,
    )


def die_with_parent(signal_number: int) -> None:
    """The kernel sends the signal when the thread that started this process ends, also when it is killed."""
    parent = os.getppid()
    _checked(_libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), *([ctypes.c_ulong(0)] * 3)))
    if os.getppid() != parent:
        raise SystemExit("the process that started the sandboxes ended before they could start")


def own_mounts() -> None:
    """From here on what this process mounts is seen by it and its children alone. OSError without CAP_SYS_ADMIN."""
    _checked(_libc.unshare(ctypes.c_int(CLONE_NEWNS)))
    _mount(None, Path("/"), None, MS_REC | MS_SLAVE, None)


def mount_memory(target: Path, options: str) -> None:
    """An empty file system in memory."""
    _mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options)


def mount_again(source: Path, target: Path) -> None:
    """Shows `source` at `target` as well."""
    _mount(str(source), target, None, MS_BIND, None)


def unmount(target: Path) -> None:
    """Detaches whatever is mounted there, with what is mounted below it."""
    _checked(_libc.umount2(ctypes.c_char_p(os.fsencode(target)), ctypes.c_int(2)), str(target))


def _mount(source: str | None, target: Path, kind: str | None, flags: int, options: str | None) -> None:
    words = [None if each is None else ctypes.c_char_p(os.fsencode(each)) for each in (source, target, kind, options)]
    _checked(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), str(target))


def _checked(result: int, path: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result
