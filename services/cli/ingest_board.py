"""How an ingest shows itself while it works: a moving board on a terminal, plain lines elsewhere, JSON for scripts."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from schemas.documents import DocumentView, Progress
from services.cli import output
from services.cli.collect_files import LocalFile
from services.cli.ingest_result import IngestResult

_BAR_NEEDS_COLUMNS = 60
_ROWS_KEPT_FREE = 5


class Board(Protocol):
    """Told of each document as it moves; used as a context around the whole work."""

    def __enter__(self) -> Board: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def sending(self, file: LocalFile) -> None: ...
    def working(self, file: LocalFile, view: DocumentView | None) -> None: ...
    def ended(self, file: LocalFile, result: IngestResult) -> None: ...


class LineBoard:
    """One line (or one JSON object) per document, when it has ended."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def __enter__(self) -> LineBoard:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def sending(self, file: LocalFile) -> None:
        """A line board speaks of ends only."""

    def working(self, file: LocalFile, view: DocumentView | None) -> None:
        """A line board speaks of ends only."""

    def ended(self, file: LocalFile, result: IngestResult) -> None:
        if self._as_json:
            output.print_json(result.model_dump(mode="json"))
        else:
            output.out().print(result_text(result))


class LiveBoard:
    """Ended documents scroll by above; below them, each document at work with its stage and real units."""

    def __init__(self, console: Console, total: int, lines: LineBoard | None) -> None:
        """`lines` takes the ends when stdout is not this console, as with `--json > file`."""
        self._lines = lines
        self._picture = _Picture(total)
        self._live = Live(self._picture, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveBoard:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def sending(self, file: LocalFile) -> None:
        self._picture.rows[file.external_id] = ("sending", Progress())

    def working(self, file: LocalFile, view: DocumentView | None) -> None:
        state = ("received", Progress()) if view is None else (view.stage or view.state, view.progress)
        self._picture.rows[file.external_id] = state

    def ended(self, file: LocalFile, result: IngestResult) -> None:
        self._picture.rows.pop(file.external_id, None)
        self._picture.done += 1
        self._picture.failed += not result.is_good
        if self._lines is not None:
            self._lines.ended(file, result)
        else:
            self._live.console.print(result_text(result))


class _Picture:
    """What the board draws: as many rows as the screen has, those furthest on first."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self.rows: dict[str, tuple[str, Progress]] = {}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        is_wide = options.max_width >= _BAR_NEEDS_COLUMNS
        table = Table.grid(
            Column(width=10), Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            *([Column(width=16)] if is_wide else []), Column(justify="right", no_wrap=True),
            padding=(0, 1), expand=True,
        )  # fmt: skip
        rows = [*self.rows.items()]  # a copy at once: uploads add to it from their threads
        rows.sort(key=lambda row: (-_STAGES.get(row[1][0], 0), row[0]))
        shown = rows[: max(1, console.height - _ROWS_KEPT_FREE)]
        for external_id, (stage, progress) in shown:
            bar = ProgressBar(total=progress.total, completed=progress.done, width=16) if progress.total else ""
            name = Text(output.one_line(external_id))
            table.add_row(Text(stage, style="cyan"), name, *([bar] if is_wide else []), _count(progress))
        yield table
        yield Text(self._summary(len(rows) - len(shown)), style="bold")

    def _summary(self, hidden: int) -> str:
        more = f" · {hidden} more at work" if hidden else ""
        failed = f" · {self.failed} not ready" if self.failed else ""
        return f"{self.done} of {self.total} done{failed}{more}"


_STAGES = {
    "sending": 1, "received": 2, "parsing": 3, "chunking": 4, "embedding": 5, "indexing": 6, "enriching": 7,
}  # fmt: skip


def board_for(as_json: bool, total: int) -> Board:
    lines = LineBoard(as_json)
    if not as_json and not output.is_plain(sys.stdout):
        return LiveBoard(output.out(), total, None)
    if not sys.stdout.isatty() and not output.is_plain(sys.stderr):
        return LiveBoard(output.err(), total, lines)
    return lines


def result_text(result: IngestResult) -> Text:
    style = output.STATE_STYLES.get(result.word, "")
    text = Text.assemble((f"{result.word:<10}", style), " ", output.one_line(result.external_id))
    if result.version is not None:
        text.append(f"  v{result.version}", style="dim")
    if result.error is not None:
        text.append(f"  {output.one_line(result.error.get('detail'))} ({output.one_line(result.error.get('code'))})")
    for warning in result.warnings:
        page = f", page {warning['page']}" if warning.get("page") else ""
        text.append(
            f"\n{'':<10}  warning: {output.one_line(warning['detail'])} ({warning['code']}{page})", style="yellow"
        )
    return text


def _count(progress: Progress) -> Text:
    return Text(f"{progress.done}/{progress.total} {progress.unit}".strip() if progress.total else "", style="dim")
