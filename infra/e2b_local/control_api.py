"""E2B's control API, as far as its SDK needs it to make, find, pause and end sandboxes."""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.e2b_local.callers import holds_key
from infra.e2b_local.sandbox import Sandbox
from infra.e2b_local.sandboxes import NewSandbox, Sandboxes, SandboxRefused

log = logging.getLogger(__name__)

ENVD_VERSION = "0.6.1"
"""The SDK chooses what to ask for by this: later versions can watch with entries and keep metadata of files, we cannot."""

_TEMPLATE = "base"
_DEFAULT_TIMEOUT_S = 300
_MOST_LISTED = 100
_BODY_BYTES = 1 << 20


class _Body(BaseModel):
    """Unknown fields are left alone: newer SDKs send more."""

    model_config = ConfigDict(extra="ignore")


class _Create(_Body):
    templateID: str
    timeout: int = Field(_DEFAULT_TIMEOUT_S, ge=0)
    autoPause: bool = False
    allow_internet_access: bool | None = None
    metadata: dict[str, str] = {}
    envVars: dict[str, str] = {}
    mcp: object = None
    volumeMounts: list[object] = []


class _Timeout(_Body):
    timeout: int = Field(_DEFAULT_TIMEOUT_S, ge=0)


class ControlApi:
    """Every call needs the server's API key."""

    def __init__(self, sandboxes: Sandboxes, api_key: str) -> None:
        self._sandboxes = sandboxes
        self._api_key = api_key

    def routes(self) -> list[Route]:
        one = "/sandboxes/{sandbox}"
        return [
            self._route("/v2/sandboxes", "POST", self._create),
            self._route("/v2/sandboxes", "GET", self._list),
            self._route("/v2/sandboxes/{sandbox}/connect", "POST", self._connect),
            self._route(one, "GET", self._get),
            self._route(one, "DELETE", self._kill),
            self._route(f"{one}/timeout", "POST", self._set_timeout),
            self._route(f"{one}/pause", "POST", self._pause),
            self._route("/{rest:path}", "GET", self._unsupported),
            self._route("/{rest:path}", "POST", self._unsupported),
            self._route("/{rest:path}", "PUT", self._unsupported),
            self._route("/{rest:path}", "DELETE", self._unsupported),
        ]

    def _route(self, path: str, method: str, handle: Any) -> Route:
        async def guarded(request: Request) -> Response:
            if not holds_key(request.headers, self._api_key):
                return _problem(401, "the API key is missing or wrong")
            try:
                answer: Response = await handle(request)
            except SandboxRefused as error:
                return _problem(error.status, str(error))
            except ValidationError as error:
                first = error.errors()[0]
                return _problem(400, f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg']}")
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                return _problem(400, f"the request is no JSON: {error}")
            except OSError as error:
                log.exception("%s %s", request.method, request.url.path)
                return _problem(500, f"the machine cannot do this now: {error.strerror}")
            return answer

        return Route(path, guarded, methods=[method])

    async def _create(self, request: Request) -> Response:
        body = _Create.model_validate(await _json(request))
        if body.templateID != _TEMPLATE:
            raise SandboxRefused(
                404, f"there is no template {body.templateID!r}: local sandboxes have only {_TEMPLATE!r}"
            )
        if body.allow_internet_access:
            raise SandboxRefused(400, "local sandboxes have no network; do not ask for internet access")
        if body.mcp is not None or body.volumeMounts:
            raise SandboxRefused(400, "local sandboxes support neither MCP gateways nor volumes")
        if any("=" in name or "\0" in name + value or not name for name, value in body.envVars.items()):
            raise SandboxRefused(400, "an environment variable has a name that cannot be one")
        new = NewSandbox(
            template=body.templateID,
            metadata=body.metadata,
            envs=body.envVars,
            timeout_s=self._life(body.timeout),
            on_timeout_pause=body.autoPause,
            key=request.headers.get("idempotency-key"),
        )
        return JSONResponse(_access(await self._sandboxes.create(new)), 201)

    async def _list(self, request: Request) -> Response:
        asked = request.query_params
        states = [state for value in asked.getlist("state") for state in value.split(",") if state]
        wanted = {unquote(name): unquote(value) for name, value in parse_qsl(asked.get("metadata", ""))}
        found = [
            sandbox
            for sandbox in self._sandboxes.all()
            if (not states or sandbox.record.state in states) and wanted.items() <= sandbox.record.metadata.items()
        ]
        if asked.get("order") == "desc":
            found.reverse()
        first = int(asked["nextToken"]) if asked.get("nextToken", "").isdigit() else 0
        limit = int(asked["limit"]) if asked.get("limit", "").isdigit() else _MOST_LISTED
        count = max(1, min(limit, _MOST_LISTED))
        more = {"x-next-token": str(first + count)} if len(found) > first + count else {}
        return JSONResponse([self._detail(each) for each in found[first : first + count]], headers=more)

    async def _connect(self, request: Request) -> Response:
        body = _Timeout.model_validate(await _json(request))
        sandbox, resumed = await self._sandboxes.connect(_id(request), self._life(body.timeout))
        return JSONResponse(_access(sandbox), 201 if resumed else 200)

    async def _get(self, request: Request) -> Response:
        return JSONResponse(self._detail(self._sandboxes.get(_id(request))))

    async def _kill(self, request: Request) -> Response:
        await self._sandboxes.kill(_id(request))
        return Response(status_code=204)

    async def _set_timeout(self, request: Request) -> Response:
        body = _Timeout.model_validate(await _json(request))
        self._sandboxes.set_timeout(_id(request), self._life(body.timeout))
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        await self._sandboxes.pause(_id(request))
        return Response(status_code=204)

    async def _unsupported(self, request: Request) -> Response:
        raise SandboxRefused(501, f"{request.method} {request.url.path} is not supported by local sandboxes")

    def _life(self, timeout_s: int) -> int:
        most = self._sandboxes.host.limits.life_s
        if timeout_s > most:
            raise SandboxRefused(400, f"a sandbox may be asked to live for at most {most} s (limit life_s)")
        return timeout_s

    def _detail(self, sandbox: Sandbox) -> dict[str, Any]:
        record, limits = sandbox.record, self._sandboxes.host.limits
        return {
            **_access(sandbox),
            "startedAt": datetime.fromtimestamp(record.started_at, UTC).isoformat(),
            "endAt": datetime.fromtimestamp(record.end_at, UTC).isoformat(),
            "cpuCount": max(1, math.floor(limits.cpus)),
            "memoryMB": limits.memory_mb,
            "diskSizeMB": limits.workspace_mb,
            "state": record.state,
            "metadata": record.metadata,
            "allowInternetAccess": False,
        }


def _access(sandbox: Sandbox) -> dict[str, Any]:
    record = sandbox.record
    return {
        "sandboxID": record.id,
        "templateID": record.template,
        "clientID": "local",
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": record.token,
        "domain": None,
    }


def _id(request: Request) -> str:
    return str(request.path_params["sandbox"])


async def _json(request: Request) -> Any:
    """The body, {} when there is none."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > _BODY_BYTES:
            raise SandboxRefused(413, f"the request is over {_BODY_BYTES} bytes")
    return json.loads(data) if data else {}


def _problem(status: int, message: str) -> JSONResponse:
    return JSONResponse({"code": status, "message": message}, status)
