"""The filter of system calls, run as the kernel runs it, for every processor it knows."""

from __future__ import annotations

import errno
import struct

import pytest

from infra.e2b_local.denied_calls import MACHINES, Machine
from infra.e2b_local.seccomp_filter import build_filter

ALLOWED, KILLED = "allowed", "killed"


def decide(program: bytes, architecture: int, number: int, *arguments: int) -> str | int:
    """Classic BPF over `struct seccomp_data`; a number is that of the error the call fails with."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, architecture, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, value)[0]
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return ALLOWED if value == 0x7FFF_0000 else KILLED if value == 0x8000_0000 else int(value) & 0xFFFF
            case _:
                raise AssertionError(f"the kernel has no step {code:#x}")


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("counted", [True, False])
def test_what_is_denied_fails_and_everything_else_passes(machine: Machine, counted: bool) -> None:
    program = build_filter(machine, memory_is_counted=counted)
    guarded = {machine.clone, machine.clone3, machine.socket, machine.ioctl, *machine.denied, *machine.uncounted}
    for number in range(520):
        outcome = decide(program, machine.audit, number)
        if number in machine.denied:
            assert outcome == errno.EPERM
        elif number not in guarded:
            assert outcome == ALLOWED
    assert decide(program, machine.audit, machine.clone3) == errno.ENOSYS
    for number in machine.uncounted:
        assert decide(program, machine.audit, number) == (ALLOWED if counted else errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_calls_that_depend_on_their_arguments_are_told_apart(machine: Machine) -> None:
    program = build_filter(machine, memory_is_counted=True)
    for flag in (1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30):
        assert decide(program, machine.audit, machine.clone, flag | 17) == errno.EPERM
    assert decide(program, machine.audit, machine.clone, 0x003D_0F00) == ALLOWED  # as threads are made
    for family in (1, 2, 10, 16):
        assert decide(program, machine.audit, machine.socket, family) == ALLOWED
    for family in (0, 17, 38, 40, 44):
        assert decide(program, machine.audit, machine.socket, family) == errno.EAFNOSUPPORT
    assert decide(program, machine.audit, machine.ioctl, 0, 0x5412) == errno.EPERM
    assert decide(program, machine.audit, machine.ioctl, 0, 0x541C) == errno.EPERM
    assert decide(program, machine.audit, machine.ioctl, 0, 0x5413) == ALLOWED


def test_another_architectures_calls_end_the_process_and_x32_has_none() -> None:
    x86, arm = MACHINES["x86_64"], MACHINES["aarch64"]
    assert decide(build_filter(x86, memory_is_counted=True), arm.audit, 0) == KILLED
    assert decide(build_filter(x86, memory_is_counted=True), x86.audit, 0x4000_0000 | 1) == errno.ENOSYS
