"""`/decide/<token>`: the page of a decision link. It works without scripts; looking at it changes nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError
from starlette.responses import HTMLResponse

from schemas.approvals import ApprovalView, Decided, Decision
from schemas.errors import InvalidRequest, NotFound, Problem, RateLimited
from services.agents.decision_links import Ticket
from services.api.state import ServingRole, api_state
from services.documents.clean_text import clean_text

PREFIX = "/decide"
ASK_USER = "ask_user"

router = APIRouter()
_templates = Environment(
    loader=PackageLoader("services.api", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
_style = _templates.get_template("decision.css").render()
_style_hash = base64.b64encode(hashlib.sha256(_style.encode()).digest()).decode()
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_style_hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Robots-Tag": "noindex",
}


def _ticket(
    request: Request, container: ServingRole, token: Annotated[str, Path(max_length=2_000)]
) -> Ticket | Problem:
    """A token that was not signed here counts like a wrong key; a signed one like a request with its key."""
    state = api_state(request)
    try:
        ticket = container.decision_links.ticket(token)
    except NotFound as unknown:
        wait_s = state.failures_per_address.take(request.client.host if request.client else "unknown")
        return _too_many(wait_s) if wait_s else unknown
    wait_s = state.requests_per_key.take(ticket.key)
    return _too_many(wait_s) if wait_s else ticket


Ticketed = Annotated[Ticket | Problem, Depends(_ticket)]


@router.get(PREFIX + "/{token}")
async def show(ticket: Ticketed, container: ServingRole) -> HTMLResponse:
    """The request, and a form where it can still be decided."""
    if isinstance(ticket, Problem):
        return _refusal(ticket)
    try:
        approval = await container.decision_links.look(ticket)
    except Problem as problem:
        return _refusal(problem)
    return _page(approval)


@router.post(PREFIX + "/{token}")
async def decide(request: Request, ticket: Ticketed, container: ServingRole) -> HTMLResponse:
    """The form's decision. The token in the address is the right to decide: a page elsewhere cannot know it."""
    if isinstance(ticket, Problem):
        return _refusal(ticket)
    try:
        approval = await container.decision_links.look(ticket)
        form = {name: clean_text(value) for name, value in (await request.form()).items() if isinstance(value, str)}
        try:
            decided = await container.decision_links.decide(ticket, _decision(form, approval))
        except InvalidRequest as invalid:
            return _page(approval, error=invalid.detail, typed=form, status=422)
        return _page(await container.decision_links.look(ticket), decided=decided)
    except Problem as problem:
        if "state" not in problem.extra:
            return _refusal(problem)
        return _page(await container.decision_links.look(ticket), error=problem.detail, status=problem.status)


def _decision(form: dict[str, str], approval: ApprovalView) -> Decision:
    draft: dict[str, Any] = {"decision": form.get("decision", "")}
    if form.get("feedback", "").strip():
        draft["feedback"] = form["feedback"].strip()
    typed = form.get("arguments", "").strip()
    if typed and draft["decision"] in ("approve", "approve_session"):
        try:
            edited = json.loads(typed)
        except ValueError as error:
            raise InvalidRequest(f"The arguments are not JSON: {error}.") from error
        if not isinstance(edited, dict):
            raise InvalidRequest("The arguments are not a JSON object.")
        if edited != approval.arguments:
            draft["arguments"] = edited
    try:
        return Decision.model_validate(draft)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequest(f"{'.'.join(str(each) for each in first['loc'])}: {first['msg']}.") from error


def _page(
    approval: ApprovalView,
    *,
    decided: Decided | None = None,
    error: str | None = None,
    typed: dict[str, str] | None = None,
    status: int = 200,
) -> HTMLResponse:
    arguments = approval.decided_arguments or approval.arguments
    question = (arguments or {}).get("question") if approval.tool == ASK_USER else None
    return _render(
        "decision.html",
        status,
        approval=approval,
        decided=decided,
        error=error,
        question=question,
        arguments=None if arguments is None else json.dumps(arguments, ensure_ascii=False, indent=2),
        typed=typed or {},
        open=approval.state in ("pending", "unknown_effect") and decided is None,
        requested_at=approval.requested_at.strftime("%Y-%m-%d %H:%M UTC"),
        expires_at=approval.expires_at.strftime("%Y-%m-%d %H:%M UTC"),
    )


def _refusal(problem: Problem) -> HTMLResponse:
    return _render("decision_refused.html", problem.status, title=problem.title, detail=problem.detail)


def _render(template: str, status: int, **values: Any) -> HTMLResponse:
    return HTMLResponse(_templates.get_template(template).render(style=_style, **values), status, _HEADERS)


def _too_many(wait_s: float) -> Problem:
    return RateLimited("Too many requests; try again in a minute.", retry_after_s=wait_s)
