"""One real `perdure up` for all acceptance tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running.processes import PerdureProcess


@pytest.fixture(scope="session")
def running_perdure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PerdureProcess]:
    perdure = PerdureProcess(Path(tmp_path_factory.mktemp("acceptance")) / "data")
    try:
        yield perdure.start()
    finally:
        perdure.stop()
