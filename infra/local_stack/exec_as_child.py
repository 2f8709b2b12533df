"""Becomes an engine that dies with its parent: `python -I -S exec_as_child.py PARENT DEATH_SIGNAL IDENTITY ARGV…`.

A program of its own because the calls below must run between fork and exec, where a process with threads may not run
Python. Only the standard library, no package of ours: it also runs where those cannot be read.

IDENTITY is `self`, `namespace:UID` (a user namespace in which this user is called UID) or `account:UID:GID`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def prctl(option: int, value: int) -> None:
    check(libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def enter_namespace(uid: int) -> None:
    """From here on this user is `uid` to itself and has no capabilities after exec; outside it is who it was."""
    outside_uid, outside_gid = os.geteuid(), os.getegid()
    check(libc.unshare(CLONE_NEWUSER))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {outside_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{uid} {outside_gid} 1")


def become_account(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def take_identity(identity: str) -> None:
    kind, *numbers = identity.split(":")
    if kind == "namespace":
        enter_namespace(int(numbers[0]))
    elif kind == "account":
        become_account(int(numbers[0]), int(numbers[1]))
    if kind != "self":
        prctl(PR_SET_NO_NEW_PRIVS, 1)


def main() -> None:
    parent, death_signal, identity, *argv = sys.argv[1:]
    os.setsid()  # Ctrl-C in the terminal is for the supervisor, which then ends its children in order
    take_identity(identity)
    prctl(PR_SET_PDEATHSIG, int(death_signal))  # after the identity: a change of credentials clears it
    if os.getppid() != int(parent):
        sys.exit("the supervisor ended before its child could start")
    os.execv(argv[0], argv)  # noqa: S606 - to become the engine is the purpose


if __name__ == "__main__":
    main()
