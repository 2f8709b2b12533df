"""No workflow changes what it commands without somebody having thought of the executions that are open."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.replay import fingerprint
from workflows import ingest_document

SOURCE = Path(ingest_document.__file__).read_text(encoding="utf-8")

WHAT_TO_DO = """
The commands of {name} changed. Executions of the released code may be open and will be replayed by the new code:
  1. If the old code has been released, keep its order behind `if workflow.patched(...)`, with the id in workflows/patches.py,
     and record how the cases run now beside the old histories: python -m tests.replay.record --next-generation
  2. If no release has run it: python -m tests.replay.record --again
Both write the new baseline (tests/replay/fingerprints.json); commit it with the histories.
{difference}"""


def test_no_workflow_commands_anything_new_unnoticed() -> None:
    before, now = fingerprint.baseline(), fingerprint.current()
    for name in sorted({*before, *now}):
        was, is_now = before.get(name, []), now.get(name, [])
        difference = "\n".join(difflib.unified_diff(was, is_now, "baseline", "now", lineterm="", n=1))
        assert was == is_now, WHAT_TO_DO.format(name=name, difference=difference)


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        ('("embed", IngestActivities.embed)', '("embed", IngestActivities.chunk)'),
        ('if status in ("cancelled", "superseded") or end.state == "failed":', "while True:"),
        ("status = await self._clean_up(input, status)", "pass"),
        ("self._lifecycle.show(end.state)", "pass"),
        ("if result.status", 'if workflow.patched("x") and result.status'),
    ],
    ids=["another activity", "another construct around it", "a part left out", "a command left out", "a patch"],
)
def test_a_fingerprint_tells(was: str, is_now: str) -> None:
    assert was in SOURCE
    assert fingerprint.of_source(SOURCE.replace(was, is_now)) != fingerprint.of_source(SOURCE)


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        ('"leave no debris"', '"sweep up"'),
        ("end = RunEnd", "ended = RunEnd"),
        ("class IngestDocument(", "class Renamed("),
    ],
    ids=["a summary", "a variable", "a class"],
)
def test_a_fingerprint_leaves_alone_what_no_replay_looks_at(was: str, is_now: str) -> None:
    assert was in SOURCE
    assert fingerprint.of_source(SOURCE.replace(was, is_now)) == fingerprint.of_source(SOURCE)
