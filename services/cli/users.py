"""`perdure users`: who belongs to the tenant."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from services.cli import output, people
from services.cli.client import path_of
from services.cli.command import AsJson, DataDir, Limit, command, group, open_client, show
from services.cli.failures import BadUsage

app = group("Users of the tenant: list, create, change.")
UserName = Annotated[str, typer.Argument(metavar="USER", help="Id or email of the user.")]
Role = Literal["member", "admin"]


@app.command("list")
@command
def list_users(limit: Limit = 100, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List users."""
    with open_client(data_dir) as client:
        found = client.items(path_of("users"), limit=limit)
    columns = ("email", "name", "role", "disabled", "id")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty="No users."))


@app.command("create")
@command
def create_user(
    email: Annotated[str, typer.Argument(help="Email address.")],
    name: Annotated[str, typer.Argument(help="Name to show.")],
    role: Annotated[Role, typer.Option(help="member or admin.")] = "member",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a user; `perdure keys create` then makes a key for it."""
    with open_client(data_dir) as client:
        reply = client.send("POST", path_of("users"), {"email": email, "name": name, "role": role})
    show(reply, as_json, output.print_fields)


@app.command("change")
@command
def change_user(
    user: UserName,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    role: Annotated[Role | None, typer.Option(help="New role.")] = None,
    disable: Annotated[bool | None, typer.Option("--disable/--enable", help="Shut out or let in, at once.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change a user's name or role, or shut the user out."""
    given = {"name": name, "role": role, "disabled": disable}
    change = {field: value for field, value in given.items() if value is not None}
    if not change:
        raise BadUsage("Nothing to change was given.", "Give --name, --role, --disable or --enable.")
    with open_client(data_dir) as client:
        reply = client.send("PUT", path_of("users", people.user_id(client, user)), change)
    show(reply, as_json, output.print_fields)
