"""`/docs`: the API's reference as one plain page, made from its own OpenAPI. It loads nothing from anywhere."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

router = APIRouter()
_CODE_SPAN = re.compile(r"`([^`]+)`")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
summary { cursor: pointer; padding: .3rem 0; }
code, pre { font-family: ui-monospace, monospace; font-size: .9rem; }
pre { overflow-x: auto; padding: .7rem; border: 1px solid #8885; border-radius: .4rem; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
"""


@router.get("/docs")
async def reference(request: Request) -> HTMLResponse:
    document = request.app.openapi()
    parts = [f"<h1>{escape(document['info']['title'])} API</h1>", f"<p>{_prose(document['info']['description'])}</p>"]
    parts.append('<p>Machine-readable: <a href="/openapi.json">/openapi.json</a></p>')
    for tag in document["tags"]:
        operations = list(_operations(document, tag["name"]))
        if operations:
            parts.append(f"<h2>{escape(tag['name'])}</h2><p>{_prose(tag['description'])}</p>")
            parts.extend(operations)
    title = escape(document["info"]["title"])
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>"
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"})


def _prose(text: str) -> str:
    """Descriptions are written for people and machines alike: of Markdown they use code spans."""
    return _CODE_SPAN.sub(r"<code>\1</code>", escape(text))


def _operations(document: dict[str, Any], tag: str) -> list[str]:
    return [
        _operation(document, path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if tag in operation.get("tags", [])
    ]


def _operation(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> str:
    text = operation.get("description") or operation.get("summary", "")
    parameters = "".join(
        f"<li><code>{escape(each['name'])}</code> ({escape(each['in'])}) {_prose(each.get('description', ''))}</li>"
        for each in operation.get("parameters", [])
    )
    statuses = ", ".join(f"{status} {reply.get('description', '')}" for status, reply in operation["responses"].items())
    return (
        f'<details><summary><span class="method">{method.upper()}</span> <code>{escape(path)}</code></summary>'
        f"<p>{_prose(text)}</p>{f'<ul>{parameters}</ul>' if parameters else ''}{_body(document, operation)}"
        f"<p>{_prose(statuses)}</p></details>"
    )


def _body(document: dict[str, Any], operation: dict[str, Any]) -> str:
    """The example of the body, else its schema."""
    shown = []
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content.get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        schema = document["components"]["schemas"].get(name, schema)
        example = (schema.get("examples") or [schema])[0]
        text = json.dumps(example, indent=2, ensure_ascii=False)
        shown.append(f"<p>Body: <code>{escape(media_type)}</code></p><pre>{escape(text)}</pre>")
    return "".join(shown)
