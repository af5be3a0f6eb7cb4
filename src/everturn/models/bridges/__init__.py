"""Models of other libraries → ours, for vendors whose wire format nobody speaks here.

    pydantic_ai.py   any model of pydantic-ai, with `pip install 'everturn[pydantic-ai]'`; its messages are written beside
    litellm.py       any model of litellm, with `pip install 'everturn[litellm]'`

Each is imported by its own name, and brings its library in only when a model is made. This file holds what both need.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from everturn.core.canonical import canonical, clean
from everturn.core.requests import ModelRequest, RequestCall, ToolSpec
from everturn.errors import ConfigError, ModelError
from everturn.models.endpoint import without_key as hidden
from everturn.models.failures import EXCERPT, in_band, refused
from everturn.models.formats.loose import cut_off
from everturn.models.formats.schemas import tool_schema, with_plain_properties


def bring(module: str, extra: str) -> Any:
    """Import a library that is an extra.

    Raises:
        ConfigError: it is not installed; the text says how to.
    """
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ConfigError(f"{module} cannot be imported: pip install 'everturn[{extra}]' ({missing})") from None


def prepared(request: ModelRequest) -> ModelRequest:
    """The same request with tools that every vendor takes: plain ones, and those that its history mentions."""
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


def from_status(status: int, headers: object, body: object, names: Mapping[str, str]) -> ModelError:
    """What a provider refused, out of the pieces of it that a library kept."""
    told = {str(key).lower(): str(value) for key, value in cast("Mapping[Any, Any]", headers or {}).items()}
    text = body if isinstance(body, str) else canonical(body) if body else ""
    return refused(status, told, clean(text).encode(), names)


def from_stream(body: object, names: Mapping[str, str]) -> ModelError:
    """What a provider said in the middle of a stream; in a wrapper of its own, or bare."""
    inner = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    return in_band(inner or cast("object", body), names)


def is_broken(errors: Iterable[BaseException]) -> bool:
    """Whether the network is to blame. Which HTTP library was used is not for us to know, but they agree on the name."""
    return any("TransportError" in kind.__name__ for error in errors for kind in type(error).__mro__)


def from_network(error: BaseException, where: str, has_begun: bool) -> ModelError:
    """A connection that broke, or never was."""
    if has_begun:
        return cut_off("the connection broke")
    return ModelError(f"{where} does not answer: {clean(str(error))[:EXCERPT]}", kind="network", retryable=True)


def stalled(error: BaseException) -> ModelError:
    """The library lost patience before we did."""
    return ModelError(f"the model said nothing: {clean(str(error))[:EXCERPT]}", kind="stalled", retryable=True)


def without_key(error: ModelError, key: object) -> ModelError:
    """The same error, from a provider that does not repeat the key."""
    told = hidden(str(error), key) if isinstance(key, str) else str(error)
    return error if told == str(error) else ModelError(told, error.kind, error.retryable, error.retry_after)
