"""Offline demo model: needs no network and no key; a new installation uses it until it is given a real one.

It says what it is, and how to configure another model. With the tools of `demo_tools` it shows what a turn can do: it
calls the clock, and it takes notes, which need an approval. A message that is the name of a tool and its arguments as
JSON calls that tool, and an agent with an output type answers with a message that is JSON, so that people can try their
own tools, rules, approvals and output types before they have a model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.parts import Usage
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult, ToolSpec
from everturn.errors import ConfigError

OFFLINE: Final = "offline:demo"
PACE = 0.01  # seconds between two words
ECHO_LIMIT = 200  # characters of a message that are repeated

_TIME: Final = re.compile(r"\b(?:what time|the time|clock|wie spät|uhrzeit)\b", re.IGNORECASE)
_NOTE: Final = re.compile(
    r"\b(?:take a note|make a note|note (?:that|down)?|write down|remember (?:that|to)?|notiere?)\b[:\s]*",
    re.IGNORECASE,
)
_CALL: Final = re.compile(r"\s*(?:call\s+)?([\w.-]+)\s*(\{.*\})?\s*", re.IGNORECASE | re.DOTALL)
HELP: Final = (
    "To use a real model, store an API key with `everturn auth login`, or set it in the environment "
    "(OPENAI_API_KEY), and start "
    "again. A model server of your own goes into the configuration: `everturn config edit`."
)
DEMO_HELP: Final = " Until then, ask me for the time, or to take a note, which asks for your approval first."
TOOL_HELP: Final = (
    " To call one of the tools of this agent ({tools}), send its name and its arguments as JSON: `{call}`."
)
DEMO_TOOLS: Final = ("current_time", "take_note")
LISTED_TOOLS: Final = 8  # in the answer
EXAMPLES: Final[dict[str, object]] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


class OfflineModel:
    """A model with fixed answers."""

    name = OFFLINE

    def __init__(self, pace: float = PACE) -> None:
        self._pace = pace

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Yield a short answer, or a call of a matching tool."""
        called = _call(request)
        if called is not None:
            name, arguments = called
            yield [CallChunk(0, encode_canonical(arguments), name, "offline_0")]
            yield [UsageChunk(_usage(request, 1)), FinishChunk("tool_calls")]
            return
        text = _answer(request)
        words = re.findall(r"\S+\s*", text)
        for word in words:
            await asyncio.sleep(self._pace)
            yield [TextChunk(word)]
        yield [UsageChunk(_usage(request, len(words))), FinishChunk("stop")]


def get_offline_model(name: str) -> OfflineModel:
    """Return the model by its name.

    Raises:
        ConfigError: the name is another; this vendor has only one model.
    """
    if name != OFFLINE:
        raise ConfigError(f"{name!r} is not a model name; the offline model is {OFFLINE}")
    return OfflineModel()


def _call(request: ModelRequest) -> tuple[str, dict[str, object]] | None:
    """Return the call that the last message asks for, if it was not made yet and there is a tool for it."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user":
        return None
    tools = {tool.name for tool in request.tools}
    text = last.text
    if (match := _CALL.fullmatch(text)) and match[1] in tools:
        with suppress(msgspec.DecodeError, msgspec.ValidationError):
            return match[1], msgspec.json.decode(match[2] or "{}", type=dict[str, object])
    if "take_note" in tools and (match := _NOTE.search(text)):
        return "take_note", {"text": text[match.end() :].strip()[:ECHO_LIMIT] or text.strip()[:ECHO_LIMIT]}
    return ("current_time", {}) if "current_time" in tools and _TIME.search(text) else None


def _answer(request: ModelRequest) -> str:
    last = request.messages[-1] if request.messages else RequestMessage("user", ())
    results = [part for part in last.parts if isinstance(part, RequestResult)]
    if results:
        summary = "; ".join(f"{part.name} says: {part.text[:ECHO_LIMIT]}" for part in results)
        return f"{summary}\n\nI am the offline demo, and I only repeat what a tool returns."
    if "output_schema" in request.params and _is_json(last.text):
        return last.text
    text = " ".join(last.text.split())[:ECHO_LIMIT]
    tools = [tool for tool in request.tools if tool.name not in DEMO_TOOLS]
    names = ", ".join(tool.name for tool in tools[:LISTED_TOOLS])
    call = TOOL_HELP.format(tools=names, call=_example_call(tools[0])) if tools else ""
    demo = DEMO_HELP if len(tools) < len(request.tools) else ""
    return f"I am the offline demo of Everturn: no model was asked. You said: “{text}”.\n\n{HELP}{demo}{call}"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True


def _example_call(tool: ToolSpec) -> str:
    """Return what to send for a call of a tool, with an example of each required argument."""
    properties: dict[str, dict[str, Any]] = tool.schema.get("properties", {})
    required: list[str] = tool.schema.get("required", [])
    arguments = {name: EXAMPLES.get(str(properties.get(name, {}).get("type")), "...") for name in required}
    return f"{tool.name} {encode_canonical(arguments)}"


def _usage(request: ModelRequest, words: int) -> Usage:
    size = len(request.system) + sum(len(message.text) for message in request.messages)
    return Usage(input=size // 4 + 1, output=words)
