"""Routes of the provider: the format and the model of a path, also of the paths that the clouds have.

- Azure OpenAI: `/openai/v1/…`, and the older `/openai/deployments/{model}/…`
- Vertex AI: `/v1beta1/projects/…/publishers/google/models/{model}:…`, and Anthropic's
- Amazon Bedrock: `/model/{model}/converse-stream`
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal
from urllib.parse import parse_qs, unquote

from msgspec import Struct

from everturn.testing.provider.faults import Format, Refused

Cloud = Literal["", "azure", "vertex", "bedrock"]
PATHS: Final[dict[str, Format]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/api/chat": "ollama",
}
VERTEX_VERSION: Final = "vertex-2023-10-16"
_PLACE = r"(?:/projects/[^/]+/locations/[a-z0-9-]+)?"
_NAMED: Final[tuple[tuple[re.Pattern[str], Format, Cloud], ...]] = (
    (re.compile(r"/v1beta/models/(.+):streamGenerateContent"), "gemini", ""),
    (re.compile(r"/openai/deployments/([^/]+)/chat/completions"), "chat", "azure"),
    (
        re.compile(rf"/v1beta1{_PLACE}/publishers/google/models/([^/]+):streamGenerateContent"),
        "gemini",
        "vertex",
    ),
    (re.compile(rf"/v1{_PLACE}/publishers/anthropic/models/([^/]+):streamRawPredict"), "messages", "vertex"),
    (re.compile(r"/model/([^/]+)/converse-stream"), "converse", "bedrock"),
)
_AZURE: Final[dict[str, tuple[Format, bool]]] = {  # the format, and whether the version is in the query
    "/openai/v1/chat/completions": ("chat", False),
    "/openai/v1/responses": ("responses", False),
    "/openai/responses": ("responses", True),
}


class ProviderRoute(Struct, frozen=True):
    """What a path says: the format, the model if it is in the path, and the cloud."""

    format: Format
    model: str = ""
    cloud: Cloud = ""
    needs_version: bool = False


def find_route(path: str) -> ProviderRoute | None:
    """The route of a path."""
    if (format := PATHS.get(path)) is not None:
        return ProviderRoute(format)
    if path in _AZURE:
        format, needs_version = _AZURE[path]
        return ProviderRoute(format, cloud="azure", needs_version=needs_version)
    for pattern, format, cloud in _NAMED:
        if (found := pattern.fullmatch(path)) is not None:
            return ProviderRoute(format, unquote(found[1]), cloud, needs_version=cloud == "azure")
    return None


def check_route(route: ProviderRoute, query: str, body: dict[str, Any]) -> dict[str, Any]:
    """Refuse what only a cloud refuses; returns the body as the vendor's own API has it.

    Raises:
        Refused: the version is missing, or the body names a model that is in the path.
    """
    if route.needs_version and not parse_qs(query).get("api-version"):
        raise Refused("Resource not found", code="404", status=404)
    if route.cloud != "vertex" or route.format != "messages":
        return {**body, "model": route.model or body.get("model")}
    if body.get("anthropic_version") != VERTEX_VERSION:
        raise Refused(f"anthropic_version: Input should be '{VERTEX_VERSION}'")
    if "model" in body:
        raise Refused("model: Extra inputs are not permitted")
    return {**{name: value for name, value in body.items() if name != "anthropic_version"}, "model": route.model}
