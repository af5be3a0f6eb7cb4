"""OpenAPI document: generated as version 3.1 from the route table, which the application uses too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from everturn import __version__, api
from everturn.server.decode import ID_LIMIT
from everturn.server.route import Route

REF: Final = "#/components/schemas/{name}"
BEARER: Final[list[dict[str, list[str]]]] = [{"key": []}, {"login": []}]
ABOUT: Final = """\
A durable runtime for chat agents that call tools. Requests need a credential, also from the same machine, unless a route says otherwise.
The response for a thing that the caller may not see is the same as for one that does not exist. Repeat a request that writes with the same
`Idempotency-Key`, and it is done once.
"""
STREAM: Final = (
    "Server-sent events; the schema describes one event. `data` is JSON. In streams of Everturn's API, `id` is a cursor: send it as "
    "`Last-Event-ID` or `?after=` to resume the stream. A line that begins with `:` keeps the connection open."
)
TAGS: Final = {
    "native": "The API of Everturn.",
    "about": "The server itself.",
    "openai": "The OpenAI-compatible API.",
    "ai-sdk": "The protocol of the AI SDK's `useChat`.",
    "ag-ui": "The AG-UI protocol.",
}
REASONS: Final = {
    400: "The request cannot be parsed.",
    401: "Credentials are missing or invalid.",
    403: "The caller is not allowed to do this.",
    404: "It does not exist, or the caller may not see it.",
    405: "The path does not support the method.",
    408: "The request body arrived too slowly.",
    409: "It conflicts with the current state.",
    410: "It has expired.",
    413: "The request body is too large.",
    415: "The media type is not supported.",
    422: "A value is invalid; `where` names it.",
    429: "A limit of the tenant was reached; `Retry-After` says when to try again.",
    431: "The request headers are too large.",
    500: "Internal error; the message has its id in the server's log.",
    503: "Temporarily unavailable; `Retry-After` says when to try again.",
}


def build_openapi(routes: Sequence[Route]) -> dict[str, Any]:
    """The OpenAPI document. The same routes give the same bytes."""
    types = list(_types(routes))
    schemas, components = msgspec.json.schema_components(types, schema_hook=_anything, ref_template=REF)
    named = dict(zip(map(_key, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named)
    tags = sorted({route.tag for route in routes})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Everturn", "version": __version__, "description": ABOUT},
        "tags": [{"name": tag, "description": TAGS.get(tag, tag)} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": {name: components[name] for name in sorted(components)},
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key `evk_…`, or a token of OIDC."},
                "login": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-everturn",
                    "description": "The cookie of a login; without https it is called `everturn-` and the port. "
                    "Whatever changes something also takes `X-CSRF-Token`: `csrf` of GET /api/me.",
                },
            },
        },
        "security": BEARER,
    }


def _types(routes: Iterable[Route]) -> Iterable[Any]:
    seen: set[str] = set()
    for kind in [api.ErrorResponse, *(kind for route in routes for kind in (route.body, route.answer))]:
        if kind is not None and _key(kind) not in seen:
            seen.add(_key(kind))
            yield kind


def _key(kind: Any) -> str:
    return str(kind)


def _anything(kind: type) -> dict[str, Any]:
    """The schema of types that msgspec has none for: any JSON value."""
    return {"description": "Any JSON value."}


def _operation(route: Route, named: dict[str, Any]) -> dict[str, Any]:
    description = (
        "Public: no credential is needed."
        if route.needs is None
        else f"Requires the role `{route.needs}`, or a higher one."
    )
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "description": description,
        "tags": [route.tag],
        "parameters": _parameters(route),
        "responses": _responses(route, named),
    }
    if route.needs is None:
        operation["security"] = []
    if route.takes == "bytes":
        content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in route.media or ("*/*",)}
        operation["requestBody"] = {"required": True, "content": content}
    elif route.body is not None:
        content = {"application/json": {"schema": named[_key(route.body)]}}
        operation["requestBody"] = {"required": _is_required(route.body), "content": content}
    return operation


def _is_required(kind: Any) -> bool:
    """Whether a body is required: an empty one is read as an empty object."""
    try:
        msgspec.convert({}, kind)
    except msgspec.ValidationError:
        return True
    return False


def _parameters(route: Route) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": part[1:-1],
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": ID_LIMIT},
        }
        for part in route.path.split("/")
        if part.startswith("{")
    ]
    for param in route.query:
        parameter = {"name": param.name, "in": "query", "required": param.is_needed, "schema": param.schema}
        parameters.append(parameter | ({"description": param.about} if param.about else {}))
    if route.method == "POST" and route.needs is not None and route.body is not None:
        about = "The same key with the same body is done once; with another body it is refused (409)."
        schema = {"type": "string", "maxLength": ID_LIMIT}
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": schema, "description": about})
    if route.gives == "events":
        about = "The cursor of the last message that was seen."
        parameters.append({"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}, "description": about})
    return parameters


def _responses(route: Route, named: dict[str, Any]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done." if route.answer is None else "As asked."}
    if route.gives == "events":
        success = {"description": STREAM, "content": {"text/event-stream": {"schema": _item(route, named)}}}
    elif route.gives == "bytes":
        shape = {"schema": {"type": "string", "format": "binary"}}
        success["content"] = dict.fromkeys(route.media, shape)
    elif route.answer is not None:
        success["content"] = {"application/json": {"schema": named[_key(route.answer)]}}
    failure = (
        {"schema": named[_key(api.ErrorResponse)]}
        if route.tag in ("native", "about")
        else {"schema": {"type": "object"}}
    )
    content: dict[str, Any] = {"application/json": failure}
    if route.needs is None and route.media:  # browsers get errors as HTML
        content["text/html"] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {str(route.status): success}
    if route.gives == "events" and route.tag != "native":
        responses["204"] = {"description": "Nothing is under way."}
    for status, why in REASONS.items():
        response: dict[str, Any] = {"description": why, "content": content}
        if status in (429, 503):
            response["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
        responses[str(status)] = response
    return responses


def _item(route: Route, named: dict[str, Any]) -> dict[str, Any]:
    """The schema of one event of a stream."""
    data: dict[str, Any] = {"type": "string"}
    if route.answer is not None:
        data |= {"contentMediaType": "application/json", "contentSchema": named[_key(route.answer)]}
    return {"type": "object", "required": ["data"], "properties": {"id": {"type": "string"}, "data": data}}


def find_references(value: Any) -> Iterable[str]:
    """Every `$ref` in a document."""
    if isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            if name == "$ref" and isinstance(item, str):
                yield item
            yield from find_references(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from find_references(item)
