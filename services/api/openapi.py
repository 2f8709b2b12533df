"""OpenAPI 3.1 of what is mounted: every operation's errors are problems, and only what needs a key says so."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from services.api.problems import MEDIA_TYPE, ProblemShape

DESCRIPTION = (
    "Documents in, cited answers out. Every call but health needs `Authorization: Bearer <key>`. Errors are "
    "`application/problem+json` (RFC 9457); lists are `{items, next_cursor}`; `Idempotency-Key` works on every POST."
)
TAGS = [
    {"name": "documents", "description": "Sending, reading, changing and removing documents."},
    {"name": "search", "description": "Finding passages."},
    {"name": "answers", "description": "Answers with citations."},
    {"name": "runs", "description": "Work under way and what happened in it."},
    {"name": "agents", "description": "Agents as stored configuration."},
    {"name": "sessions", "description": "Conversations with agents."},
    {"name": "approvals", "description": "What agents ask before they act, and decisions."},
    {"name": "memories", "description": "What agents remember of a person."},
    {"name": "usage", "description": "What models were asked for, and what it cost."},
    {"name": "openai", "description": "Answers and agents as models of OpenAI's protocol."},
    {"name": "spaces", "description": "Where documents live and who may see them."},
    {"name": "identity", "description": "Users, groups and API keys."},
    {"name": "operations", "description": "Health, diagnostics and metrics."},
]
ERRORS = {
    "400": "The request cannot be read",
    "401": "No key, or one that does not count",
    "403": "The key may see this but not do it",
    "404": "Unknown, or hidden from this key",
    "408": "The body came too slowly",
    "409": "Conflicts with what is there",
    "413": "Over a limit",
    "415": "Another media type is needed",
    "422": "The request is not valid",
    "429": "Too many requests; `Retry-After` says when",
    "503": "An engine does not answer; `Retry-After` says when",
}
_METHODS = {"get", "put", "post", "delete", "patch"}


def install(app: FastAPI) -> None:
    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", description=DESCRIPTION, tags=TAGS,
        routes=app.routes,
    )  # fmt: skip
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = ProblemShape.model_json_schema(ref_template="#/components/schemas/{model}")
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path in document["paths"].values():
        for method, operation in path.items():
            if method in _METHODS:
                _add_errors(operation, has_body="requestBody" in operation)
    return document


def _add_errors(operation: dict[str, Any], *, has_body: bool) -> None:
    keyed = bool(operation.get("security"))
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status, description in ERRORS.items():
        if status in {"413", "415", "408"} and not has_body:
            continue
        if status in {"401", "403", "404", "409", "422"} and not keyed:
            operation["responses"].pop(status, None)
            continue
        if status in operation["responses"] and status != "422":
            continue
        operation["responses"][status] = {"description": description, "content": problem}
