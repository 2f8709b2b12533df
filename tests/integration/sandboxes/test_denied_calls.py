"""The ways out of a namespace that have worked before, each tried from inside."""

from __future__ import annotations

import json
import os

import pytest
from e2b import AsyncSandbox

from tests.integration.sandboxes.endpoint import failed, local_only

pytestmark = local_only

CALL = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return os.strerror(ctypes.get_errno()) if libc.syscall(number, *words) < 0 else "worked"
"""
NUMBERS = {
    "mount": "165, b'none', b'/tmp', b'tmpfs', 0, None",
    "pivot_root": "155, b'/tmp', b'/tmp'",
    "move_mount": "429, -100, b'/tmp', -100, b'/tmp', 0",
    "open_tree": "428, -100, b'/', 1",
    "setns": "308, os.open('/proc/1/ns/net', 0), 0",
    "unshare of users": "272, 0x10000000",
    "unshare of mounts": "272, 0x00020000",
    "ptrace": "101, 16, 1, 0, 0",
    "process_vm_writev": "311, 1, None, 0, None, 0, 0",
    "keyctl": "250, 0, -3, 0",
    "add_key": "248, b'user', b'name', b'secret', 6, -3",
    "bpf": "321, 0, None, 0",
    "perf_event_open": "298, None, 0, -1, -1, 0",
    "userfaultfd": "323, 0",
    "io_uring_setup": "425, 8, None",
    "init_module": "175, None, 0, b''",
    "kexec_load": "246, 0, 0, None, 0",
    "open_by_handle_at": "304, -100, None, 0",
    "reboot": "169, 0xfee1dead, 672274793, 0x4321fedc, None",
    "settimeofday": "164, None, None",
    "swapon": "167, b'/tmp/x', 0",
}


async def outcomes(sandbox: AsyncSandbox, calls: dict[str, str]) -> dict[str, str]:
    """What the kernel says to each, made from inside."""
    if (await sandbox.commands.run("uname -m")).stdout.strip() != "x86_64":
        pytest.skip("these are the numbers of x86-64")
    told = ", ".join(f"{what!r}: call({call})" for what, call in calls.items())
    await sandbox.files.write("call.py", f"{CALL}\nprint(json.dumps({{{told}}}))\n")
    found: dict[str, str] = json.loads((await sandbox.commands.run("python3 call.py")).stdout)
    return found


async def test_each_call_that_has_led_out_before_is_refused(sandbox: AsyncSandbox) -> None:
    assert await outcomes(sandbox, NUMBERS) == dict.fromkeys(NUMBERS, "Operation not permitted")


async def test_a_new_process_cannot_have_namespaces_of_its_own(sandbox: AsyncSandbox) -> None:
    for options in ("-U", "-Ur", "-m", "-n", "-p --fork"):
        assert "Operation not permitted" in (await failed(sandbox, f"unshare {options} true")).stderr
    assert await outcomes(sandbox, {"clone": "56, 0x10000011, 0, 0, 0, 0", "clone3": "435, 0, 0"}) == {
        "clone": "Operation not permitted",
        "clone3": "Function not implemented",
    }


async def test_no_privilege_is_had_or_gained(sandbox: AsyncSandbox) -> None:
    status = (await sandbox.commands.run("cat /proc/self/status")).stdout
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(facts[kind], 16) == 0
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert facts["Uid"].split() == ["1000"] * 4
    become = "python3 -c 'import os; os.setuid(0)'"
    assert "Invalid argument" in (await failed(sandbox, become)).stderr  # there is no such user


async def test_a_setuid_program_gives_nothing(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("cp /usr/bin/id own; chmod u+s own")
    assert "euid" not in (await sandbox.commands.run("./own")).stdout
    assert "euid" not in (await sandbox.commands.run("cp own /tmp; chmod u+s /tmp/own; /tmp/own")).stdout
    refused = await failed(sandbox, "su -c true </dev/null || mount -t tmpfs none /tmp")
    assert refused.exit_code != 0


async def test_a_sandbox_survives_the_killing_of_its_first_process_and_of_everything_at_once(
    sandbox: AsyncSandbox,
) -> None:
    for target in ("1", "-1", "0"):
        await failed(sandbox, f"python3 -c 'import os; os.kill({target}, 9)'; test {target} != 1")
        assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"


async def test_only_the_sandboxs_own_commands_can_be_signalled(sandbox: AsyncSandbox) -> None:
    for pid in (0, 1, 2, os.getpid(), 4_000_000_000):
        assert not await sandbox.commands.kill(pid)
    with pytest.raises(Exception, match=r"-1|negative|range"):
        await sandbox.commands.kill(-1)


async def test_a_command_of_another_sandbox_cannot_be_signalled(
    sandbox: AsyncSandbox, other_sandbox: AsyncSandbox
) -> None:
    for _ in range(5):  # so that the numbers differ
        await sandbox.commands.run("true")
    command = await sandbox.commands.run("sleep 30", background=True)
    assert not await other_sandbox.commands.kill(command.pid)
    assert await sandbox.commands.kill(command.pid)
