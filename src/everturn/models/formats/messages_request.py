"""Anthropic Messages request: builds its body from a neutral request.

The API's rules, learned from its refusals: user and assistant alternate, and a user message begins and ends; the
results of calls come first in the message right after them; no text is blank; a thinking block goes back with its
signature or not at all; a request that mentions a tool must declare it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.history import arguments_as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.models.formats import BuiltRequest
from everturn.models.formats.files import as_base64, as_note, as_text, file_kind, move_files_to_user
from everturn.models.formats.notices import CONTINUE, notice_text
from everturn.models.formats.params import encode_body, take_params
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.provider_tools import declare_tools, find_replayable
from everturn.models.formats.tool_names import CallIds, ToolNames
from everturn.models.formats.tool_schemas import tool_schema, with_plain_properties
from everturn.models.formats.valid_history import EMPTY_TEXT, repair_history, result_text
from everturn.models.profile import Origin, Profile

PATH = "/messages"
_THOUGHTS = ("thinking", "redacted_thinking")
Json = dict[str, Any]


def build(request: ModelRequest, profile: Profile, origin: Origin) -> BuiltRequest:
    """Build the request."""
    body, names = build_body(request, profile, origin)
    return BuiltRequest(PATH, encode_body(body), names.ours)


def build_body(request: ModelRequest, profile: Profile, origin: Origin) -> tuple[Json, ToolNames]:
    """Return the body, and the names of its tools."""
    names = ToolNames(request.tools)
    params = take_params(request, profile)
    body: Json = {
        **params.rest,
        **({"model": origin.model} if profile.has_model_field else {}),
        "stream": True,
        "max_tokens": params.max_tokens or profile.default_max_tokens,
    }
    if params.output_schema is not None:
        output_format = {"type": "json_schema", "schema": params.output_schema}
        body["output_config"] = {**body.get("output_config", {}), "format": output_format}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    provider_tools = declare_tools(request, profile)
    writer = _AnthropicMessages(request, profile, origin, names, [str(tool["name"]) for tool in provider_tools])
    messages = _alternate(writer.each(), lambda: writer.is_paused)
    tools = [_tool(names.wire(tool.name), tool.description, tool.schema) for tool in request.tools]
    if writer.called and not tools:  # a request with calls must declare tools, even if none may be called now
        tools = [_tool(name, "Not available now.", {}) for name in sorted(writer.called)]
        if not provider_tools:
            body["tool_choice"] = {"type": "none"}
    elif params.tool_choice is not None:
        body["tool_choice"] = _choice(params.tool_choice, names)
    if tools or provider_tools:
        body["tools"] = [*tools, *provider_tools]
    _fit_thinking(body, messages, params.max_tokens is None)
    if params.cache_marker is not None:
        _add_cache_markers(body, messages, params.cache_marker)
    body["messages"] = messages
    return body, names


def _tool(name: str, description: str, schema: Json) -> Json:
    schema, odd = with_plain_properties(tool_schema(schema))
    if odd:
        description = f"{description}\nIt takes {', '.join(odd)} as well.".strip()
    return {"name": name, "description": description, "input_schema": schema}


def _choice(choice: str | Json, names: ToolNames) -> Json:
    match choice:
        case "auto" | "none":
            return {"type": choice}
        case "required":
            return {"type": "any"}
        case str():
            return {"type": "tool", "name": names.wire(choice)}
        case _:
            return choice


class _AnthropicMessages:
    def __init__(
        self, request: ModelRequest, profile: Profile, origin: Origin, names: ToolNames, provider_tools: Sequence[str]
    ) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)
        self._provider_tools = provider_tools  # those that the request declares
        self._replayed: set[int] = set()  # parts of such tools that go back as they are
        self.called: set[str] = set()
        self.is_paused = False  # the provider continues its last answer, and nothing may follow it

    def each(self) -> Iterator[tuple[str, list[Json]]]:
        """Yield role and blocks of every message that is not empty."""
        history = list(
            move_files_to_user(repair_history(self._request.messages), self._profile.inputs, self._request.files)
        )
        self._replayed = find_replayable(history, self._issuer, self._provider_tools, has_pairs=True)
        if history and history[-1].paused:
            self.is_paused = any(id(part) in self._replayed for part in history[-1].parts)
        for message in history:
            match message.role:
                case "user":
                    # A dropped message would join the answers before and after it into one.
                    blocks = list(self._user(message.parts)) or list(_text(EMPTY_TEXT))
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
                    yield from _text(notice_text(part))
                case FilePart():
                    yield self._file(part)
                case _:
                    pass

    def _assistant(self, parts: Sequence[RequestPart]) -> list[Json]:
        blocks = list(self._assistant_blocks(parts))
        while blocks and blocks[-1]["type"] in _THOUGHTS:
            blocks.pop()  # the answer was cut off; a thinking block must not be last
        return blocks

    def _assistant_blocks(self, parts: Sequence[RequestPart]) -> Iterator[Json]:
        # Thinking is signed with what surrounds it, and cites what was found: neither goes back without that.
        is_whole = all(id(part) in self._replayed for part in parts if isinstance(part, ProviderToolPart))
        for part, following in zip(parts, (*parts[1:], None), strict=True):
            match part:
                case TextPart(text=text, opaque=opaque):
                    # The last text must not end with whitespace, and none needs to unless its text goes on.
                    text = text if isinstance(following, TextPart) else text.rstrip()
                    for block in _text(text):
                        yield {**block, **(self._opened(opaque) if is_whole and self._provider_tools else {})}
                case ProviderToolPart(opaque=opaque):
                    if opaque is not None and id(part) in self._replayed:
                        self._replayed.remove(id(part))  # a plugin may have put the same message in twice
                        yield msgspec.json.decode(opaque.data)
                    else:
                        yield from _text(provider_tool_as_text(part).rstrip())
                case NoticePart():
                    yield from _text(notice_text(part))
                case FilePart():
                    yield from _text(as_note(part))
                case ReasoningPart(text=text, opaque=opaque):
                    # The API refuses thinking without its signature (of another model, or cut off before it arrived).
                    if is_whole and opaque is not None and opaque.issuer == self._issuer:
                        sealed: Json = msgspec.json.decode(opaque.data)
                        yield {"type": "thinking", "thinking": text, **sealed} if "signature" in sealed else sealed
                case RequestCall():
                    name = self._names.wire(part.name)
                    self.called.add(name)
                    arguments = msgspec.Raw(arguments_as_object(part.arguments).encode())
                    yield {"type": "tool_use", "id": self._ids.add(part, name), "name": name, "input": arguments}
                case RequestResult():
                    pass

    def _opened(self, opaque: Opaque | None) -> Json:
        """The citations of a text, as they were sent."""
        sealed: Json = msgspec.json.decode(opaque.data) if opaque is not None and opaque.issuer == self._issuer else {}
        return {"citations": sealed["citations"]} if "citations" in sealed else {}

    def _result(self, result: RequestResult) -> Json:
        text = result_text(result)
        blocks: str | list[Json] = text
        if result.files:
            blocks = [*_text(text), *map(self._file, result.files)]
        block: Json = {"type": "tool_result", "tool_use_id": self._ids.wire(result.call), "content": blocks}
        return {**block, "is_error": True} if result.is_error else block

    def _file(self, file: FilePart) -> Json:
        files = self._request.files
        match file_kind(file, self._profile.inputs, files):
            case "image" | "pdf" as kind:
                if reference := self._request.references.get(file.blob):
                    source = {"type": "file", "file_id": reference}
                else:
                    source = {"type": "base64", "media_type": file.media_type, "data": as_base64(file, files)}
                return {"type": "image" if kind == "image" else "document", "source": source}
            case "text":
                return {"type": "text", "text": as_text(file, files)}
            case "audio" | "unread":
                return {"type": "text", "text": as_note(file)}


def _text(text: str) -> Iterator[Json]:
    if text.strip():
        yield {"type": "text", "text": text}


def _alternate(messages: Iterable[tuple[str, list[Json]]], is_paused: Callable[[], bool]) -> list[Json]:
    """Join consecutive messages of one role, with a user message at both ends; a paused answer stays the last."""
    joined: list[Json] = []
    for role, blocks in messages:
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += blocks
        else:
            joined.append({"role": role, "content": blocks})
    if joined and joined[0]["role"] == "assistant":
        joined.insert(0, {"role": "user", "content": list(_text(CONTINUE))})
    if not joined or (joined[-1]["role"] == "assistant" and not is_paused()):
        joined.append({"role": "user", "content": list(_text(CONTINUE))})
    return joined


def _may_think(messages: Sequence[Json]) -> bool:
    """Return whether thinking may be enabled: a turn that continues after calls must have begun with thinking."""
    has_calls = False
    for message, before in zip(reversed(messages), (*reversed(messages[:-1]), None), strict=True):
        blocks = message["content"]
        if message["role"] == "user":
            if not any(block["type"] == "tool_result" for block in blocks):
                break  # the message that started the turn
            continue
        has_calls = has_calls or any(block["type"] == "tool_use" for block in blocks)
        is_first = before is None or any(block["type"] != "tool_result" for block in before["content"])
        if has_calls and is_first and blocks[0]["type"] not in _THOUGHTS:
            return False
    return True


def _fit_thinking(body: Json, messages: Sequence[Json], may_write_more: bool) -> None:
    """Make the thinking blocks of the history consistent with the requested thinking mode.

    Without a thinking parameter the model decides, and in a turn that continues its thinking blocks must stay.
    """
    wanted = cast("Json | None", body.get("thinking"))
    if wanted is None:
        kinds = {block["type"] for block in messages[-1]["content"]}
        if (
            "tool_result" in kinds and len(kinds) > 1
        ):  # an earlier turn that was interrupted, followed by a new user message
            _remove_thinking(messages)
    elif wanted.get("type") == "disabled" or not _may_think(messages):
        body["thinking"] = {"type": "disabled"}
        _remove_thinking(messages)
    elif may_write_more:  # thinking counts towards max_tokens, so the answer is added to its budget
        body["max_tokens"] += wanted.get("budget_tokens", 0)


def _remove_thinking(messages: Sequence[Json]) -> None:
    """Remove the thinking blocks of the last turn: without thinking now, the API refuses them."""
    for message in reversed(messages):
        blocks: list[Json] = message["content"]
        if message["role"] == "assistant":
            message["content"] = [block for block in blocks if block["type"] not in _THOUGHTS]
        elif not any(block["type"] == "tool_result" for block in blocks):
            break


def _add_cache_markers(body: Json, messages: Sequence[Json], marker: Json) -> None:
    """Add cache markers: to the tools, the system prompt, and the last two user messages."""
    for blocks in (body.get("tools"), body.get("system")):
        if blocks:
            blocks[-1]["cache_control"] = marker
    users = [message for message in messages if message["role"] == "user"]
    for message in users[-2:]:
        message["content"][-1] = {**message["content"][-1], "cache_control": marker}
