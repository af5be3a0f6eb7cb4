"""Common parameters: those that mean the same for every vendor. All others are sent unchanged.

max_tokens      the maximum length of an answer
reasoning       "none", "low", "medium", "high", …: how much a model thinks first; see `reasoning_effort`
output_schema   the JSON schema of the answer, as `structured_output` has written it for the vendor
tool_choice     "auto", "none", "required", or the name of a tool
cache           whether a request asks for the prompt cache, by markers or a key, or how long a prefix is kept: "5m",
                "1h", "24h"; a vendor that has no such time takes the longest below it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import replace_surrogates_in
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.formats.reasoning_effort import write_reasoning
from everturn.models.profile import Profile

CONVERSATION = "the conversation is what you send, and what plugins make of it"
PROMPT = "give the prompt as Chat(system=…), Settings(prompt=…) or TurnOptions(system=…)"
# Fields that every format sets itself, and where to set them instead.
RESERVED: Mapping[str, str] = {
    "model": "choose the model with Chat(model) or send(model=…)",
    "messages": CONVERSATION,
    "input": CONVERSATION,
    "system": PROMPT,
    "instructions": PROMPT,
    "stream": "answers are always streamed",
    "tools": "a vendor's own tools are not supported yet; your own are Chat(tools=[…])",
}
_FIXED: Mapping[str, object] = {"stream": True, "store": False}  # the value that is set anyway is allowed
CACHE_LIFETIMES = ("5m", "1h", "24h")
MARKER_LIFETIMES = {"5m": "5m", "1h": "1h", "24h": "1h"}  # of what is marked

_encode = msgspec.json.Encoder().encode


class Params(Struct):
    """A request's parameters, with the common ones taken out."""

    rest: dict[str, Any]
    max_tokens: int | None = None
    output_schema: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    cache_marker: dict[str, str] | None = None  # None: nothing is marked


def refuse_reserved(params: Mapping[str, Any], reserved: Mapping[str, str]) -> None:
    """Refuse parameters that the request would overwrite: dropped silently, they would seem to have an effect.

    Raises:
        ModelError: one of them was given; the message says where each belongs.
    """
    problems = [
        f"{name!r} cannot be given in params: {instead}"
        for name, instead in reserved.items()
        if name in params and not (name in _FIXED and params[name] is _FIXED[name])
    ]
    if problems:
        raise ModelError("; ".join(problems), kind="request")


def take_params(request: ModelRequest, profile: Profile, reserved: Mapping[str, str] = RESERVED) -> Params:
    """Merge the parameters of a request with its profile's; `reserved` are those that the format sets itself.

    Raises:
        ModelError: a reserved parameter was given.
    """
    merged: Mapping[str, Any] = {**profile.params, **request.params} if profile.params else request.params
    if not merged:
        return Params(_cache_hints(request, profile, True), cache_marker=_cache_marker(profile, True))
    merged = write_reasoning(merged, profile)
    refuse_reserved(merged, reserved)
    rest = {key: value for key, value in merged.items() if key not in reserved}
    cache = _checked_cache(rest.pop("cache", True))
    rest = {**_cache_hints(request, profile, cache), **rest}
    params = Params(
        rest,
        max_tokens=rest.pop("max_tokens", None),
        output_schema=rest.pop("output_schema", None),
        tool_choice=rest.pop("tool_choice", None),
        cache_marker=_cache_marker(profile, cache),
    )
    rest.pop("output_mode", None)  # without a schema it says nothing
    if not request.tools:  # vendors refuse a tool choice without tools
        params.tool_choice = None
        rest.pop("parallel_tool_calls", None)
    return params


def _checked_cache(cache: object) -> object:
    """The parameter `cache`.

    Raises:
        ModelError: it is no lifetime that a provider has.
    """
    if not isinstance(cache, bool) and cache not in CACHE_LIFETIMES:
        known = ", ".join(map(repr, CACHE_LIFETIMES))
        raise ModelError(f"params: cache={cache!r} is neither true, false, nor a lifetime: {known}", kind="request")
    return cache


def _cache_marker(profile: Profile, cache: object) -> dict[str, str] | None:
    """The marker of what is to be cached. Without a lifetime it is the provider's own."""
    if not profile.has_cache_markers or cache is False:
        return None
    return {"type": "ephemeral"} if cache is True else {"type": "ephemeral", "ttl": MARKER_LIFETIMES[str(cache)]}


def _cache_hints(request: ModelRequest, profile: Profile, cache: object) -> dict[str, Any]:
    """OpenAI's parameters: a key that keeps the requests of a conversation together, and how long a prefix is kept."""
    if not profile.has_cache_key or cache is False:
        return {}
    hints = {"prompt_cache_key": request.cache_key} if request.cache_key else {}
    return {**hints, "prompt_cache_retention": "24h"} if cache == "24h" and profile.has_long_cache else hints


def encode_body(body: dict[str, Any]) -> bytes:
    """Encode a body; lone surrogates, which a plugin may add, are replaced."""
    try:
        return _encode(body)
    except UnicodeEncodeError:
        return _encode(replace_surrogates_in(body))


def schema_name(schema: Mapping[str, Any]) -> str:
    """Return a name for a schema, where the vendor requires one."""
    title = schema.get("title")
    return (
        "".join(c for c in title if c.isascii() and (c.isalnum() or c in "_-"))[:64] if isinstance(title, str) else ""
    )
