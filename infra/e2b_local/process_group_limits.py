"""The port through which a sandbox's processes are bounded and counted together, however this kernel lets us do it."""

from __future__ import annotations

import resource
from typing import Protocol

from schemas.sandboxes import SandboxLimits

MEBIBYTE = 1 << 20


class ProcessGroup(Protocol):
    """All processes of one sandbox. Methods raise OSError only from `admit`; what has ended counts nothing."""

    def admit(self, pid: int) -> None:
        """Binds this process and all that it will start. It has started nothing yet."""
        ...

    def pids(self) -> list[int]: ...

    def memory_bytes(self) -> int | None:
        """What they use now, or None where the kernel itself ends who takes too much."""
        ...

    def tasks(self) -> int:
        """Processes and threads now."""
        ...

    def memory_kills(self) -> int:
        """How often the kernel has ended one of them for memory."""
        ...

    def refused_tasks(self) -> int:
        """How often one of them was refused another process, as far as the kernel tells."""
        ...

    def remove(self) -> None:
        """After all have ended."""
        ...


class ProcessGroups(Protocol):
    """Makes a group for each sandbox. `kind` is for people."""

    kind: str
    memory_is_counted: bool

    def create(self, name: str, limits: SandboxLimits) -> ProcessGroup: ...

    def sweep(self) -> None:
        """Removes what is left of groups that nobody uses any more."""
        ...

    def limits_of_each_process(self, limits: SandboxLimits) -> dict[int, int]:
        """What must hold for every single one, by resource.RLIMIT_…"""
        ...


def limits_of_each_process(limits: SandboxLimits) -> dict[int, int]:
    """resource.RLIMIT_… -> most. Set before anything of the caller's runs; nothing in the sandbox can raise them again."""
    return {
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.workspace_mb * MEBIBYTE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 64 << 10,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: limits.processes * 4,
    }
