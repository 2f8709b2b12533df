"""`perdure search`: the passages nearest to a query."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from schemas.search import SearchHit, SearchResult
from services.cli import output
from services.cli.client import path_of
from services.cli.command import AsJson, DataDir, SpaceOption, command, open_client, show

_EXCERPT_LINES = 3
_EXCERPT_CHARS_PIPED = 300


@command
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    space: SpaceOption,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="At most this many passages.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show each leg's score and time.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find passages in a space."""
    request = {"query": query, "space": space, "limit": limit, "explain": explain}
    with open_client(data_dir) as client:
        reply = client.send("POST", path_of("search"), request)
    show(reply, as_json, lambda value: _print(SearchResult.model_validate(value), explain))


def _print(result: SearchResult, explain: bool) -> None:
    console = output.out()
    for number, hit in enumerate(result.hits, 1):
        _print_hit(console, number, hit, explain)
    if not result.hits:
        output.say("Nothing found.")
    for reason in result.degraded:
        output.say(f"degraded: {reason}")
    if explain:
        rows: list[dict[str, Any]] = [leg.model_dump() for leg in result.legs]
        output.print_table(rows, ("name", "hits", "ms", "error"), empty="No leg took part.")


def _print_hit(console: Console, number: int, hit: SearchHit, explain: bool) -> None:
    place = " › ".join(output.one_line(part) for part in hit.heading_path)
    page = f"p. {hit.page_start}" if hit.page_start is not None else ""
    title = output.one_line(hit.title or hit.document_id)
    line = Text.assemble((f"{number}. ", "cyan"), (title, "bold"), *[f"  {part}" for part in (place, page) if part])
    line.append(f"  {hit.score:.3f}", style="dim")
    if explain and hit.scores:
        line.append("  " + " ".join(f"{name}={score:.3f}" for name, score in hit.scores.items()), style="dim")
    console.print(line)
    excerpt = Text(output.one_line(hit.text))
    if output.is_screen(console):
        excerpt.truncate((console.width - 4) * _EXCERPT_LINES, overflow="ellipsis")
        console.print(Padding(excerpt, (0, 0, 0, 3)))
    else:
        excerpt.truncate(_EXCERPT_CHARS_PIPED, overflow="ellipsis")
        console.print(Text("   ") + excerpt)
