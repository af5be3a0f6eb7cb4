"""Ollama validation: refuses the requests that it refuses, with its messages, and those it would silently misread, with
ours.

Ollama itself checks little but types: unknown fields are ignored, and roles, ids and the order of messages are left to
the template of the model. Messages about what goes wrong there silently end with `OURS` here. `functions` checks
tools.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.testing.provider.faults import Refused, is_json_integer, is_list, is_object
from everturn.testing.provider.strict.functions import OURS, check_functions, wrong
from everturn.testing.provider.strict.schemas import check_grammar_schema

Json = dict[str, Any]

ROLES = ("system", "user", "assistant", "tool")
LEVELS = ("high", "medium", "low", "max")
_LEVELS = '"high", "medium", "low", "max", true, or false'
_BOOLEANS = ("stream", "truncate", "shift", "logprobs")
_STRINGS = ("role", "content", "thinking", "tool_name", "tool_call_id")
_INTEGERS = frozenset(
    "num_keep seed num_predict top_k repeat_last_n num_ctx num_batch num_gpu main_gpu num_thread".split()
)
_FLOATS = frozenset("top_p min_p typical_p temperature repeat_penalty presence_penalty frequency_penalty".split())
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=\r\n]")


def check_ollama(body: Json, headers: Mapping[str, str]) -> None:
    """Raise `Refused` for a body that the real one would refuse or misread."""
    model: str = body["model"]
    check_types(body)
    check_think(body, model)
    check_format(body)
    check_options(body)
    check_functions(body.get("tools") or (), model)
    messages = check_messages(body)
    check_pairs(messages)
    check_stream(body)


def hides_thinking(body: Json) -> bool:
    """Whether the thinking of a model is hidden: it is shown, unless the request or its family disables it."""
    return body.get("think") is False or str(body.get("model", "")).startswith("nothink-")


# --------------------------------------------------------------------------------------------------- fields


def check_types(body: Json) -> None:
    """The known fields have their types; null counts as absent, and unknown fields are ignored."""
    for name in _BOOLEANS:
        if body.get(name) is not None and not isinstance(body[name], bool):
            raise wrong(f"ChatRequest.{name}", body[name], "bool")
    for name, expected in (("messages", "[]api.Message"), ("tools", "api.Tools")):
        if body.get(name) is not None and not is_list(body[name]):
            raise wrong(f"ChatRequest.{name}", body[name], expected)
    if body.get("options") is not None and not is_object(body["options"]):
        raise wrong("ChatRequest.options", body["options"], "map[string]interface {}")


def check_think(body: Json, model: str) -> None:
    """Thinking is on, off, or a level, and only where the model supports it."""
    think = body.get("think")
    if isinstance(think, str) and think not in LEVELS:
        raise Refused(f'invalid think value: "{think}" (must be {_LEVELS})')
    if think is not None and not isinstance(think, bool | str):
        raise Refused(f"think must be a boolean or string ({_LEVELS})")
    if think and model.startswith("nothink-"):
        raise Refused(f'"{model}" does not support thinking')


def check_format(body: Json) -> None:
    """A format is any JSON, or JSON of a schema. The real one answers an invalid format with a 500."""
    wanted = body.get("format")
    if wanted not in (None, "", "json") and not is_object(wanted):
        raw = msgspec.json.encode(msgspec.json.encode(wanted).decode()).decode()
        raise Refused(f'invalid format: {raw}; expected "json" or a valid JSON Schema object')
    if is_object(wanted):
        check_grammar_schema(wanted)


def check_options(body: Json) -> None:
    """The options it knows are of their types."""
    options: Json = body.get("options") or {}
    for name, value in options.items():
        if value is None:
            continue
        is_number = is_json_integer(value) or isinstance(value, float)
        if name in _INTEGERS and not is_number:
            raise Refused(f'option "{name}" must be of type integer')
        if name in _FLOATS and not is_number:
            raise Refused(f'option "{name}" must be of type float32')
        if name == "stop" and not is_list(value):
            raise Refused('option "stop" must be of type array')


def check_stream(body: Json) -> None:
    """Our own rule: this provider has no other way to answer."""
    if body.get("stream") is False:
        raise Refused("This provider always streams: 'stream' must not be false.")


# ------------------------------------------------------------------------------------------------- messages


def check_messages(body: Json) -> list[Json]:
    """There are messages, of four roles, and their fields have their types."""
    messages: list[Any] = body.get("messages") or []
    if not messages:
        raise Refused("a request without messages only loads the model" + OURS)
    for message in messages:
        if not is_object(message):
            raise wrong("ChatRequest.messages", message, "api.Message")
        for name in _STRINGS:
            if message.get(name) is not None and not isinstance(message[name], str):
                raise wrong(f"ChatRequest.messages.{name}", message[name], "string")
        if message.get("role") not in ROLES:
            raise Refused(f'invalid role: "{message.get("role") or ""}"{OURS}')
        check_images(message)
        check_calls(message)
        check_not_empty(message)
    return messages


def check_images(message: Json) -> None:
    """Images are bytes in base64, without a prefix."""
    images = message.get("images")
    if images is not None and not is_list(images):
        raise wrong("ChatRequest.messages.images", images, "[]api.ImageData")
    for image in images or ():
        if not isinstance(image, str):
            raise wrong("ChatRequest.messages.images", image, "api.ImageData")
        if found := _NOT_BASE64.search(image):
            raise Refused(f"illegal base64 data at input byte {found.start()}")
        try:
            base64.b64decode(image)
        except ValueError:
            raise Refused(f"illegal base64 data at input byte {len(image)}") from None


def check_calls(message: Json) -> None:
    """The arguments of a call are an object, and not a string that contains one."""
    calls, path = message.get("tool_calls"), "ChatRequest.messages.tool_calls"
    if calls is not None and not is_list(calls):
        raise wrong(path, calls, "[]api.ToolCall")
    for call in calls or ():
        if not is_object(call):
            raise wrong(path, call, "api.ToolCall")
        if call.get("id") is not None and not isinstance(call["id"], str):
            raise wrong(f"{path}.id", call["id"], "string")
        function = call.get("function")
        if function is not None and not is_object(function):
            raise wrong(f"{path}.function", function, "api.ToolCallFunction")
        name, arguments = (function or {}).get("name"), (function or {}).get("arguments")
        if name is not None and not isinstance(name, str):
            raise wrong(f"{path}.function.name", name, "string")
        if not name:
            raise Refused("a call without a name" + OURS)
        if arguments is not None and not is_object(arguments):
            raise Refused("Value looks like object, but can't find closing '}' symbol")


def check_not_empty(message: Json) -> None:
    """An assistant message has text, thinking or calls; only an assistant has calls."""
    if message["role"] != "assistant" and message.get("tool_calls"):
        raise Refused(f'calls in a message of role "{message["role"]}"{OURS}')
    if message["role"] == "assistant" and not any(
        message.get(field) for field in ("content", "thinking", "tool_calls")
    ):
        raise Refused("an assistant message without anything in it" + OURS)


class _Made(Struct):
    id: str
    name: str


def check_pairs(messages: list[Json]) -> None:
    """Every call has its result before the next message, and every result names its call."""
    made: list[_Made] = []
    for message in messages:
        if message["role"] == "tool":
            made.remove(_answered(message, made))
            continue
        check_answered(made)
        calls = message.get("tool_calls") or ()
        made = [_Made(call.get("id") or "", call["function"]["name"]) for call in calls]
    check_answered(made)


def _answered(message: Json, calls: list[_Made]) -> _Made:
    """The call that a tool message answers: the one of its id, or else the first of its name."""
    name, id = message.get("tool_name"), message.get("tool_call_id")
    if not name:
        raise Refused("a tool message without a tool_name" + OURS)
    fitting = [call for call in calls if call.name == name and (not id or call.id in ("", id))]
    if not fitting:
        raise Refused(f'a result of "{name}" without a call of it right before{OURS}')
    return fitting[0]


def check_answered(calls: list[_Made]) -> None:
    """No call is without its result."""
    if calls:
        raise Refused(f"calls without a result: {', '.join(call.name for call in calls)}{OURS}")
