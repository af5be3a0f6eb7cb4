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
from everturn.errors import ModelError
from everturn.models.profile import Profile

CONVERSATION = "the conversation is what you send, and what plugins make of it"
PROMPT = "give the prompt as Chat(system=…), Settings(prompt=…) or TurnOptions(system=…)"
# What every format writes itself, and where to say it instead.
RESERVED: Mapping[str, str] = {
    "model": "choose the model with Chat(model) or send(model=…)",
    "messages": CONVERSATION,
    "input": CONVERSATION,
    "system": PROMPT,
    "instructions": PROMPT,
    "stream": "answers are always streamed",
    "tools": "a vendor's own tools are not supported yet; your own are Chat(tools=[…])",
}
_AS_IT_IS: Mapping[str, object] = {"stream": True, "store": False}  # to say what is so anyway does no harm
CACHE = {"type": "ephemeral"}

_encode = msgspec.json.Encoder().encode


class Params(Struct):
    """A request's parameters, with those we understand taken out."""

    rest: dict[str, Any]
    max_tokens: int | None = None
    output_schema: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    cache: bool = True


def refuse(params: Mapping[str, Any], reserved: Mapping[str, str]) -> None:
    """Refuse parameters that a request would overwrite: dropped in silence, they would seem to have been heard.

    Raises:
        ModelError: and it says where each of them belongs.
    """
    said = [
        f"{name!r} cannot be given in params: {instead}"
        for name, instead in reserved.items()
        if name in params and not (name in _AS_IT_IS and params[name] is _AS_IT_IS[name])
    ]
    if said:
        raise ModelError("; ".join(said), kind="request")


def take(request: ModelRequest, profile: Profile, reserved: Mapping[str, str] = RESERVED) -> Params:
    """Read the parameters of a request over those of its profile; `reserved` are those that the format writes itself.

    Raises:
        ModelError: one of them is not theirs to give.
    """
    given: Mapping[str, Any] = {**profile.params, **request.params} if profile.params else request.params
    if not given:
        return Params({})
    refuse(given, reserved)
    rest = {key: value for key, value in given.items() if key not in reserved}
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
