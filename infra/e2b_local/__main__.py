"""`python -m infra.e2b_local --data-dir DIR --port P`: one JSON line when ready, then serves until it is told to stop.

    {"url": "http://127.0.0.1:P", "api_key_file": "…", "bounded_by": "…", "refusal": null}

`refusal` is the sentence with which it refuses to create sandboxes where the kernel cannot keep them apart; `--check` prints
only that, and exits with 69. It ends with the process that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from pathlib import Path

from pydantic import ValidationError

from infra.e2b_local import serving
from infra.e2b_local.data_folder import DataFolder, DataFolderUnusable
from infra.e2b_local.host_places import leave_places
from infra.e2b_local.kernel_calls import die_with_parent
from infra.e2b_local.trial import why_not
from schemas.sandboxes import SandboxLimits

UNAVAILABLE, BAD_CONFIGURATION = 69, 78  # EX_UNAVAILABLE, EX_CONFIG of sysexits.h


def main() -> int:
    arguments = _arguments()
    try:
        limits = SandboxLimits.model_validate_json(arguments.limits)
    except ValidationError as error:
        print(f"--limits: {error}", file=sys.stderr)
        return BAD_CONFIGURATION
    if arguments.check:
        return _check(limits)
    if arguments.data_dir is None:
        print("--data-dir is needed", file=sys.stderr)
        return BAD_CONFIGURATION
    die_with_parent(signal.SIGTERM)
    try:
        data = DataFolder(arguments.data_dir)
        host = serving.prepare(data, limits)
        asyncio.run(serving.serve(data, host, arguments.port, arguments.api_key_file))
    except (DataFolderUnusable, OSError) as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.e2b_local", description="Serves sandboxes on this machine.")
    parser.add_argument("--data-dir", type=Path, help="where sandboxes are kept")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--api-key-file", type=Path, help="holds the key callers must send; made when missing")
    parser.add_argument("--limits", default="{}", help="JSON object of limits that differ from the defaults")
    parser.add_argument("--check", action="store_true", help="only find out whether sandboxes can run here")
    return parser.parse_args()


def _check(limits: SandboxLimits) -> int:
    with tempfile.TemporaryDirectory(prefix="perdure-check-") as folder:
        data = DataFolder(Path(folder))
        host = serving.prepare(data, limits)
        refusal = asyncio.run(why_not(data, host))
        host.groups.sweep()
        leave_places(data)
    print(refusal or f"Sandboxes can run on this machine, bounded by {host.groups.kind}.")
    return UNAVAILABLE if refusal else 0


if __name__ == "__main__":
    sys.exit(main())
