"""Where the running Perdure is and which key opens it: PERDURE_URL and PERDURE_API_KEY, or a data directory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.cli.failures import BadUsage, Unreachable

DEFAULT_DATA_DIR = Path(".perdure")


@dataclass(frozen=True)
class Connection:
    """`start_hint` says how to bring this server up, when it is on this machine."""

    url: str
    key: str = field(repr=False)
    start_hint: str


def find_connection(data_dir: Path | None, environ: Mapping[str, str]) -> Connection:
    """A named data directory wins over PERDURE_URL, which wins over `.perdure` here.

    PERDURE_API_KEY is used with the server it was set for: with PERDURE_URL, or alone with any data directory. The
    directory's admin key never goes to another server.
    """
    url, key = environ.get("PERDURE_URL", "").strip(), environ.get("PERDURE_API_KEY", "").strip()
    if url and data_dir is None:
        if not key:
            raise BadUsage(
                "PERDURE_URL is set and PERDURE_API_KEY is not.", "Set PERDURE_API_KEY to a key of that server."
            )
        return Connection(_checked(url), key, "Check PERDURE_URL and that the server there is up.")
    return _of_data_dir(data_dir or DEFAULT_DATA_DIR, None if url else key or None)


def _of_data_dir(data_dir: Path, key: str | None) -> Connection:
    named = "" if data_dir == DEFAULT_DATA_DIR else f" --data-dir {data_dir}"
    start_hint = f"Start it with `perdure up{named}`, or set PERDURE_URL and PERDURE_API_KEY."
    try:
        up = json.loads((data_dir / "run" / "up.json").read_text(encoding="utf-8"))
        url, key_file, pid = str(up["api_url"]), Path(up["admin_key_file"]), int(up["pid"])
    except OSError:
        raise Unreachable(f"No Perdure runs on {data_dir}.", start_hint) from None
    except (ValueError, KeyError, TypeError):
        raise Unreachable(f"{data_dir}/run/up.json cannot be read.", start_hint) from None
    if not _is_alive(pid):  # another program may have its port by now, and must not be shown the key
        raise Unreachable(f"The Perdure of {data_dir} has stopped (process {pid} is gone).", start_hint)
    return Connection(_checked(url), key or _read_key(key_file), start_hint)


def _read_key(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BadUsage(
            f"The admin key file {path} cannot be read: {error.strerror}.", "Set PERDURE_API_KEY, or run as its owner."
        ) from None


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise BadUsage(f"PERDURE_URL is {url!r}.", "Give it as http://host:port or https://host.")
    return url.rstrip("/").removesuffix("/v1")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
