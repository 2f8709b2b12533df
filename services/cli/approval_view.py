"""A request for approval as a person reads it before deciding: what would be done, why, and what would change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from schemas.approvals import ApprovalView
from services.cli import output
from services.cli.call_text import value_text

_IN_PREVIEW = frozenset({("write_document", "text"), ("write_file", "text")})
"""Arguments of which the preview shows all that matters; every other one is shown whole."""
_CUT = re.compile(r"\[… \d+ characters more\]\Z")
_STYLE_OF_LINE = {"+": "green", "-": "red", "@": "cyan"}
PREVIEW_LINES = 30
"""Of a preview between other lines; `perdure approvals show` has it whole."""
ASK_USER = "ask_user"
"""The tool whose request is a question: the words of the approval are the answer."""
RISK_STYLES = {"read": "green", "write": "yellow", "destructive": "bold red"}


def heading_of(approval: ApprovalView) -> Text:
    if approval.tool == ASK_USER:
        return Text("The agent asks", style="bold yellow")
    risk = (approval.risk, RISK_STYLES.get(approval.risk, ""))
    return Text.assemble(
        ("Approval needed", "bold yellow"), ": ", (output.one_line(approval.tool), "cyan"), " (", risk, ")"
    )


def ways_to_decide(approval: ApprovalView) -> list[tuple[str, str]]:
    """What can be decided, and the command that decides it."""
    command = "perdure approvals"
    if approval.state == "unknown_effect":
        return [
            ("It had its effect:", f"{command} mark-done {approval.id}"),
            ("It had none, make it again:", f"{command} try-again {approval.id}"),
        ]
    if approval.state != "pending":
        return []
    if approval.tool == ASK_USER:
        return [("Answer it:", f'{command} approve {approval.id} --feedback "your answer"')]
    return [
        ("Let it be done (with --session: in the rest of its session too):", f"{command} approve {approval.id}"),
        ("Refuse it (with --feedback: and tell the agent why):", f"{command} reject {approval.id}"),
    ]


def request_body(approval: ApprovalView, preview_lines: int | None = None) -> RenderableType:
    """Arguments and preview; of the preview no more than `preview_lines`, and a word on the rest."""
    if approval.withheld:
        return Text("Its words are withheld: this key may not read all documents that they came from.", style="yellow")
    if approval.tool == ASK_USER:
        return Text(output.clean((approval.arguments or {}).get("question", "")).strip())
    parts: list[RenderableType] = [*_arguments(approval.tool, approval.arguments or {}, approval.preview)]
    if approval.preview:
        is_diff = approval.preview.startswith("--- ")
        parts += [Text(), Text("What would change" if is_diff else "What would be done", style="bold")]
        parts += _preview(approval.preview, is_diff, preview_lines)
    return Group(*parts)


def is_cut(approval: ApprovalView, preview_lines: int) -> bool:
    return approval.preview is not None and len(approval.preview.splitlines()) > preview_lines


def _arguments(tool: str, arguments: Mapping[str, Any], preview: str | None) -> Iterator[RenderableType]:
    """Short ones as a table, texts of several lines below it, as they are."""
    previewed = preview is not None and not _CUT.search(preview)
    table = Table(
        Column(no_wrap=True, style="bold"), Column(overflow="fold"), box=None, show_header=False, pad_edge=False
    )
    long: list[tuple[str, str]] = []
    texts = {name: output.clean(value_text(value)) for name, value in arguments.items()}
    for name, text in sorted(texts.items(), key=lambda pair: "\n" in pair[1].strip()):
        if "\n" not in text.strip():
            table.add_row(Text(output.one_line(name)), Text(text.strip()))
        elif previewed and (tool, name) in _IN_PREVIEW:
            count = len(text.splitlines())
            table.add_row(Text(output.one_line(name)), Text(f"{count} lines; what they change is below", style="dim"))
        else:
            long.append((name, text))
    if table.row_count:
        yield table
    for name, text in long:
        yield Text(output.one_line(name), style="bold")
        yield Padding(Text(text.rstrip()), (0, 0, 0, 4))


def _preview(preview: str, is_diff: bool, at_most: int | None) -> Iterator[Text]:
    lines = output.clean(preview).splitlines()
    for number, line in enumerate(lines[:at_most]):
        style = "bold" if number < 2 else _STYLE_OF_LINE.get(line[:1], "")
        yield Text(line, style=style if is_diff else "")
    if at_most is not None and len(lines) > at_most:
        yield Text(f"… {len(lines) - at_most} more lines", style="dim")
