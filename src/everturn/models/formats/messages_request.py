"""A neutral request → the body of an Anthropic Messages request.

Its rules, all of them learned from refusals: users and assistants take turns, and a user begins and ends; the results
of calls come first in the message right after them; no text is blank; a thought goes back with its seal or not at all;
whoever mentions a tool must declare it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.history import as_object
from everturn.core.parts import FilePart, NoticePart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.models.formats import Built
from everturn.models.formats.files import as_base64, as_note, as_text, handed_on, kind_of
from everturn.models.formats.names import CallIds, Names
from everturn.models.formats.params import CACHE, encode, take
from everturn.models.formats.schemas import tool_schema, with_plain_properties
from everturn.models.formats.tidy import NOTHING, result_text, tidy
from everturn.models.formats.words import GO_ON, notice
from everturn.models.profile import Origin, Profile

PATH = "/messages"
_THOUGHTS = ("thinking", "redacted_thinking")
Json = dict[str, Any]


def build(request: ModelRequest, profile: Profile, origin: Origin) -> Built:
    """Write the body."""
    names = Names(request.tools)
    params = take(request, profile)
    body: Json = {
        **params.rest,
        "model": origin.model,
        "stream": True,
        "max_tokens": params.max_tokens or profile.default_max_tokens,
    }
    if params.output_schema is not None:
        form = {"type": "json_schema", "schema": params.output_schema}
        body["output_config"] = {**body.get("output_config", {}), "format": form}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    writer = _Messages(request, profile, origin, names)
    messages = _in_turn(writer.each())
    tools = [_tool(names.wire(tool.name), tool.description, tool.schema) for tool in request.tools]
    if writer.called and not tools:  # a request that mentions calls must declare tools, though none may be called now
        tools = [_tool(name, "Not available now.", {}) for name in sorted(writer.called)]
        body["tool_choice"] = {"type": "none"}
    elif params.tool_choice is not None:
        body["tool_choice"] = _choice(params.tool_choice, names)
    if tools:
        body["tools"] = tools
    _settle_thinking(body, messages, params.max_tokens is None)
    if profile.has_cache_markers and params.cache:
        _mark(body, messages)
    body["messages"] = messages
    return Built(PATH, encode(body), names.ours)


def _tool(name: str, description: str, schema: Json) -> Json:
    schema, odd = with_plain_properties(tool_schema(schema))
    if odd:
        description = f"{description}\nIt takes {', '.join(odd)} as well.".strip()
    return {"name": name, "description": description, "input_schema": schema}


def _choice(choice: str | Json, names: Names) -> Json:
    match choice:
        case "auto" | "none":
            return {"type": choice}
        case "required":
            return {"type": "any"}
        case str():
            return {"type": "tool", "name": names.wire(choice)}
        case _:
            return choice


class _Messages:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: Names) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)
        self.called: set[str] = set()

    def each(self) -> Iterator[tuple[str, list[Json]]]:
        """Role and blocks of every message that has any."""
        for message in handed_on(tidy(self._request.messages), self._profile.inputs, self._request.files):
            match message.role:
                case "user":
                    # A message that vanished would join the answers before and after it into one.
                    blocks = list(self._user(message.parts)) or list(_text(NOTHING))
                case "assistant":
                    blocks = self._assistant(message.parts)
                case "tool":
                    blocks = [self._result(result) for result in cast("Sequence[RequestResult]", message.parts)]
            if blocks:
                yield ("assistant" if message.role == "assistant" else "user"), blocks

    def _user(self, parts: Iterable[RequestPart]) -> Iterator[Json]:
        for part in parts:
            match part:
                case TextPart(text=text):
                    yield from _text(text)
                case NoticePart():
                    yield from _text(notice(part))
                case FilePart():
                    yield self._file(part)
                case _:
                    pass

    def _assistant(self, parts: Iterable[RequestPart]) -> list[Json]:
        blocks = list(self._assistant_blocks(parts))
        while blocks and blocks[-1]["type"] in _THOUGHTS:
            blocks.pop()  # it was cut off before it came to anything; a thought may not stand last
        return blocks

    def _assistant_blocks(self, parts: Iterable[RequestPart]) -> Iterator[Json]:
        for part in parts:
            match part:
                case TextPart(text=text):
                    yield from _text(text.rstrip())  # the last one may not end with a blank, and none needs to
                case NoticePart():
                    yield from _text(notice(part))
                case FilePart():
                    yield from _text(as_note(part))
                case ReasoningPart(text=text, opaque=opaque):
                    # Without its seal (another's, or cut off before it came) a thought is refused.
                    if opaque is not None and opaque.issuer == self._issuer:
                        sealed: Json = msgspec.json.decode(opaque.data)
                        yield {"type": "thinking", "thinking": text, **sealed} if "signature" in sealed else sealed
                case RequestCall():
                    name = self._names.wire(part.name)
                    self.called.add(name)
                    arguments = msgspec.Raw(as_object(part.arguments).encode())
                    yield {"type": "tool_use", "id": self._ids.add(part, name), "name": name, "input": arguments}
                case RequestResult():
                    pass

    def _result(self, result: RequestResult) -> Json:
        text = result_text(result)
        blocks: str | list[Json] = text
        if result.files:
            blocks = [*_text(text), *map(self._file, result.files)]
        made: Json = {"type": "tool_result", "tool_use_id": self._ids.wire(result.call), "content": blocks}
        return {**made, "is_error": True} if result.is_error else made

    def _file(self, file: FilePart) -> Json:
        files = self._request.files
        match kind_of(file, self._profile.inputs, files):
            case "image" | "pdf" as kind:
                source = {"type": "base64", "media_type": file.media_type, "data": as_base64(file, files)}
                return {"type": "image" if kind == "image" else "document", "source": source}
            case "text":
                return {"type": "text", "text": as_text(file, files)}
            case "audio" | "unread":
                return {"type": "text", "text": as_note(file)}


def _text(text: str) -> Iterator[Json]:
    if text.strip():
        yield {"type": "text", "text": text}


def _in_turn(messages: Iterable[tuple[str, list[Json]]]) -> list[Json]:
    """Join what one role says in a row, with a user at both ends."""
    joined: list[Json] = []
    for role, blocks in messages:
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += blocks
        else:
            joined.append({"role": role, "content": blocks})
    if joined and joined[0]["role"] == "assistant":
        joined.insert(0, {"role": "user", "content": list(_text(GO_ON))})
    if not joined or joined[-1]["role"] == "assistant":
        joined.append({"role": "user", "content": list(_text(GO_ON))})
    return joined


def _may_think(messages: Sequence[Json]) -> bool:
    """Whether thinking may be asked for: a turn that goes on after calls must have begun with a thought."""
    has_calls = False
    for message, before in zip(reversed(messages), (*reversed(messages[:-1]), None), strict=True):
        blocks = message["content"]
        if message["role"] == "user":
            if not any(block["type"] == "tool_result" for block in blocks):
                break  # here the turn was asked for
            continue
        has_calls = has_calls or any(block["type"] == "tool_use" for block in blocks)
        is_first = before is None or any(block["type"] != "tool_result" for block in before["content"])
        if has_calls and is_first and blocks[0]["type"] not in _THOUGHTS:
            return False
    return True


def _settle_thinking(body: Json, messages: Sequence[Json], may_write_more: bool) -> None:
    """See to it that the thoughts in a history and those that are asked for fit together.

    Without a word about thinking the model decides, and in a turn that goes on its thoughts must stay with it.
    """
    wanted = cast("Json | None", body.get("thinking"))
    if wanted is None:
        kinds = {block["type"] for block in messages[-1]["content"]}
        if "tool_result" in kinds and len(kinds) > 1:  # an earlier turn that broke off, and somebody who speaks again
            _forget_thoughts(messages)
    elif wanted.get("type") == "disabled" or not _may_think(messages):
        body["thinking"] = {"type": "disabled"}
        _forget_thoughts(messages)
    elif may_write_more:  # the answer comes on top of the thoughts
        body["max_tokens"] += wanted.get("budget_tokens", 0)


def _forget_thoughts(messages: Sequence[Json]) -> None:
    """Take the thoughts of the last turn out: who does not think now may not have thought in what goes on."""
    for message in reversed(messages):
        blocks: list[Json] = message["content"]
        if message["role"] == "assistant":
            message["content"] = [block for block in blocks if block["type"] not in _THOUGHTS]
        elif not any(block["type"] == "tool_result" for block in blocks):
            break


def _mark(body: Json, messages: Sequence[Json]) -> None:
    """Mark what is worth caching: the tools, the system prompt, the conversation up to its last two user messages."""
    for blocks in (body.get("tools"), body.get("system")):
        if blocks:
            blocks[-1]["cache_control"] = CACHE
    users = [message for message in messages if message["role"] == "user"]
    for message in users[-2:]:
        message["content"][-1] = {**message["content"][-1], "cache_control": CACHE}
