"""Users, groups, API keys and `GET /me`."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from schemas.errors import Unauthenticated
from schemas.identity import (
    ApiKeyCreated,
    ApiKeyDraft,
    ApiKeyView,
    GroupDraft,
    GroupView,
    Me,
    UserChange,
    UserDraft,
    UserView,
)  # fmt: skip
from services.access.load_access import load_access
from services.api.authentication import Admin, Anyone, KeyedRoute
from services.api.idempotency import OnceKey
from services.api.pagination import Page, Paging
from services.api.state import StreamRole

router = APIRouter(route_class=KeyedRoute, tags=["identity"])
SHOWN_ONCE = frozenset({"key"})


@router.get("/me")
async def me(caller: Anyone, container: StreamRole) -> Me:
    """Who this key is, and what it may do now."""
    async with container.database.begin(caller.actor.tenant) as transaction:
        access = await load_access(transaction, caller.actor)
    if access is None:
        raise Unauthenticated("This API key is unknown, revoked or expired.")
    return Me(
        user_id=caller.actor.user,
        tenant_id=caller.actor.tenant,
        role=access.role,
        groups=access.groups,
        scopes=sorted(access.scopes),
    )


@router.post("/users", status_code=201, response_model=UserView)
async def create_user(draft: UserDraft, caller: Admin, container: StreamRole, once: OnceKey) -> UserView | Response:
    """Makes a user; give them a key with `POST /api-keys`."""
    return await once(draft, lambda: container.identity.users.create(caller.actor, draft))


@router.get("/users")
async def list_users(caller: Admin, container: StreamRole, paging: Paging) -> Page[UserView]:
    users = await container.identity.users.page(caller.actor, paging.after_text(), paging.fetch)
    return paging.page(users, lambda user: user.id)


@router.get("/users/{user_id}")
async def get_user(user_id: str, caller: Admin, container: StreamRole) -> UserView:
    return await container.identity.users.get(caller.actor, user_id)


@router.put("/users/{user_id}")
async def change_user(user_id: str, change: UserChange, caller: Admin, container: StreamRole) -> UserView:
    """Fields left out stay as they are. Disabling holds at once for every key of the user."""
    return await container.identity.users.change(caller.actor, user_id, change)


@router.post("/groups", status_code=201, response_model=GroupView)
async def create_group(draft: GroupDraft, caller: Admin, container: StreamRole, once: OnceKey) -> GroupView | Response:
    return await once(draft, lambda: container.identity.groups.create(caller.actor, draft))


@router.get("/groups")
async def list_groups(caller: Admin, container: StreamRole, paging: Paging) -> Page[GroupView]:
    groups = await container.identity.groups.page(caller.actor, paging.after_text(), paging.fetch)
    return paging.page(groups, lambda group: group.id)


@router.delete("/groups/{group_id}", status_code=204)
async def remove_group(group_id: str, caller: Admin, container: StreamRole) -> None:
    """Its grants go with it."""
    await container.identity.groups.remove(caller.actor, group_id)


@router.put("/groups/{group_id}/members/{user_id}", status_code=204)
async def add_member(group_id: str, user_id: str, caller: Admin, container: StreamRole) -> None:
    await container.identity.groups.add_member(caller.actor, group_id, user_id)


@router.delete("/groups/{group_id}/members/{user_id}", status_code=204)
async def remove_member(group_id: str, user_id: str, caller: Admin, container: StreamRole) -> None:
    await container.identity.groups.remove_member(caller.actor, group_id, user_id)


@router.post("/api-keys", status_code=201, response_model=ApiKeyCreated)
async def create_api_key(
    draft: ApiKeyDraft, caller: Admin, container: StreamRole, once: OnceKey
) -> ApiKeyCreated | Response:
    """The key is in this reply and nowhere else; a replay by Idempotency-Key leaves it out."""
    return await once(draft, lambda: container.identity.api_keys.create(caller.actor, draft), hidden=SHOWN_ONCE)


@router.get("/api-keys")
async def list_api_keys(caller: Admin, container: StreamRole, paging: Paging) -> Page[ApiKeyView]:
    keys = await container.identity.api_keys.page(caller.actor, paging.after_text(), paging.fetch)
    return paging.page(keys, lambda key: key.id)


@router.delete("/api-keys/{key_id}", status_code=204)
async def revoke_api_key(key_id: str, caller: Admin, container: StreamRole) -> None:
    """Holds for the next request and ends open streams."""
    await container.identity.api_keys.revoke(caller.actor, key_id)
