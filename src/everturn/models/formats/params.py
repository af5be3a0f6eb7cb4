"""The few parameters that mean the same everywhere → what a format calls them. All others go out as they are.

max_tokens      how long an answer may be
output_schema   the JSON schema the answer must fit
tool_choice     "auto", "none", "required", or the name of a tool
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical import clean_all
from everturn.core.requests import ModelRequest
from everturn.models.profile import Profile

RESERVED = frozenset({"model", "messages", "input", "system", "instructions", "stream", "tools"})
CACHE = {"type": "ephemeral"}

_encode = msgspec.json.Encoder().encode


class Params(Struct):
    """A request's parameters, with those we understand taken out."""

    rest: dict[str, Any]
    max_tokens: int | None = None
    output_schema: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    cache: bool = True


def take(request: ModelRequest, profile: Profile) -> Params:
    """Read the parameters of a request over those of its profile."""
    given: Mapping[str, Any] = {**profile.params, **request.params} if profile.params else request.params
    if not given:
        return Params({})
    rest = {key: value for key, value in given.items() if key not in RESERVED}
    params = Params(
        rest,
        max_tokens=rest.pop("max_tokens", None),
        output_schema=rest.pop("output_schema", None),
        tool_choice=rest.pop("tool_choice", None),
        cache=rest.pop("cache", True),
    )
    if not request.tools:  # without tools there is nothing to choose, and vendors refuse a choice
        params.tool_choice = None
        rest.pop("parallel_tool_calls", None)
    return params


def encode(body: dict[str, Any]) -> bytes:
    """Write a body; half characters, which a plugin may bring in, are replaced."""
    try:
        return _encode(body)
    except UnicodeEncodeError:
        return _encode(clean_all(body))


def schema_name(schema: Mapping[str, Any]) -> str:
    """A name for a schema, where one must be given."""
    title = schema.get("title")
    return (
        "".join(c for c in title if c.isascii() and (c.isalnum() or c in "_-"))[:64] if isinstance(title, str) else ""
    )
