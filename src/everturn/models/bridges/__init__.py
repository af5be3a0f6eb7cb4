"""Bridges: models of other libraries as models of ours, for vendors whose wire format is not implemented here.

Each bridge is imported by its own name, and imports its library only when a model is created. This file has what both
need.

    pydantic_ai           any model of pydantic-ai, with `pip install 'everturn[pydantic-ai]'`
    pydantic_ai_messages  the messages for it
    litellm               any model of litellm, with `pip install 'everturn[litellm]'`
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.requests import ModelRequest, RequestCall, ToolSpec
from everturn.errors import ConfigError, ModelError
from everturn.models.endpoint import redact_key as hidden
from everturn.models.failures import EXCERPT, response_error, stream_error
from everturn.models.formats.lenient_json import truncated_error
from everturn.models.formats.tool_schemas import tool_schema, with_plain_properties


def import_optional(module: str, extra: str) -> Any:
    """Import an optional library.

    Raises:
        ConfigError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ConfigError(f"{module} cannot be imported: pip install 'everturn[{extra}]' ({missing})") from None


def prepare_request(request: ModelRequest) -> ModelRequest:
    """Return the request with tools that every vendor accepts: plain schemas, and tools that its history mentions."""
    tools = [_plain(tool) for tool in request.tools]
    called = {part.name for message in request.messages for part in message.parts if isinstance(part, RequestCall)}
    if tools or not called:
        return replace(request, tools=tools)
    tools = [ToolSpec(name, "Not available now.", {}) for name in sorted(called)]
    return replace(request, tools=tools, params={**request.params, "tool_choice": "none"})


def _plain(tool: ToolSpec) -> ToolSpec:
    schema, odd = with_plain_properties(tool_schema(tool.schema))
    if not odd:
        return tool
    return replace(tool, schema=schema, description=f"{tool.description}\nIt takes {', '.join(odd)} as well.".strip())


def library_status_error(status: int, headers: object, body: object, names: Mapping[str, str]) -> ModelError:
    """Return the error for an HTTP error status, from what a library kept of the response."""
    lowercase_headers = {
        str(key).lower(): str(value) for key, value in cast("Mapping[Any, Any]", headers or {}).items()
    }
    text = body if isinstance(body, str) else encode_canonical(body) if body else ""
    return response_error(status, lowercase_headers, replace_surrogates(text).encode(), names)


def library_stream_error(body: object, names: Mapping[str, str]) -> ModelError:
    """Return the error for an error in the middle of a stream, wrapped by the provider or bare."""
    inner = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    return stream_error(inner or cast("object", body), names)


def is_network_error(errors: Iterable[BaseException]) -> bool:
    """Return whether the network failed. The HTTP libraries differ, but they agree on the name of the error."""
    return any("TransportError" in kind.__name__ for error in errors for kind in type(error).__mro__)


def library_network_error(error: BaseException, where: str, has_begun: bool) -> ModelError:
    """Return the error for a connection that broke, or was never established."""
    if has_begun:
        return truncated_error("the connection broke")
    return ModelError(
        f"{where} does not answer: {replace_surrogates(str(error))[:EXCERPT]}", kind="network", retryable=True
    )


def library_timeout_error(error: BaseException) -> ModelError:
    """Return the error for a timeout of the library."""
    return ModelError(
        f"the model returned nothing: {replace_surrogates(str(error))[:EXCERPT]}", kind="stalled", retryable=True
    )


def redact_error_key(error: ModelError, key: object) -> ModelError:
    """Return the error without the API key, which some providers repeat."""
    text = hidden(str(error), key) if isinstance(key, str) else str(error)
    return error if text == str(error) else ModelError(text, error.kind, error.retryable, error.retry_after)
