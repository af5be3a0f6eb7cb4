"""A neutral request → the body of an OpenAI Chat Completions request, as the vendor's profile wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from everturn.core.history import as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.models.formats import Built
from everturn.models.formats.files import AUDIO, as_base64, as_data_url, as_note, as_text, handed_on, kind_of
from everturn.models.formats.made import Made
from everturn.models.formats.names import CallIds, Names
from everturn.models.formats.params import CACHE, encode, schema_name, take
from everturn.models.formats.schemas import tool_schema
from everturn.models.formats.tidy import result_text, tidy
from everturn.models.formats.words import GO_ON, INTERRUPTED, notice
from everturn.models.formats.written import remember, so_far
from everturn.models.profile import Origin, Profile

PATH = "/chat/completions"
Json = dict[str, Any]

_tools: Made[msgspec.Raw] = Made(1_000)  # a tool is the same in every request, and there may be dozens


def build(request: ModelRequest, profile: Profile, origin: Origin) -> Built:
    """Write the body."""
    names = Names(request.tools)
    params = take(request, profile)
    body: Json = {**params.rest, "model": origin.model, "stream": True}
    if profile.has_usage_option:
        body.setdefault("stream_options", {"include_usage": True})
    if params.max_tokens is not None:
        body[profile.max_tokens] = params.max_tokens
    if params.output_schema is not None:
        name = schema_name(params.output_schema) or "answer"
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": params.output_schema, "strict": True},
        }
    if request.tools:
        body["tools"] = [
            _tools.get(tool, _as_is) if names.wire(tool.name) == tool.name else _tool(tool, names.wire(tool.name))
            for tool in request.tools
        ]
    if params.tool_choice is not None:
        body["tool_choice"] = _choice(params.tool_choice, names)
    writer = _Messages(request, profile, origin, names)
    if profile.must_alternate or not profile.can_follow_tool or profile.has_cache_markers:
        messages = list(writer.in_turn())
        if profile.has_cache_markers and params.cache:
            _mark(messages)
        body["messages"] = messages
    else:
        body["messages"] = writer.plain()
    return Built(PATH, encode(body), names.ours)


def _tool(tool: ToolSpec, name: str) -> Json:
    function = {"name": name, "description": tool.description, "parameters": tool_schema(tool.schema)}
    return {"type": "function", "function": function}


def _as_is(tool: ToolSpec) -> msgspec.Raw:
    return msgspec.Raw(encode(_tool(tool, tool.name)))


def _choice(choice: str | Json, names: Names) -> object:
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "function": {"name": names.wire(choice)}}
    return choice


class _Messages:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: Names) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)

    def plain(self) -> list[Json]:
        """All messages as they come. Each is written once in a turn, however many requests it has."""
        request, key = self._request, f"chat {id(self._profile)} {self._issuer} {self._names.ours}"
        written = so_far(request, key, self._ids)
        self._ids, shown = written.notes, list(written.shown)
        for message in handed_on(tidy(written.left(request)), self._profile.inputs, request.files):
            parts = message.parts
            if len(parts) == 1 and type(parts[0]) is TextPart and parts[0].text:  # what nearly every one is
                shown.append({"role": message.role, "content": parts[0].text})
            else:
                shown.extend(self._one(message))
        remember(request, key, shown, self._ids)
        if not shown or shown[-1]["role"] == "assistant":  # to answer its own words is more than most are asked
            return [*self._system(), *shown, {"role": "user", "content": GO_ON}]
        return [*self._system(), *shown]

    def in_turn(self) -> Iterator[Json]:
        """All messages, in an order that vendors with rules of their own take."""
        profile = self._profile
        yield from self._system()
        said = handed_on(tidy(self._request.messages), profile.inputs, self._request.files)
        messages = (one for message in said for one in self._one(message))
        before = ""
        for message in _in_turn(messages, profile):
            if not before and profile.must_alternate and message["role"] == "assistant":
                yield {"role": "user", "content": GO_ON}
            before = message["role"]
            yield message
        if before in ("", "assistant"):
            yield {"role": "user", "content": GO_ON}

    def _system(self) -> Iterator[Json]:
        if self._request.system:
            yield {"role": self._profile.system, "content": self._request.system}

    def _one(self, message: RequestMessage) -> Iterator[Json]:
        match message.role:
            case "user":
                if content := self._user(message.parts):
                    yield {"role": "user", "content": content}
            case "assistant":
                if said := self._assistant(message.parts):
                    yield said
            case "tool":
                yield from self._results(cast("Sequence[RequestResult]", message.parts))

    def _user(self, parts: Sequence[RequestPart]) -> str | list[Json]:
        if len(parts) == 1 and type(parts[0]) is TextPart:
            return parts[0].text
        return _short(list(self._user_parts(parts)))

    def _user_parts(self, parts: Iterable[RequestPart]) -> Iterator[Json]:
        for part in parts:
            match part:
                case TextPart(text=text):
                    if text:
                        yield _text(text)
                case NoticePart():
                    yield _text(notice(part))
                case FilePart():
                    yield self._file(part)
                case _:
                    pass

    def _file(self, file: FilePart) -> Json:
        files = self._request.files
        match kind_of(file, self._profile.inputs, files):
            case "image":
                return {"type": "image_url", "image_url": {"url": as_data_url(file, files)}}
            case "audio":
                return {
                    "type": "input_audio",
                    "input_audio": {"data": as_base64(file, files), "format": AUDIO[file.media_type]},
                }
            case "pdf":
                name = file.name or "file.pdf"
                return {"type": "file", "file": {"filename": name, "file_data": as_data_url(file, files)}}
            case "text":
                return _text(as_text(file, files))
            case "unread":
                return _text(as_note(file))

    def _assistant(self, parts: Sequence[RequestPart]) -> Json | None:
        texts: list[str] = []
        thoughts: list[str] = []
        details: list[Any] = []
        calls: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    texts.append(text)
                case NoticePart():
                    texts.append(notice(part))
                case FilePart():
                    texts.append(as_note(part))
                case ReasoningPart():
                    thought, sealed = self._thought(part)
                    thoughts.append(thought)
                    details += sealed
                case RequestCall():
                    calls.append(self._call(part))
                case RequestResult():
                    pass
        text = "".join(texts)
        if not text and not calls:
            return None
        said: Json = {"role": "assistant", "content": text or None}
        if calls:
            said["tool_calls"] = calls
            if self._profile.replay:
                said[self._profile.replay] = "".join(thoughts) or self._profile.filler
        if details:
            said["reasoning_details"] = details
        return said

    def _thought(self, part: ReasoningPart) -> tuple[str, list[Any]]:
        """What was thought, and what is sealed of it; what another has sealed is not ours to tell."""
        if part.opaque is None:
            return part.text, []
        sealed: list[Any] | None = self._opened(part.opaque)
        return ("", []) if sealed is None else (part.text, sealed)

    def _opened(self, opaque: Opaque | None) -> Any:
        """What is sealed, if it was this very model that sealed it."""
        return msgspec.json.decode(opaque.data) if opaque is not None and opaque.issuer == self._issuer else None

    def _call(self, call: RequestCall) -> Json:
        name = self._names.wire(call.name)
        made: Json = {
            "id": self._ids.add(call, name),
            "type": "function",
            "function": {"name": name, "arguments": as_object(call.arguments)},
        }
        if (extra := self._opened(call.opaque)) is not None:
            made["extra_content"] = extra
        return made

    def _results(self, results: Sequence[RequestResult]) -> Iterator[Json]:
        files: list[FilePart] = []
        for result in results:
            files += result.files
            yield {"role": "tool", "tool_call_id": self._ids.wire(result.call), "content": result_text(result)}
        if files:  # only a user's message may hold them
            brought = _text("[files that the tools above brought]")
            yield {"role": "user", "content": [brought, *map(self._file, files)]}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _short(parts: list[Json]) -> str | list[Json]:
    """Content as one text where that is all there is: not every server reads lists."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _in_turn(messages: Iterable[Json], profile: Profile) -> Iterator[Json]:
    """Nobody speaks twice in a row, and between a tool's result and a user stands the assistant, where that must be."""
    last: Json | None = None
    has_rules = profile.must_alternate or not profile.can_follow_tool
    for message in messages:
        role = message["role"]
        if has_rules and last is not None and role == "user" and last["role"] == "tool":
            yield last
            last = {"role": "assistant", "content": INTERRUPTED}
        if last is not None and profile.must_alternate and role == last["role"] != "tool" and "tool_calls" not in last:
            last = {**message, "content": _joined(last["content"], message["content"])}
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def _joined(one: str | list[Json] | None, other: str | list[Json] | None) -> str | list[Json] | None:
    if isinstance(one, list) or isinstance(other, list):
        return [*_listed(one), *_listed(other)]
    return "\n\n".join(text for text in (one, other) if text) or None


def _listed(content: str | list[Json] | None) -> list[Json]:
    return content if isinstance(content, list) else [_text(content)] if content else []


def _mark(messages: list[Json]) -> None:
    """Mark what should be cached: up to the system prompt, and up to the last two things the user said."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for at in {*(at for at in (0,) if messages[0]["role"] == "system"), *users[-2:]}:
        parts = _listed(messages[at]["content"])
        if parts:
            marked: Mapping[str, Any] = {**parts[-1], "cache_control": CACHE}
            messages[at] = {**messages[at], "content": [*parts[:-1], marked]}
