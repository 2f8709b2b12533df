"""`perdure groups`: users taken together, to be given roles and documents as one."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli import output, people
from services.cli.client import path_of
from services.cli.command import AsJson, DataDir, Limit, command, group, open_client, show
from services.cli.users import UserName

app = group("Groups: list, create, remove, add and take members.")
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Id or name of the group.")]


@app.command("list")
@command
def list_groups(limit: Limit = 100, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List groups."""
    with open_client(data_dir) as client:
        found = client.items(path_of("groups"), limit=limit)
    show(found, as_json, lambda value: output.print_table(value["items"], ("name", "id"), empty="No groups."))


@app.command("create")
@command
def create_group(
    name: Annotated[str, typer.Argument(help="Name of the new group.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a group."""
    with open_client(data_dir) as client:
        show(client.send("POST", path_of("groups"), {"name": name}), as_json, output.print_fields)


@app.command("remove")
@command
def remove_group(named: GroupName, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove a group; what it was granted goes with it."""
    with open_client(data_dir) as client:
        group_id = people.group_id(client, named)
        client.send("DELETE", path_of("groups", group_id))
    show({"id": group_id, "removed": True}, as_json, lambda _: output.say(f"Group {named} is removed."))


@app.command("add")
@command
def add_member(named: GroupName, user: UserName, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Add a user to a group."""
    _member("PUT", named, user, data_dir, as_json)


@app.command("take")
@command
def take_member(named: GroupName, user: UserName, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Take a user out of a group."""
    _member("DELETE", named, user, data_dir, as_json)


def _member(method: str, named: str, user: str, data_dir: DataDir, as_json: bool) -> None:
    with open_client(data_dir) as client:
        group_id, user_id = people.group_id(client, named), people.user_id(client, user)
        client.send(method, path_of("groups", group_id, "members", user_id))
    word = "in" if method == "PUT" else "out of"
    done = {"group_id": group_id, "user_id": user_id, "member": method == "PUT"}
    show(done, as_json, lambda _: output.say(f"{user} is {word} {named}."))
