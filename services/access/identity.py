"""The identity services of one process, together."""

from __future__ import annotations

from dataclasses import dataclass

from services.access.api_keys import ApiKeys
from services.access.groups import Groups
from services.access.spaces import Spaces
from services.access.users import Users
from services.stores.database import Database


@dataclass(frozen=True)
class Identity:
    """Users, groups, spaces with their grants, and API keys."""

    users: Users
    groups: Groups
    spaces: Spaces
    api_keys: ApiKeys

    @classmethod
    def of(cls, database: Database) -> Identity:
        return cls(Users(database), Groups(database), Spaces(database), ApiKeys(database))
