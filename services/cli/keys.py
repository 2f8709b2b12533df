"""`perdure keys`: API keys, shown once when they are made."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from services.cli import output, people
from services.cli.client import path_of
from services.cli.command import AsJson, DataDir, Limit, command, group, open_client, show
from services.cli.failures import BadUsage

app = group("API keys: list, create, revoke.")


class KeyScope(StrEnum):
    """The contract's scopes, in the form in which Typer takes a list of choices."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@app.command("list")
@command
def list_keys(limit: Limit = 100, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List keys; the keys themselves are never shown again."""
    with open_client(data_dir) as client:
        found = client.items(path_of("api-keys"), limit=limit)
    columns = ("id", "user_id", "scopes", "expires_at", "revoked_at")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty="No keys."))


@app.command("create")
@command
def create_key(
    user: Annotated[str | None, typer.Argument(help="Id or email of its user; you, when left out.")] = None,
    scope: Annotated[
        list[KeyScope] | None,
        typer.Option(help="Repeatable; all that the user's role has, when left out."),
    ] = None,
    expires_in: Annotated[str | None, typer.Option(help="Say 12h, 30d or 8w.", metavar="TIME")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is printed once, alone on stdout."""
    body: dict[str, Any] = {}
    if scope:
        body["scopes"] = list(scope)
    if expires_in is not None:
        body["expires_at"] = expiry(expires_in, datetime.now(UTC)).isoformat()
    with open_client(data_dir) as client:
        body["user_id"] = people.user_id(client, user) if user else client.get(path_of("me"))["user_id"]
        reply = client.send("POST", path_of("api-keys"), body)
    show(reply, as_json, _print_once)


@app.command("revoke")
@command
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="Id of the key, not the key itself.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Shut a key out, at once."""
    with open_client(data_dir) as client:
        client.send("DELETE", path_of("api-keys", key_id))
    show({"id": key_id, "revoked": True}, as_json, lambda _: output.say(f"Key {key_id} is revoked."))


def expiry(expires_in: str, now: datetime) -> datetime:
    match = re.fullmatch(r"([1-9]\d{0,4})([hdw])", expires_in)
    if match is None:
        raise BadUsage(f"--expires-in is {expires_in!r}.", "Give a number with h, d or w, say 30d.")
    return now + timedelta(**{_UNITS[match[2]]: int(match[1])})


def _print_once(reply: dict[str, Any]) -> None:
    output.out().print(Text(str(reply["key"])), soft_wrap=True)
    output.say(f"Key {reply['id']}: keep it now, it is not shown again.")
