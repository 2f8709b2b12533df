"""Who calls: the holder of the API key for sandboxes as such, the holder of a sandbox's token for what is in it."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping

from connectrpc.code import Code
from connectrpc.errors import ConnectError

from infra.e2b_local.sandbox import Sandbox
from infra.e2b_local.sandboxes import Sandboxes, WrongToken

USER = "user"


class Caller(Exception):
    """Base of what is wrong with a caller."""


class NotFoundHere(Caller):
    """The SDK takes the words "was not found" for a sandbox that was killed, paused or let go."""


class NotAllowed(Caller):
    """No token, or not this sandbox's."""


class NoSuchUser(Caller):
    """A sandbox has one user."""


def holds_key(headers: Mapping[str, str], key: str) -> bool:
    return hmac.compare_digest(headers.get("x-api-key", "").encode(), key.encode())


def sandbox_of(headers: Mapping[str, str], sandboxes: Sandboxes) -> Sandbox:
    """The running sandbox that the SDK names in its headers; Caller when there is none for this caller."""
    sandbox_id = headers.get("e2b-sandbox-id", "")
    try:
        sandbox = sandboxes.running(sandbox_id, headers.get("x-access-token", ""))
    except WrongToken:
        raise NotAllowed(f"the access token is not that of sandbox {sandbox_id!r}") from None
    if sandbox is None:
        raise NotFoundHere(f"The sandbox {sandbox_id!r} was not found")
    check_user(_user_in(headers.get("authorization", "")))
    return sandbox


def check_user(name: str | None) -> None:
    if name not in (None, "", USER):
        raise NoSuchUser(f"there is no user {name!r} here: everything in a local sandbox is done as {USER!r}")


def connect_error(error: Caller) -> ConnectError:
    codes = {NotFoundHere: Code.UNAVAILABLE, NotAllowed: Code.UNAUTHENTICATED}
    return ConnectError(codes.get(type(error), Code.INVALID_ARGUMENT), str(error))


def _user_in(authorization: str) -> str | None:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return None
