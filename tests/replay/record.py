"""Records histories for the replay gate: `python -m tests.replay.record`.

Without a flag only cases that have no history yet are recorded. After a change to a workflow that has been released, the old
histories stay (executions like them may be open) and `--next-generation` records how the cases run now, beside them.
`--again` records anew in their place: only for what no release has run. Each also writes the baseline of the fingerprints.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from tests.replay import fingerprint, histories
from tests.workflows.scenario import Scenario, play
from tests.workflows.temporal_server import start_environment


async def record(*, again: bool, next_generation: bool) -> None:
    environment = await start_environment()
    try:
        for scenario in histories.SCENARIOS:
            before = histories.files_of(scenario)
            if before and not (again or next_generation):
                continue
            if again:
                for path in before:
                    path.unlink()
            generation = 1 if again else _last_generation(before) + 1
            finished = await play(environment, scenario)
            for number, history in enumerate(finished.histories, start=1):
                path = _path(scenario, generation, number if len(finished.histories) > 1 else None)
                histories.write(path, history)
                print(f"{histories.name_of(path)}: {len(history.events)} events", flush=True)
    finally:
        await environment.shutdown()


def _last_generation(paths: list[Path]) -> int:
    """0 for a case that was never recorded; a file without a generation in its name is of the first."""
    numbers = [
        int(part[1:]) for path in paths for part in path.name.split(".") if part[:1] == "g" and part[1:].isdigit()
    ]
    return max(numbers, default=1 if paths else 0)


def _path(scenario: Scenario, generation: int, execution: int | None) -> Path:
    parts = [scenario.case]
    if generation > 1:
        parts.append(f"g{generation}")
    if execution is not None:
        parts.append(f"execution{execution}")
    return histories.FOLDER / scenario.contract.name / (".".join(parts) + ".json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="record every case anew, in place of what is there")
    parser.add_argument("--next-generation", action="store_true", help="record every case beside what is there")
    options = parser.parse_args()
    asyncio.run(record(again=options.again, next_generation=options.next_generation))
    fingerprint.write_baseline()
    print(f"{fingerprint.BASELINE.name}: {len(fingerprint.current())} fingerprints")


if __name__ == "__main__":
    main()
