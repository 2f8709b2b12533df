"""Who acts, and what that lets them do at this moment (invariant 9)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

TenantRole = Literal["member", "admin"]
SpaceRole = Literal["viewer", "contributor", "manager"]
Scope = Literal["read", "write", "admin"]

SPACE_READERS = "space"
"""The reader that means: everyone with a grant on the space."""


class Actor(BaseModel):
    """Who asked. Workflows carry this and nothing about rights. `key` is null for the system itself."""

    model_config = ConfigDict(frozen=True)

    tenant: str
    user: str
    key: str | None = None


class Access(BaseModel):
    """An actor's rights, read from Postgres just now: current memberships met with the key's scopes."""

    model_config = ConfigDict(frozen=True)

    actor: Actor
    role: TenantRole
    groups: list[str] = Field(default_factory=list)
    scopes: frozenset[Scope] = frozenset()
    spaces: dict[str, SpaceRole] = Field(default_factory=dict)

    @property
    def reader_principals(self) -> list[str]:
        """The principals that an index payload's `readers` must share one of (with the space itself)."""
        own = [f"user:{self.actor.user}", *(f"group:{group}" for group in self.groups)]
        shared = [f"space:{space}" for space in self.spaces]
        managed = [f"manager:{space}" for space, role in self.spaces.items() if role == "manager"]
        return own + shared + managed


def index_readers(space: str, owner: str | None, readers: list[str]) -> list[str]:
    """A document's readers as its index payload holds them; managers and the owner always read."""
    named = [f"space:{space}" if reader == SPACE_READERS else reader for reader in readers]
    owners = [f"user:{owner}"] if owner else []
    return sorted({*named, *owners, f"manager:{space}"})
