"""How a path that a caller names becomes one inside the workspace, and what is wrong with it when it does not."""

from __future__ import annotations

import errno
from typing import Literal

HOME = "/home/user"
"""Where a sandbox sees its workspace."""

Fault = Literal["missing", "exists", "refused", "full"]


class FileFault(Exception):
    """A file operation that was not done. `kind` decides the protocol's code; the text is one sentence for a person."""

    def __init__(self, kind: Fault, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def name_in_workspace(path: str) -> str:
    """The name below the workspace, "" for the workspace itself. Relative paths and `~` start there, as E2B's do.

    FileFault for what lies elsewhere, and for any `..`: what that means depends on links that may change meanwhile.
    """
    if "\0" in path:
        raise FileFault("refused", "a path cannot hold a null character")
    rest = path.removeprefix("~") if path == "~" or path.startswith("~/") else path
    if rest == path and path.startswith("/"):
        if path != HOME and not path.startswith(f"{HOME}/"):
            raise FileFault("refused", f"{path!r} is outside the workspace: only {HOME} can be reached here")
        rest = path.removeprefix(HOME)
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FileFault("refused", f"{path!r} is refused: a path here cannot go up with '..'")
    return "/".join(parts)


def fault_of(error: OSError, path: str) -> FileFault:
    """What the kernel's refusal means to a caller."""
    match error.errno:
        case errno.ENOENT:
            return FileFault("missing", f"{path!r} does not exist")
        case errno.EEXIST | errno.ENOTEMPTY:
            return FileFault("exists", f"{path!r} is there already")
        case errno.EXDEV:
            return FileFault("refused", f"{path!r} leads out of the workspace: a link in it points elsewhere")
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return FileFault("full", f"{path!r} could not be written: {error.strerror}")
    return FileFault("refused", f"{path!r}: {error.strerror}")
