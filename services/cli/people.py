"""Users and groups by what a person calls them: an email or a name where the API takes an id."""

from __future__ import annotations

from services.cli.client import ApiClient, path_of
from services.cli.failures import BadUsage

_LOOKED_THROUGH = 10_000


def user_id(client: ApiClient, user: str) -> str:
    return _found(client, "users", "email", user) if "@" in user else user


def group_id(client: ApiClient, group: str) -> str:
    """A group's id, or the group whose name this is; an id wins over a name."""
    groups = client.items(path_of("groups"), limit=_LOOKED_THROUGH)["items"]
    if any(entry["id"] == group for entry in groups):
        return group
    return _found(client, "groups", "name", group)


def principal(client: ApiClient, named: str) -> str:
    """`user:<id>`, `group:<id>` or `tenant`, from the same with an email or a name."""
    kind, _, who = named.partition(":")
    if named == "tenant":
        return named
    if kind == "user" and who:
        return f"user:{user_id(client, who)}"
    if kind == "group" and who:
        return f"group:{group_id(client, who)}"
    raise BadUsage(f"{named!r} names nobody.", "Give user:ID, user:EMAIL, group:ID, group:NAME or tenant.")


def _found(client: ApiClient, collection: str, field: str, wanted: str) -> str:
    entries = client.items(path_of(collection), limit=_LOOKED_THROUGH)["items"]
    found = [entry["id"] for entry in entries if str(entry[field]).casefold() == wanted.casefold()]
    if len(found) != 1:
        count = "no" if not found else "more than one"
        raise BadUsage(
            f"There is {count} {field} {wanted!r}.", f"`perdure {collection} list` shows the ids.", "not_found"
        )
    return str(found[0])
