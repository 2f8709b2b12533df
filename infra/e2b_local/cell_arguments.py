"""What bubblewrap is told: which namespaces, what is seen in them, what is writable, what the first process is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from infra.e2b_local.data_folder import INIT_FILE, SYSTEM_FOLDERS, USER_ID, shown_of_etc
from infra.e2b_local.host import Host
from infra.e2b_local.host_places import PYTHON_INSIDE, Places
from infra.e2b_local.workspace_paths import HOME
from schemas.sandboxes import SandboxLimits

_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_INIT_FOLDER = "/opt/sandbox"
_HIDDEN = ("/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/sched_debug")
SEARCH_PATH = f"/usr/local/bin:/usr/bin:/bin:{PYTHON_INSIDE}/bin"


def cell_arguments(host: Host, sandbox_id: str, control: int, seccomp: int) -> list[str]:
    """`control` and `seccomp` are descriptors that bubblewrap inherits."""
    places, limits = host.places, host.limits
    bounds = host.groups.limits_of_each_process(limits)
    return [
        str(places.bubblewrap),
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", sandbox_id),
        *("--cap-drop", "ALL", "--seccomp", str(seccomp)),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"),
        *_system(places),
        *("--dev", "/dev", *_memory_folder("/dev/shm", limits), "--remount-ro", "/dev"),  # noqa: S108 - the sandbox's own
        *("--proc", "/proc", *_hidden()),
        *_memory_folder("/tmp", limits),  # noqa: S108
        *("--perms", "0755", "--dir", str(Path(HOME).parent)),
        *("--bind", str(places.home(sandbox_id)), HOME),
        *("--remount-ro", "/", "--chdir", HOME),
        *("--setenv", "LD_LIBRARY_PATH", str(places.python_inside / "lib")),
        "--",
        *(str(places.python_inside / "bin" / _PYTHON), "-I", "-S", "-B", f"{_INIT_FOLDER}/{INIT_FILE}"),
        *(str(control), str(limits.cpu_s), *(f"{what}={most}" for what, most in bounds.items())),
    ]


def base_environment(sandbox_id: str) -> dict[str, str]:
    """What a command finds in its environment before anything its caller adds. Nothing of ours."""
    return {
        "PATH": SEARCH_PATH,
        "HOME": HOME,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "E2B_SANDBOX": "true",
        "E2B_SANDBOX_ID": sandbox_id,
    }


def _system(places: Places) -> Iterator[str]:
    for folder in map(Path, SYSTEM_FOLDERS):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    yield from ("--ro-bind", str(places.system / "etc"), "/etc")
    for path in filter(lambda each: (places.system / "etc" / each.name).exists(), shown_of_etc()):
        yield from ("--ro-bind", str(path), str(path))
    yield from ("--perms", "0755", "--dir", "/opt")
    if places.python_inside == PYTHON_INSIDE:
        yield from ("--perms", "0755", "--dir", str(PYTHON_INSIDE))
        for part in ("bin", "lib", "lib64"):
            if (places.python / part).is_dir():
                yield from ("--ro-bind", str(places.python / part), str(PYTHON_INSIDE / part))
    yield from ("--ro-bind", str(places.system / INIT_FILE), f"{_INIT_FOLDER}/{INIT_FILE}")


def _hidden() -> Iterator[str]:
    """Lists of the whole machine that a namespace does not divide."""
    for path in _HIDDEN:
        if Path(path).exists():
            yield from ("--ro-bind", "/dev/null", path)


def _memory_folder(path: str, limits: SandboxLimits) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(limits.tmp_mb << 20), "--tmpfs", path)
