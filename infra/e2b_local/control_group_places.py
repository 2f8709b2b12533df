"""Where this process may make control groups, if anywhere."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.e2b_local.control_groups import ControlGroups
from infra.e2b_local.process_group_limits import ProcessGroups
from schemas.sandboxes import SandboxLimits

_VERSION_2 = ""
"""How /proc/self/cgroup names the one hierarchy of version 2, where version 1 names controllers."""


@dataclass(frozen=True)
class _Hierarchy:
    """A mounted tree of groups: `root` is the group that is seen at `point`."""

    root: str
    point: Path
    controllers: tuple[str, ...]

    def folder(self, group: str) -> Path:
        inside = group.removeprefix(self.root) if self.root != "/" else group
        return self.point / inside.lstrip("/")


def find_control_groups(data_dir: Path) -> ProcessGroups | None:
    """The first place where groups can be made, bounded and entered; None when there is none.

    They carry a name made from `data_dir`, of which there is one server: so it may take away what it finds there.
    """
    base = f"perdure-sandboxes-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]}"
    for groups in _candidates(base):
        with contextlib.suppress(OSError):
            groups.sweep()
            _try_out(groups)
            return groups
    return None


def _try_out(groups: ControlGroups) -> None:
    group = groups.create(f"trial-{os.getpid()}", SandboxLimits())
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        group.admit(child.pid)
    finally:
        child.communicate()
        group.remove()


def _candidates(base: str) -> Iterator[ControlGroups]:
    """Version 1 below this process's own groups; version 2 at the nearest group above that hands its controllers down."""
    own, hierarchies = _own_groups(), list(_hierarchies())
    places = {name: each.folder(own[name]) for each in hierarchies for name in each.controllers if name in own}
    if "memory" in places and "pids" in places:
        yield ControlGroups(1, places["memory"], places["pids"], places.get("cpu"), base)
    top = next((each.point for each in hierarchies if _VERSION_2 in each.controllers), None)
    mine = places.get(_VERSION_2)
    if top is None or mine is None:
        return
    for folder in (mine, *(above for above in mine.parents if above.is_relative_to(top))):
        handed_down = _words(folder / "cgroup.subtree_control")
        if {"memory", "pids"} <= handed_down:
            yield ControlGroups(2, folder, folder, folder if "cpu" in handed_down else None, base)


def _own_groups() -> dict[str, str]:
    """Controller -> group of this process."""
    groups: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, group = line.split(":", 2)
        groups |= dict.fromkeys(names.split(","), group)
    return groups


def _hierarchies() -> Iterator[_Hierarchy]:
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        root, point = left.split(" ")[3:5]
        if kind == "cgroup2":
            yield _Hierarchy(root, Path(point), (_VERSION_2,))
        elif kind == "cgroup":
            yield _Hierarchy(root, Path(point), tuple(options.split(",")))


def _words(file: Path) -> set[str]:
    with contextlib.suppress(OSError):
        return set(file.read_text(encoding="ascii").split())
    return set()
