"""`perdure approvals`: what waits for a person, looked at and decided."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.text import Text

from schemas.approvals import ApprovalState, ApprovalView, Decided, DecisionLink
from services.cli import moments, output
from services.cli.approval_view import ASK_USER, RISK_STYLES, request_body, ways_to_decide
from services.cli.call_text import call_text
from services.cli.client import ApiClient, path_of
from services.cli.command import AsJson, DataDir, Limit, command, group, open_client, show
from services.cli.failures import CliFailure, Refusal
from services.cli.option_values import json_object_of

app = group("Requests for approval: list, show, link, approve, reject; unknown outcomes: mark-done, try-again.")
ApprovalId = Annotated[str, typer.Argument(metavar="APPROVAL", help="Id of the request.")]


@app.command("list")
@command
def list_approvals(
    state: Annotated[ApprovalState | None, typer.Option(help="Only those that are, say, pending.")] = None,
    limit: Limit = 20,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the requests that you may decide, newest first."""
    with open_client(data_dir) as client:
        found = client.items(path_of("approvals"), {"state": state}, limit=limit)
    show(
        found, as_json, lambda value: print_list([ApprovalView.model_validate(each) for each in value["items"]], state)
    )


@app.command("show")
@command
def show_approval(approval_id: ApprovalId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one request: what would be done, why, and what would change."""
    with open_client(data_dir) as client:
        reply = client.get(path_of("approvals", approval_id))
        show(reply, as_json, lambda value: _print_approval(client, ApprovalView.model_validate(value)))


@app.command("link")
@command
def link(approval_id: ApprovalId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Make a signed link to a page where you decide, on another device say. Whoever has it decides as you."""
    with open_client(data_dir) as client:
        reply = client.send("POST", path_of("approvals", approval_id, "links"), {})
    show(reply, as_json, lambda value: _print_link(DecisionLink.model_validate(value)))


@app.command("approve")
@command
def approve(
    approval_id: ApprovalId,
    session: Annotated[
        bool, typer.Option("--session", help="Do not ask again for this tool in the rest of its session.")
    ] = False,
    arguments: Annotated[
        str | None, typer.Option(metavar="JSON|@FILE", help="Do it with these arguments instead.")
    ] = None,
    feedback: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Words for the agent: the answer, when it asks a question.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Let it be done. Exit code 1, and what stands, when it was decided otherwise or is over."""
    wanted: dict[str, Any] = {"decision": "approve_session" if session else "approve"}
    if arguments is not None:
        wanted["arguments"] = json_object_of(arguments, "--arguments")
    if feedback is not None:
        wanted["feedback"] = feedback
    _decide(approval_id, wanted, data_dir, as_json)


@app.command("reject")
@command
def reject(
    approval_id: ApprovalId,
    feedback: Annotated[str | None, typer.Option(metavar="TEXT", help="Words for the agent, which goes on.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Refuse it. Exit code 1, and what stands, when it was decided otherwise or is over."""
    wanted = {"decision": "reject"} if feedback is None else {"decision": "reject", "feedback": feedback}
    _decide(approval_id, wanted, data_dir, as_json)


@app.command("mark-done")
@command
def mark_done(approval_id: ApprovalId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Of a call cut off in the middle (unknown_effect): you looked, and it had its effect."""
    _decide(approval_id, {"decision": "mark_done"}, data_dir, as_json)


@app.command("try-again")
@command
def try_again(approval_id: ApprovalId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Of a call cut off in the middle (unknown_effect): you looked, and it had none. A run of its own makes it."""
    _decide(approval_id, {"decision": "try_again"}, data_dir, as_json)


def print_list(approvals: list[ApprovalView], state: str | None = "pending") -> None:
    rows = [
        {
            "id": approval.id,
            "state": approval.state,
            "call": call_text(approval.tool, approval.arguments).plain,
            "asked": moments.counted(approval.requested_at),
        }
        for approval in approvals
    ]
    empty = "Nothing waits for you." if state == "pending" else "No requests for approval."
    output.print_table(rows, ("id", "state", "call", "asked"), empty=empty)


class Stand(BaseModel):
    """How a request stands that can not be decided this way any more: fields of the API's 409."""

    state: str
    decided_by: str | None = None
    decided_at: datetime | None = None


class StandsOtherwise(CliFailure):
    """It was decided otherwise before, or nobody can decide it any more."""

    def __init__(self, refusal: Refusal, stand: Stand, by: str) -> None:
        super().__init__(refusal.detail, refusal.kind, f"It stands as {stand.state}{by}; nothing was changed.")
        self.stand = stand


def decide(client: ApiClient, approval_id: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The API's reply. Raises StandsOtherwise when it is too late for this decision."""
    try:
        return dict(client.send("POST", path_of("approvals", approval_id, "decision"), wanted))
    except Refusal as refusal:
        if refusal.status != 409 or "state" not in refusal.problem:
            raise
        stand = Stand.model_validate(refusal.problem)
        raise StandsOtherwise(refusal, stand, by_whom(client, stand.decided_by, stand.decided_at)) from None


def by_whom(client: ApiClient, decided_by: str | None, decided_at: datetime | None) -> str:
    """` by you, 3 min ago`; nothing of what is not known."""
    me = f"user:{client.get(path_of('me'))['user_id']}" if decided_by else None
    by = f" by {'you' if decided_by == me else decided_by}" if decided_by else ""
    return f"{by}, {moments.counted(decided_at)}" if decided_at else by


def _decide(approval_id: str, wanted: dict[str, Any], data_dir: DataDir, as_json: bool) -> None:
    with open_client(data_dir) as client:
        try:
            reply = decide(client, approval_id, wanted)
        except StandsOtherwise as otherwise:
            if as_json:
                stand = otherwise.stand.model_dump(mode="json")
                output.print_json({"id": approval_id, **stand, "outcome": otherwise.kind})
            raise
        if as_json:
            output.print_json(reply)
            return
        decided = Decided.model_validate(reply)
        approval = ApprovalView.model_validate(client.get(path_of("approvals", approval_id)))
    before = " already" if decided.outcome == "already_recorded" else ""
    output.say(f"{decided.state.capitalize()}{before}: {call_text(approval.tool, approval.arguments).plain}")
    if wanted["decision"] != "mark_done":
        output.say(f"It goes on: `perdure runs watch {decided.run_id or approval.run_id}` shows how.")


def _print_link(made: DecisionLink) -> None:
    output.out().print(Text(made.url), soft_wrap=True)  # an address is copied whole
    output.say(f"Whoever has it decides as you, until {moments.local(made.expires_at)}.")


def _print_approval(client: ApiClient, approval: ApprovalView) -> None:
    console = output.out()
    risk = (approval.risk, RISK_STYLES.get(approval.risk, ""))
    head = Text.assemble((output.one_line(approval.tool), "bold cyan"), "  ", risk, "  ")
    head.append_text(output.state_text(approval.state))
    console.print(head.append(by_whom(client, approval.decided_by, approval.decided_at)))
    facts = {
        "asked": f"{moments.counted(approval.requested_at)}, in session {approval.session_id or '-'}",
        "expires": f"{moments.counted(approval.expires_at)}, {moments.local(approval.expires_at)}",
        "why": approval.reason or "the agent said nothing about it",
    }
    if approval.state != "pending":
        del facts["expires"]
    output.print_fields(facts)
    console.print(Text("\nQuestion" if approval.tool == ASK_USER else "\nArguments", style="bold"))
    console.print(request_body(approval))
    for what, deciding in ways_to_decide(approval):
        output.err().print(Text.assemble("\n", what, f"\n  {deciding}"), soft_wrap=True)  # a command is copied whole
