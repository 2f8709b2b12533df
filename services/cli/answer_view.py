"""How an answer is shown: while it is written, and when it is done."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from schemas.answers import AnswerView, Citation
from services.cli import output
from services.cli.answer_draft import AnswerDraft

_ROWS_KEPT_FREE = 6


class Writing(Protocol):
    """Shows a draft after each of its events."""

    def __enter__(self) -> Writing: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def changed(self, draft: AnswerDraft) -> None: ...


class LiveWriting:
    """On a terminal: the end of the draft, redrawn in place, so that text taken back disappears."""

    def __init__(self, console: Console) -> None:
        self._picture = _Tail()
        self._live = Live(self._picture, console=console, refresh_per_second=12, transient=True)

    def __enter__(self) -> LiveWriting:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def changed(self, draft: AnswerDraft) -> None:
        self._picture.draft = draft


class SilentWriting:
    """Into a pipe goes the finished answer alone: what was written there cannot be taken back."""

    def __enter__(self) -> SilentWriting:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def changed(self, draft: AnswerDraft) -> None:
        """Nothing is shown before the end."""


class PlainWriting(SilentWriting):
    """On a terminal without colour or movement: tokens as they come; a reset is said, and the text begins again."""

    def __init__(self) -> None:
        self.shown = ""

    def changed(self, draft: AnswerDraft) -> None:
        text = output.clean(draft.text)
        if text.split() == self.shown.split():  # the final text may be trimmed; nobody needs to read it twice
            return
        if not text.startswith(self.shown):
            sys.stdout.write("\n(the text begins again)\n")
            self.shown = ""
        sys.stdout.write(text[len(self.shown) :])
        sys.stdout.flush()
        self.shown = text


class _Tail:
    def __init__(self) -> None:
        self.draft = AnswerDraft()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = Text(output.clean(self.draft.text)).wrap(console, options.max_width)
        yield from lines[-max(1, console.height - _ROWS_KEPT_FREE) :]
        count = len(self.draft.sources)
        sources = f" · {count} source{'' if count == 1 else 's'}" if count else ""
        yield Text(f"… {output.one_line(self.draft.stage)}{sources}", style="dim")


def writing_for(as_json: bool) -> Writing:
    if not as_json and not output.is_plain(sys.stdout):
        return LiveWriting(output.out())
    if not as_json and sys.stdout.isatty():
        return PlainWriting()
    return SilentWriting()


def print_answer(view: AnswerView, sources: Iterable[dict[str, Any]], *, already_shown: str = "") -> None:
    console = output.out()
    if view.withheld:
        console.print(Text("The answer is withheld: this key may no longer read a document it came from."))
        return
    answer = output.clean(view.answer or "").strip()
    if already_shown.split() == answer.split():
        console.print()
    else:
        console.print(Text(answer))
    if view.answered is False:
        console.print(Text("The documents do not answer this.", style="yellow"))
    if view.stale:
        console.print(Text("A newer version of a source exists.", style="yellow"))
    if view.citations:
        console.print(Text("\nCitations", style="bold"))
        for citation in view.citations:
            _print_citation(console, citation)
    _print_sources(console, view, list(sources))


def _print_citation(console: Console, citation: Citation) -> None:
    title = output.one_line(citation.title or citation.document_id)
    console.print(
        Text.assemble((f"[{citation.n}]", "cyan"), f" {title}{_pages(citation.page_start, citation.page_end)}")
    )
    quote = Text(f"“{output.one_line(citation.quote)}”", style="italic")
    console.print(Padding(quote, (0, 0, 0, 4)) if output.is_screen(console) else Text("    ") + quote)


def _print_sources(console: Console, view: AnswerView, sources: list[dict[str, Any]]) -> None:
    """What was read besides what is cited."""
    cited = {citation.document_id for citation in view.citations}
    others: dict[str, str] = {}
    for source in sources:
        if source.get("document_id") not in cited:
            title = output.one_line(source.get("title") or source.get("document_id"))
            others.setdefault(str(source.get("document_id")), f"{title}{_pages(source.get('page_start'), None)}")
    if others:
        text = f"\nAlso read: {' · '.join(others.values())}"
        console.print(Text(text, style="dim"))


def _pages(start: int | None, end: int | None) -> str:
    if start is None:
        return ""
    return f", pages {start}-{end}" if end is not None and end != start else f", page {start}"
