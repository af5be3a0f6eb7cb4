"""OpenAI Chat Completions request: builds its body from a neutral request, according to the vendor's profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from everturn.core.continuation import continued_text
from everturn.core.history import arguments_as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.models.formats import BuiltRequest
from everturn.models.formats.files import AUDIO, as_base64, as_data_url, as_note, as_text, file_kind, move_files_to_user
from everturn.models.formats.memo import Memo
from everturn.models.formats.notices import CONTINUE, INTERRUPTED, notice_text, user_content
from everturn.models.formats.params import encode_body, schema_name, take_params
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.tool_names import CallIds, ToolNames
from everturn.models.formats.tool_schemas import tool_schema
from everturn.models.formats.turn_cache import cache_messages, cached_messages
from everturn.models.formats.valid_history import repair_history, result_text
from everturn.models.profile import Origin, Profile

PATH = "/chat/completions"
Json = dict[str, Any]
# Strict is a word of OpenAI's rules for schemas; servers with rules of their own are not told it.
_STRICT: Mapping[str, Json] = {name: {"strict": True} for name in ("", "openai", "openai-fine-tuned")}

_tools: Memo[msgspec.Raw] = Memo(1_000)  # a tool is the same in every request, and there may be dozens of them


def build(request: ModelRequest, profile: Profile, origin: Origin) -> BuiltRequest:
    """Build the request."""
    names = ToolNames(request.tools)
    params = take_params(request, profile)
    body: Json = {**params.rest, "model": origin.model, "stream": True}
    if profile.has_usage_option:
        body.setdefault("stream_options", {"include_usage": True})
    if params.max_tokens is not None:
        body[profile.max_tokens] = params.max_tokens
    if params.output_schema is not None:
        name = schema_name(params.output_schema) or "answer"
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": params.output_schema, **_STRICT.get(profile.output_subset, {})},
        }
    if request.tools:
        body["tools"] = [
            _tools.get(tool, _as_is) if names.wire(tool.name) == tool.name else _tool(tool, names.wire(tool.name))
            for tool in request.tools
        ]
    if params.tool_choice is not None:
        body["tool_choice"] = _choice(params.tool_choice, names)
    writer = _ChatMessages(request, profile, origin, names)
    if profile.must_alternate or not profile.can_follow_tool or profile.has_cache_markers:
        messages = _with_prefix(list(writer.in_turn()), request, profile)
        if params.cache_marker is not None:
            _mark(messages, params.cache_marker)
        body["messages"] = messages
    else:
        body["messages"] = _with_prefix(writer.plain(), request, profile)
    return BuiltRequest(PATH, encode_body(body), names.ours)


def _with_prefix(messages: list[Json], request: ModelRequest, profile: Profile) -> list[Json]:
    """Mark the text that is to be continued, where the server continues a marked message."""
    if profile.continuation != "prefix" or not continued_text(request):
        return messages
    return [*messages[:-2], {**messages[-2], "prefix": True}]


def _tool(tool: ToolSpec, name: str) -> Json:
    function = {"name": name, "description": tool.description, "parameters": tool_schema(tool.schema)}
    return {"type": "function", "function": function}


def _as_is(tool: ToolSpec) -> msgspec.Raw:
    return msgspec.Raw(encode_body(_tool(tool, tool.name)))


def _choice(choice: str | Json, names: ToolNames) -> object:
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "function": {"name": names.wire(choice)}}
    return choice


class _ChatMessages:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: ToolNames) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)

    def plain(self) -> list[Json]:
        """Return all messages. Each is converted once per turn, however many requests the turn has."""
        request, key = self._request, f"chat {id(self._profile)} {self._issuer} {self._names.ours}"
        key += f" {sorted(request.references.items())}" if request.references else ""
        written = cached_messages(request, key, self._ids)
        self._ids, messages = written.state, list(written.converted)
        for message in move_files_to_user(
            repair_history(written.remaining(request)), self._profile.inputs, request.files
        ):
            parts = message.parts
            if len(parts) == 1 and type(parts[0]) is TextPart and parts[0].text:  # the common case
                messages.append({"role": message.role, "content": parts[0].text})
            else:
                messages.extend(self._messages_of(message))
        cache_messages(request, key, messages, self._ids)
        if not messages or messages[-1]["role"] == "assistant":  # most models cannot answer their own message
            return [*self._system(), *messages, {"role": "user", "content": CONTINUE}]
        return [*self._system(), *messages]

    def in_turn(self) -> Iterator[Json]:
        """Yield all messages, in an order that vendors with stricter rules accept."""
        profile = self._profile
        yield from self._system()
        history = move_files_to_user(repair_history(self._request.messages), profile.inputs, self._request.files)
        messages = (entry for message in history for entry in self._messages_of(message))
        before = ""
        for message in _in_turn(messages, profile):
            if not before and profile.must_alternate and message["role"] == "assistant":
                yield {"role": "user", "content": CONTINUE}
            before = message["role"]
            yield message
        if before in ("", "assistant"):
            yield {"role": "user", "content": CONTINUE}

    def _system(self) -> Iterator[Json]:
        if self._request.system:
            yield {"role": self._profile.system, "content": self._request.system}

    def _messages_of(self, message: RequestMessage) -> Iterator[Json]:
        match message.role:
            case "user":
                if content := self._user(message.parts):
                    yield {"role": "user", "content": content}
            case "assistant":
                if entry := self._assistant(message.parts):
                    yield entry
            case "tool":
                yield from self._results(cast("Sequence[RequestResult]", message.parts))

    def _user(self, parts: Sequence[RequestPart]) -> str | list[Json]:
        if len(parts) == 1 and type(parts[0]) is TextPart:
            return parts[0].text
        return _short(list(user_content(parts, _text, self._file)))

    def _file(self, file: FilePart) -> Json:
        files = self._request.files
        match file_kind(file, self._profile.inputs, files):
            case "pdf" if reference := self._request.references.get(file.blob):
                return {"type": "file", "file": {"file_id": reference}}
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
                    texts.append(notice_text(part))
                case ProviderToolPart() | FilePart():
                    texts.append(provider_tool_as_text(part) if isinstance(part, ProviderToolPart) else as_note(part))
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
        entry: Json = {"role": "assistant", "content": text or None}
        if calls:
            entry["tool_calls"] = calls
            if self._profile.replay:
                entry[self._profile.replay] = "".join(thoughts) or self._profile.filler
        if details:
            entry["reasoning_details"] = details
        return entry

    def _thought(self, part: ReasoningPart) -> tuple[str, list[Any]]:
        """Return the reasoning text and its opaque data; nothing for another model's reasoning."""
        if part.opaque is None:
            return part.text, []
        sealed: list[Any] | None = self._opened(part.opaque)
        return ("", []) if sealed is None else (part.text, sealed)

    def _opened(self, opaque: Opaque | None) -> Any:
        """Decode opaque data if this model issued it."""
        return msgspec.json.decode(opaque.data) if opaque is not None and opaque.issuer == self._issuer else None

    def _call(self, call: RequestCall) -> Json:
        name = self._names.wire(call.name)
        entry: Json = {
            "id": self._ids.add(call, name),
            "type": "function",
            "function": {"name": name, "arguments": arguments_as_object(call.arguments)},
        }
        if (extra := self._opened(call.opaque)) is not None:
            entry["extra_content"] = extra
        return entry

    def _results(self, results: Sequence[RequestResult]) -> Iterator[Json]:
        files: list[FilePart] = []
        for result in results:
            files += result.files
            yield {"role": "tool", "tool_call_id": self._ids.wire(result.call), "content": result_text(result)}
        if files:  # only user messages may have files
            note = _text("[files that the tools above brought]")
            yield {"role": "user", "content": [note, *map(self._file, files)]}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _short(parts: list[Json]) -> str | list[Json]:
    """Return content as one text where there is only text: not every server accepts lists."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _in_turn(messages: Iterable[Json], profile: Profile) -> Iterator[Json]:
    """Enforce alternating roles, and an assistant message between a tool result and a user message, where required."""
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


def _joined(first: str | list[Json] | None, second: str | list[Json] | None) -> str | list[Json] | None:
    if isinstance(first, list) or isinstance(second, list):
        return [*_listed(first), *_listed(second)]
    return "\n\n".join(text for text in (first, second) if text) or None


def _listed(content: str | list[Json] | None) -> list[Json]:
    return content if isinstance(content, list) else [_text(content)] if content else []


def _mark(messages: list[Json], marker: Json) -> None:
    """Add cache markers: to the system prompt, and to the last two user messages."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for at in {*(at for at in (0,) if messages[0]["role"] == "system"), *users[-2:]}:
        parts = _listed(messages[at]["content"])
        if parts:
            marked: Mapping[str, Any] = {**parts[-1], "cache_control": marker}
            messages[at] = {**messages[at], "content": [*parts[:-1], marked]}
