"""Identity as callers see it (contract: Identity)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from schemas.access import Scope, SpaceRole, TenantRole

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


def _has_an_address(value: str) -> str:
    local, _, domain = value.rpartition("@")
    if not local or not domain or any(character.isspace() for character in value):
        raise ValueError("an e-mail address has the form name@domain")
    return value


Email = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=3, max_length=320), AfterValidator(_has_an_address)
]


class _Draft(BaseModel):
    model_config = ConfigDict(extra="forbid")


class UserDraft(_Draft):
    """A new user."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"email": "ann@example.org", "name": "Ann", "role": "member"}]}
    )

    email: Email
    name: Name
    role: TenantRole = "member"


class UserChange(_Draft):
    """Fields left out stay as they are."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"disabled": True}]})

    email: Email | None = None
    name: Name | None = None
    role: TenantRole | None = None
    disabled: bool | None = None


class UserView(BaseModel):
    """A user as admins see them."""

    id: str
    email: str
    name: str
    role: TenantRole
    disabled: bool


class GroupDraft(_Draft):
    """A new group."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Finance"}]})

    name: Name


class GroupView(BaseModel):
    """A group."""

    id: str
    name: str


class SpaceDraft(_Draft):
    """A new space; whoever makes it becomes its manager."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "handbook"}]})

    name: Name
    settings: dict[str, Any] | None = None


class SpaceView(BaseModel):
    """A space: where documents live and who may see them."""

    id: str
    name: str
    settings: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime


class GrantDraft(_Draft):
    """The role a principal gets on a space."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "contributor"}]})

    role: SpaceRole


class GrantView(BaseModel):
    """Who has which role on a space."""

    principal: str
    role: SpaceRole


class ApiKeyDraft(_Draft):
    """A new key. Without `scopes` it can do all that its user's role can."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"user_id": "01890a5d-ac96-774b-bcce-b302099a8057", "scopes": ["read"]}]},
    )

    user_id: str
    scopes: list[Scope] | None = Field(None, min_length=1, max_length=3)
    expires_at: AwareDatetime | None = None


class ApiKeyCreated(BaseModel):
    """`key` is shown in this reply and never again."""

    id: str
    key: str


class ApiKeyView(BaseModel):
    """A key without its secret."""

    id: str
    user_id: str
    scopes: list[Scope] | None
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


class Me(BaseModel):
    """Who this key is, and what it may do at this moment."""

    user_id: str
    tenant_id: str
    role: TenantRole
    groups: list[str]
    scopes: list[Scope]


class HealthPart(BaseModel):
    """One engine as `/health/ready` and `/diagnostics` see it. `needed`: without it no request can be served."""

    name: str
    severity: Literal["ok", "warning", "error"]
    detail: str
    remedy: str | None = None
    needed: bool = False
