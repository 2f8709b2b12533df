"""What code in a sandbox must not see or reach: the network, the machine's files and environment, other sandboxes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from e2b import AsyncSandbox

from tests.integration.sandboxes.endpoint import HOME, failed, local_only
from tests.integration.sandboxes.server_process import SandboxServer

pytestmark = local_only
CONNECT = "import socket,sys; s=socket.socket(); s.settimeout(3); s.connect((sys.argv[1], int(sys.argv[2])))"


@pytest.fixture
def listener() -> Iterator[int]:
    """A port of the machine that answers to the machine itself."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        yield port


async def test_two_sandboxes_cannot_see_each_other(sandbox: AsyncSandbox, other_sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run(
        "echo mine > secret; echo mine > /tmp/secret; (python3 -m http.server 8124 >/dev/null 2>&1 &)"
    )
    await sandbox.commands.run("sleep 777", background=True)
    seen = await other_sandbox.commands.run("ls -A / /home /home/user /tmp; ps aux; hostname")
    assert "secret" not in seen.stdout
    assert "sleep 777" not in seen.stdout
    assert sandbox.sandbox_id not in seen.stdout
    assert other_sandbox.sandbox_id in seen.stdout
    refused = await failed(other_sandbox, f'python3 -c "{CONNECT}" 127.0.0.1 8124')
    assert "Connection refused" in refused.stderr


async def test_no_network_is_reached(sandbox: AsyncSandbox) -> None:
    for address in ("169.254.169.254", "1.1.1.1", "10.0.0.1"):
        assert "Network is unreachable" in (await failed(sandbox, f'python3 -c "{CONNECT}" {address} 80')).stderr


async def test_the_machines_own_ports_are_not_reached(
    sandbox: AsyncSandbox, server: SandboxServer, listener: int
) -> None:
    for port in (listener, urlsplit(server.url).port):
        assert "Connection refused" in (await failed(sandbox, f'python3 -c "{CONNECT}" 127.0.0.1 {port}')).stderr
    interfaces = await sandbox.commands.run("python3 -c 'import socket; print(socket.if_nameindex())'")
    assert interfaces.stdout.strip() == "[(1, 'lo')]"


async def test_sockets_that_no_network_namespace_holds_are_refused(sandbox: AsyncSandbox) -> None:
    for family in ("AF_VSOCK", "AF_PACKET", "AF_ALG"):
        code = f"import socket; socket.socket(socket.{family}, socket.SOCK_RAW if {family!r} == 'AF_PACKET' else 1)"
        refused = await failed(sandbox, f'python3 -c "{code}"')
        assert "Address family not supported" in refused.stderr


async def test_files_of_the_machine_are_not_there(sandbox: AsyncSandbox, server: SandboxServer, tmp_path: Path) -> None:
    (tmp_path / "host-file").write_text("of the host")
    for path in ("/etc/shadow", "/root", "/etc/ssh", "/var/log", str(server.data_dir), str(tmp_path), str(Path.home())):
        assert "No such file or directory" in (await failed(sandbox, f"ls {path}")).stderr
    assert (await sandbox.commands.run("ls /home")).stdout == "user\n"
    assert (await sandbox.commands.run("cat /etc/passwd | wc -l")).stdout.strip() == "3"


async def test_processes_of_the_machine_are_not_there(sandbox: AsyncSandbox, server: SandboxServer) -> None:
    pids = (await sandbox.commands.run("ls /proc | grep '^[0-9]' | wc -l")).stdout
    assert int(pids) < 10
    first = await sandbox.commands.run("tr '\\0' '\\n' < /proc/1/environ; tr '\\0' ' ' < /proc/1/cmdline")
    assert "PERDURE_TEST_SECRET" not in first.stdout
    assert str(server.data_dir) not in first.stdout
    assert "No such file" in (await failed(sandbox, f"cat /proc/{os.getpid()}/environ")).stderr


async def test_the_environment_of_the_machine_is_not_there(sandbox: AsyncSandbox) -> None:
    names = (await sandbox.commands.run("env | cut -d= -f1 | sort | xargs")).stdout.split()
    known = {"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"}
    assert {name for name in names if not name.startswith("E2B_")} <= known


async def test_a_command_holds_no_descriptor_but_its_own_three(sandbox: AsyncSandbox) -> None:
    held = "import os; print(sorted(os.listdir('/proc/self/fd')), sorted(os.listdir('/proc/1/fd')))"
    own, of_first = (await sandbox.commands.run(f'python3 -c "{held}"')).stdout.strip().split("] [")
    assert own == "['0', '1', '2', '3'"
    assert of_first.count(",") == 3  # its three, and the way to the server


async def test_only_the_workspace_and_tmp_can_be_written(sandbox: AsyncSandbox) -> None:
    for path in ("/x", "/usr/x", "/etc/x", "/home/x", "/dev/x", "/opt/python/x", "/proc/sys/kernel/hostname"):
        refused = await failed(sandbox, f"echo 1 > {path}")
        assert any(words in refused.stderr for words in ("Read-only file system", "Permission denied")), refused.stderr
    await sandbox.commands.run(f"echo 1 > {HOME}/x; echo 1 > /tmp/x; echo 1 > /dev/shm/x")
