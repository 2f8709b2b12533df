"""The built-in model's file, made once for all tests of a run and kept for the next."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

FOLDER = Path(gettempdir()) / "perdure-test-models"
