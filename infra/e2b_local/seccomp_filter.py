"""The filter of system calls that every process of a sandbox carries: classic BPF, put together by hand.

The kernel runs it on `struct seccomp_data` (number at 0, architecture at 4, arguments from 16, low half first). A denied call
fails with EPERM as if the caller lacked a privilege. Calls whose arguments a filter cannot read (clone3) or which programs
only try (memory nobody counts) fail with ENOSYS, so that callers fall back to older ones.
"""

from __future__ import annotations

import errno
import platform
import struct

from infra.e2b_local.denied_calls import MACHINES, Machine

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _KILL, _FAIL = 0x7FFF_0000, 0x8000_0000, 0x0005_0000

_NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

_SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. Others either reach the machine past any network namespace (AF_VSOCK) or are
rarely used kernel code."""

_TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""


class UnknownMachine(Exception):
    """No filter is known for this processor, so nothing may run on it."""


def filter_of_this_machine(*, memory_is_counted: bool) -> bytes:
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise UnknownMachine(f"sandboxes know no system call filter for {platform.machine()} processors")
    return build_filter(machine, memory_is_counted=memory_is_counted)


def build_filter(machine: Machine, *, memory_is_counted: bool) -> bytes:
    """The program as an array of `struct sock_filter`."""
    steps = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, machine.audit, 1, 0), _step(_RETURN, _KILL)]
    steps += [_step(_LOAD, _NUMBER)]
    if machine.has_x32:
        steps += [_step(_AT_LEAST, 0x4000_0000, 0, 1), _fail(errno.ENOSYS)]
    for number in machine.denied:
        steps += [_step(_EQUAL, number, 0, 1), _fail(errno.EPERM)]
    for number in (machine.clone3, *(() if memory_is_counted else machine.uncounted)):
        steps += [_step(_EQUAL, number, 0, 1), _fail(errno.ENOSYS)]
    steps += _guarded(
        machine.clone, [_step(_LOAD, _FIRST_ARGUMENT), _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _fail(errno.EPERM)]
    )
    steps += _guarded(machine.socket, _only(_FIRST_ARGUMENT, _SOCKET_FAMILIES, errno.EAFNOSUPPORT))
    steps += _guarded(machine.ioctl, _none(_SECOND_ARGUMENT, _TERMINAL_INJECTION, errno.EPERM))
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _guarded(number: int, steps: list[bytes]) -> list[bytes]:
    """`steps` for one call only; they end by letting it pass."""
    body = [*steps, _step(_RETURN, _ALLOW)]
    return [_step(_EQUAL, number, 0, len(body)), *body]


def _only(argument: int, allowed: tuple[int, ...], number: int) -> list[bytes]:
    tests = [_step(_EQUAL, value, len(allowed) - place, 0) for place, value in enumerate(allowed)]
    return [_step(_LOAD, argument), *tests, _fail(number)]


def _none(argument: int, refused: tuple[int, ...], number: int) -> list[bytes]:
    tests = [step for value in refused for step in (_step(_EQUAL, value, 0, 1), _fail(number))]
    return [_step(_LOAD, argument), *tests]


def _fail(number: int) -> bytes:
    return _step(_RETURN, _FAIL | number)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
