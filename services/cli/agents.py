"""`perdure agents`: who acts, with which tools, in which mode, within which limits."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from schemas.agents import AgentDraft, AgentView
from schemas.tools import Mode
from services.cli import moments, output
from services.cli.client import ApiClient, path_of
from services.cli.command import AsJson, DataDir, Limit, Yes, command, confirm, group, open_client, show
from services.cli.failures import BadUsage
from services.cli.option_values import text_of

app = group("Agents: list, show, create, change, remove. `perdure chat` talks to one.")
_LOOKED_THROUGH = 10_000


class ApproverRole(StrEnum):
    """Roles in a space, in the form in which Typer takes a list of choices."""

    VIEWER = "viewer"
    CONTRIBUTOR = "contributor"
    MANAGER = "manager"


class Clearable(StrEnum):
    """What an agent can be without."""

    MODEL = "model"
    TOOLS = "tools"
    ALWAYS_ASK = "always-ask"
    SPACES = "spaces"
    APPROVER_ROLES = "approver-roles"
    LIMITS = "limits"


AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Name or id of the agent.")]
Instructions = Annotated[
    str | None, typer.Option(metavar="TEXT|@FILE", help="What it is for and how it works: a text, or @ and a file.")
]
Model = Annotated[str | None, typer.Option(help="Chat model, if not the server's default.")]
Tools = Annotated[
    list[str] | None,
    typer.Option("--tool", help="Repeatable: search, read_document, list_documents, write_document, …"),
]
ModeOption = Annotated[
    Mode | None, typer.Option(help="read_only: never writes. ask: asks before it writes. auto: asks only to destroy.")
]
AlwaysAsk = Annotated[
    list[str] | None, typer.Option(metavar="TOOL", help="Repeatable: ask before this tool whatever the mode.")
]
Spaces = Annotated[
    list[str] | None, typer.Option("--space", "-s", help="Repeatable: keep it to these; else all that its user sees.")
]
ApproverRoles = Annotated[
    list[ApproverRole] | None,
    typer.Option("--approver-role", help="Repeatable: who, besides its user, may decide for a space concerned."),
]
Iterations = Annotated[int | None, typer.Option(min=1, max=100, help="Model calls of one turn, at most (20).")]
Tokens = Annotated[int | None, typer.Option(min=1, help="Tokens of one turn, at most.")]
Cost = Annotated[float | None, typer.Option(help="US dollars of one turn, at most.")]
WallSeconds = Annotated[float | None, typer.Option(help="Seconds that one turn may work, at most.")]


@app.command("list")
@command
def list_agents(limit: Limit = 100, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List agents, newest first."""
    with open_client(data_dir) as client:
        found = client.items(path_of("agents"), limit=limit)
    empty = "No agents; `perdure agents create NAME --tool search` makes one."
    columns = ("name", "mode", "tools", "id")
    show(found, as_json, lambda value: output.print_table(value["items"], columns, empty=empty))


@app.command("show")
@command
def show_agent(named: AgentName, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one agent: instructions, tools, mode, limits."""
    with open_client(data_dir) as client:
        show(found_agent(client, named), as_json, _print_agent)


@app.command("create")
@command
def create_agent(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new agent.")],
    instructions: Instructions = None,
    model: Model = None,
    tool: Tools = None,
    mode: ModeOption = None,
    always_ask: AlwaysAsk = None,
    space: Spaces = None,
    approver_role: ApproverRoles = None,
    iterations: Iterations = None,
    tokens: Tokens = None,
    cost: Cost = None,
    wall_seconds: WallSeconds = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make an agent. Whoever talks to it, it acts with that person's rights."""
    given = _given(instructions, model, tool, mode, always_ask, space, approver_role)
    limits = _limits(iterations, tokens, cost, wall_seconds)
    with open_client(data_dir) as client:
        reply = client.send(
            "POST", path_of("agents"), {"name": name, **given, **({"limits": limits} if limits else {})}
        )
    show(reply, as_json, _print_agent)
    if not as_json:
        tools = "" if reply["tools"] else " It has no tools yet, so it can only talk."
        output.say(f"`perdure chat {shlex.quote(reply['name'])}` talks to it.{tools}")


@app.command("change")
@command
def change_agent(
    named: AgentName,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    instructions: Instructions = None,
    model: Model = None,
    tool: Tools = None,
    mode: ModeOption = None,
    always_ask: AlwaysAsk = None,
    space: Spaces = None,
    approver_role: ApproverRoles = None,
    iterations: Iterations = None,
    tokens: Tokens = None,
    cost: Cost = None,
    wall_seconds: WallSeconds = None,
    clear: Annotated[
        list[Clearable] | None, typer.Option(help="Repeatable: back to how an agent is without it.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change what is named and keep the rest. --tool and its like replace the whole list. Turns under way are not touched."""
    given = _given(instructions, model, tool, mode, always_ask, space, approver_role)
    limits = _limits(iterations, tokens, cost, wall_seconds)
    if name is not None:
        given["name"] = name
    if not (given or limits or clear):
        raise BadUsage("Nothing to change was given.", "`perdure agents change --help` lists what can be.")
    with open_client(data_dir) as client:
        agent = found_agent(client, named)
        wanted = {field: agent[field] for field in AgentDraft.model_fields if field in agent} | given
        wanted["limits"] = {**wanted.get("limits", {}), **limits}
        for cleared in clear or []:
            wanted.pop(cleared.value.replace("-", "_"), None)
        reply = client.send("PUT", path_of("agents", agent["id"]), wanted)
    show(reply, as_json, _print_agent)


@app.command("remove")
@command
def remove_agent(named: AgentName, yes: Yes = False, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove an agent. What was said with it stays readable; no turn begins with it any more."""
    confirm(f"Removing the agent {named}", yes)
    with open_client(data_dir) as client:
        agent = found_agent(client, named)
        client.send("DELETE", path_of("agents", agent["id"]))
    show({"id": agent["id"], "removed": True}, as_json, lambda _: output.say(f"Agent {agent['name']} is removed."))


def found_agent(client: ApiClient, named: str) -> dict[str, Any]:
    """The agent with this id, or this name; an id wins over a name."""
    agents = client.items(path_of("agents"), limit=_LOOKED_THROUGH)["items"]
    for field in ("id", "name"):
        for agent in agents:
            if agent[field] == named:
                return dict(agent)
    raise BadUsage(f"There is no agent {named!r}.", "`perdure agents list` shows their names.", "not_found")


def _given(
    instructions: str | None,
    model: str | None,
    tools: list[str] | None,
    mode: str | None,
    always_ask: list[str] | None,
    spaces: list[str] | None,
    roles: list[ApproverRole] | None,
) -> dict[str, Any]:
    """Only what was named on the command line; Typer gives an empty list for a list that was not."""
    values: dict[str, Any] = {
        "instructions": None if instructions is None else text_of(instructions, "--instructions"),
        "model": model,
        "tools": tools or None,
        "mode": mode,
        "always_ask": always_ask or None,
        "spaces": spaces or None,
        "approver_roles": [role.value for role in roles] if roles else None,
    }
    return {field: value for field, value in values.items() if value is not None}


def _limits(iterations: int | None, tokens: int | None, cost: float | None, wall: float | None) -> dict[str, Any]:
    values = {"iterations": iterations, "tokens": tokens, "cost": cost, "wall_seconds": wall}
    return {field: value for field, value in values.items() if value is not None}


def _print_agent(reply: dict[str, Any]) -> None:
    """What is left open is said in words, for it decides as much as what is set."""
    agent = AgentView.model_validate(reply)
    limits = agent.limits
    bounds = (
        (f"{limits.iterations} model calls", True),
        (f"{limits.tokens} tokens", limits.tokens),
        (f"{limits.cost} US dollars", limits.cost),
        (f"{limits.wall_seconds:g} s" if limits.wall_seconds else "", limits.wall_seconds),
    )
    fields = {
        "name": agent.name,
        "id": agent.id,
        "version": f"{agent.version}, {moments.counted(agent.updated_at)}",
        "model": agent.model or "the server's default",
        "mode": agent.mode,
        "tools": agent.tools or "none",
        "always_ask": agent.always_ask,
        "spaces": "all that its user sees" if agent.spaces is None else agent.spaces or "none",
        "approvers": ", ".join(["its user", *(f"{role}s of the space" for role in agent.approver_roles)]),
        "limits": ", ".join(text for text, is_set in bounds if is_set) + " a turn",
        "owner": agent.owner,
    }
    output.print_fields(fields)
    if agent.instructions:
        console = output.out()
        console.print(Text("\nInstructions", style="bold"))
        console.print(Text(output.clean(agent.instructions).strip()))
