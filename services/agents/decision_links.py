"""Links that decide a request for approval: signed, for one person, for one request, for a while."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from itsdangerous import BadData, URLSafeSerializer
from pydantic import BaseModel, ValidationError

from schemas.access import Actor
from schemas.approvals import ApprovalView, Decided, Decision
from schemas.errors import Conflict, Forbidden, NotFound
from services.access.load_access import load_access
from services.agents.approvals import Approvals
from services.stores.database import Database

_PURPOSE = "perdure.decision-link"
_UNKNOWN = "This link is unknown, withdrawn, or not for this installation. Ask for a new one."


class Ticket(BaseModel):
    """What a link's token says. `arguments_hash` is what was shown when it was made: other arguments need another link."""

    tenant: str
    user: str
    key: str
    approval_id: str
    arguments_hash: str
    expires_at: datetime

    @property
    def actor(self) -> Actor:
        return Actor(tenant=self.tenant, user=self.user, key=self.key)


@dataclass(frozen=True)
class IssuedLink:
    """A token for a URL (letters, digits, `-`, `_`, `.`), and when it is over."""

    token: str
    expires_at: datetime


class DecisionLinks:
    """A link acts as the user and the key that asked for it, with the rights they have when it is used."""

    def __init__(self, database: Database, approvals: Approvals, keys: Sequence[str], hours: float) -> None:
        """`keys`: the last one signs, all are accepted. None: no links."""
        self._database = database
        self._approvals = approvals
        self._signer = (
            URLSafeSerializer(list(keys), salt=_PURPOSE, signer_kwargs={"digest_method": hashlib.sha256})
            if keys
            else None
        )
        self._hours = hours

    async def issue(self, actor: Actor, approval_id: str) -> IssuedLink:
        """NotFound as for the request itself; Conflict when nothing can be decided, or this installation signs no links."""
        if self._signer is None:
            raise Conflict(
                "This installation signs no links: set PERDURE_AGENTS__LINK_KEYS to one or more random keys.",
                type="links_off",
            )
        assert actor.key is not None
        approval = await self._approvals.get(actor, approval_id)
        if approval.state not in ("pending", "unknown_effect"):
            raise Conflict(f"This request is {approval.state} already.", type="approval_over", state=approval.state)
        async with self._database.begin(actor.tenant) as transaction:
            expires_at = transaction.now + timedelta(hours=self._hours)
        if approval.state == "pending":
            expires_at = min(expires_at, approval.expires_at)
        ticket = Ticket(
            tenant=actor.tenant,
            user=actor.user,
            key=actor.key,
            approval_id=approval_id,
            arguments_hash=approval.arguments_hash,
            expires_at=expires_at,
        )
        return IssuedLink(str(self._signer.dumps(ticket.model_dump(mode="json"))), expires_at)

    def ticket(self, token: str) -> Ticket:
        """NotFound when it was not signed here."""
        if self._signer is None:
            raise NotFound(_UNKNOWN)
        try:
            return Ticket.model_validate(self._signer.loads(token))
        except (BadData, ValidationError) as error:
            raise NotFound(_UNKNOWN) from error

    async def look(self, ticket: Ticket) -> ApprovalView:
        """The request as the link's user may see it now. Changes nothing.

        NotFound when the user, the key or the right to decide is gone; Forbidden for a key that only reads; Conflict
        ("link_over", "arguments_changed") when it is too late for this link.
        """
        async with self._database.begin(ticket.tenant) as transaction:
            access = await load_access(transaction, ticket.actor)
            over = ticket.expires_at <= transaction.now
        if access is None:
            raise NotFound(_UNKNOWN)
        if "write" not in access.scopes:
            raise Forbidden("The key that this link was made with may not decide any more.")
        approval = await self._approvals.get(ticket.actor, ticket.approval_id)
        if approval.state in ("pending", "unknown_effect"):
            if over:
                raise Conflict("This link is over. Ask for a new one.", type="link_over")
            if approval.arguments_hash != ticket.arguments_hash:
                raise Conflict("What is asked for has changed. Ask for a new link.", type="arguments_changed")
        return approval

    async def decide(self, ticket: Ticket, decision: Decision) -> Decided:
        """As `Approvals.decide`, after all that `look` looks at."""
        await self.look(ticket)
        return await self._approvals.decide(ticket.actor, ticket.approval_id, decision)
