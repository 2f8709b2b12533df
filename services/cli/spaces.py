"""`perdure spaces`: spaces and who has which role in them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from services.cli import output, people, runs
from services.cli.client import path_of
from services.cli.command import AsJson, DataDir, Limit, Yes, command, confirm, group, open_client, show

app = group("Spaces: list, create, remove, and grants in them.")
SpaceName = Annotated[str, typer.Argument(metavar="SPACE", help="Name or id of the space.")]
Principal = Annotated[str, typer.Argument(help="user:ID, user:EMAIL, group:ID, group:NAME, or tenant for everyone.")]


@app.command("list")
@command
def list_spaces(limit: Limit = 100, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the spaces this key may see."""
    with open_client(data_dir) as client:
        found = client.items(path_of("spaces"), limit=limit)
    empty = "No spaces; `perdure spaces create NAME` makes one."
    show(found, as_json, lambda value: output.print_table(value["items"], ("name", "id"), empty=empty))


@app.command("create")
@command
def create_space(
    name: Annotated[str, typer.Argument(help="Name of the new space.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a space; its maker manages it."""
    with open_client(data_dir) as client:
        show(client.send("POST", path_of("spaces"), {"name": name}), as_json, output.print_fields)


@app.command("remove")
@command
def remove_space(
    space: SpaceName,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is gone.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Remove a space with every document in it."""
    confirm(f"Removing the space {space} with every document in it", yes)
    with open_client(data_dir) as client:
        reply = client.send("DELETE", path_of("spaces", space)) or {}
        show(reply, as_json, lambda value: output.say(f"Run {value.get('run_id')} is at work."))
        if wait and reply.get("run_id"):
            runs.wait_for(client, reply["run_id"])


@app.command("grants")
@command
def list_grants(space: SpaceName, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List who has which role in a space."""
    with open_client(data_dir) as client:
        found = client.items(path_of("spaces", space, "grants"), limit=10_000)
    show(found, as_json, lambda value: output.print_table(value["items"], ("principal", "role"), empty="No grants."))


@app.command("grant")
@command
def grant(
    space: SpaceName,
    principal: Principal,
    role: Annotated[
        Literal["viewer", "contributor", "manager"], typer.Argument(help="viewer, contributor or manager.")
    ],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Give a user, a group or everyone a role in a space."""
    with open_client(data_dir) as client:
        named = people.principal(client, principal)
        client.send("PUT", path_of("spaces", space, "grants", named), {"role": role})
    done: dict[str, Any] = {"space": space, "principal": named, "role": role}
    show(done, as_json, lambda _: output.say(f"{principal} is now {role} in {space}."))


@app.command("revoke")
@command
def revoke(space: SpaceName, principal: Principal, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Take a role in a space away, at once."""
    with open_client(data_dir) as client:
        named = people.principal(client, principal)
        client.send("DELETE", path_of("spaces", space, "grants", named))
    done = {"space": space, "principal": named, "role": None}
    show(done, as_json, lambda _: output.say(f"{principal} has no grant in {space} any more."))
