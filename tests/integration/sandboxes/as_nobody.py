"""Runs a Python module as a user without any privilege: `python -m tests.integration.sandboxes.as_nobody MODULE ARGUMENT…`.

Started by root, whose interpreter may lie where nobody else may pass: then that place is shown to this process alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from infra.e2b_local import kernel_calls

NOBODY = 65_534
PASSABLE = 0o005


def show_interpreter() -> None:
    """Covers the first folder on the way that others may not enter, and shows the interpreter where it was."""
    home = Path(sys.base_prefix).resolve()
    locked = next((each for each in reversed(home.parents) if each.stat().st_mode & PASSABLE != PASSABLE), None)
    if locked is None:
        return
    kernel_calls.own_mounts()
    held = os.open(home, os.O_PATH)
    kernel_calls.mount_memory(locked, "mode=755")
    home.mkdir(parents=True)
    kernel_calls.mount_again(Path(f"/proc/self/fd/{held}"), home)


if __name__ == "__main__":
    show_interpreter()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])
