"""System calls that code in a sandbox has no business making, with their numbers on the machines we know.

They are those by which past escapes began: changing mounts and namespaces, reaching into other processes, keys, kernel
programs and modules, clocks and power. Everything a compiler, an interpreter or a server needs is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """Numbers of one architecture. `audit` is the kernel's name for it in a filter."""

    audit: int
    clone: int
    clone3: int
    socket: int
    ioctl: int
    denied: tuple[int, ...]
    uncounted: tuple[int, ...]
    has_x32: bool = False


# name: (x86_64, aarch64); None where the architecture never had the call
_DENIED: dict[str, tuple[int, int | None]] = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "open_tree_attr": (467, 467),
    "unshare": (272, 97), "setns": (308, 268),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "query_module": (178, None),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42), "migrate_pages": (256, 238), "move_pages": (279, 239), "mbind": (237, 235),
    "set_mempolicy": (238, 237), "memfd_secret": (447, 447),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "_sysctl": (156, None), "sysfs": (139, None), "ustat": (136, None),
}  # fmt: skip

_UNCOUNTED: dict[str, tuple[int, int]] = {
    "memfd_create": (319, 279), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
}  # fmt: skip
"""Memory that belongs to no process: without a control group nobody would count it."""

MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        clone=56,
        clone3=435,
        socket=41,
        ioctl=16,
        denied=tuple(x86 for x86, _ in _DENIED.values()),
        uncounted=tuple(x86 for x86, _ in _UNCOUNTED.values()),
        has_x32=True,
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        clone=220,
        clone3=435,
        socket=198,
        ioctl=29,
        denied=tuple(arm for _, arm in _DENIED.values() if arm is not None),
        uncounted=tuple(arm for _, arm in _UNCOUNTED.values()),
    ),
}
