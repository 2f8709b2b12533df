"""The commands that speak HTTP to a running Perdure, as one Typer application or mounted on another."""

from __future__ import annotations

import typer

from services.cli import (
    agents,
    approvals,
    ask,
    chat,
    doctor,
    documents,
    groups,
    ingest,
    keys,
    runs,
    search,
    spaces,
    users,
)


def register(app: typer.Typer) -> None:
    """Adds every command to `app`, the console script's own."""
    app.command("ingest")(ingest.ingest)
    app.command("search")(search.search)
    app.command("ask")(ask.ask)
    app.command("chat")(chat.chat)
    app.command("status")(doctor.status)
    app.command("doctor")(doctor.doctor)
    for name, commands in (
        ("documents", documents.app),
        ("agents", agents.app),
        ("approvals", approvals.app),
        ("runs", runs.app),
        ("spaces", spaces.app),
        ("users", users.app),
        ("groups", groups.app),
        ("keys", keys.app),
    ):
        app.add_typer(commands, name=name)


app = typer.Typer(
    help="Documents become cited answers, and every piece of work is durable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
register(app)
