"""A neutral request → the body of an OpenAI Responses request that leaves nothing behind at the provider.

`store` is false, so every item goes out whole and without the provider's ids, and reasoning comes back encrypted: it is
replayed to the model that sealed it, and only in front of what it led to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.history import as_object
from everturn.core.parts import FilePart, NoticePart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.models.formats import Built
from everturn.models.formats.files import as_data_url, as_note, as_text, handed_on, kind_of
from everturn.models.formats.names import CallIds, Names
from everturn.models.formats.params import RESERVED, encode, schema_name, take
from everturn.models.formats.schemas import tool_schema
from everturn.models.formats.tidy import result_text, tidy
from everturn.models.formats.words import GO_ON, notice
from everturn.models.profile import Origin, Profile

PATH = "/responses"
LEAST_TOKENS = 16  # less is refused
SEALED = "reasoning.encrypted_content"
_RESERVED = {**RESERVED, "store": "the log is here, and the vendor is asked to keep nothing"}
Json = dict[str, Any]


def build(request: ModelRequest, profile: Profile, origin: Origin) -> Built:
    """Write the body."""
    names = Names(request.tools)
    params = take(request, profile, _RESERVED)
    include = [*params.rest.pop("include", ()), *((SEALED,) if profile.has_seals else ())]
    body: Json = {
        **params.rest,
        "model": origin.model,
        "stream": True,
        "store": False,
    }
    if include:
        body["include"] = list(dict.fromkeys(include))
    if params.max_tokens is not None:
        body["max_output_tokens"] = max(params.max_tokens, LEAST_TOKENS)
    if params.output_schema is not None:
        name = schema_name(params.output_schema) or "answer"
        form = {"type": "json_schema", "name": name, "schema": params.output_schema, "strict": True}
        body["text"] = {**body.get("text", {}), "format": form}
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": names.wire(tool.name),
                "description": tool.description,
                "parameters": tool_schema(tool.schema),
                "strict": False,
            }
            for tool in request.tools
        ]
    if params.tool_choice is not None:
        body["tool_choice"] = _choice(params.tool_choice, names)
    items = list(_Items(request, profile, origin, names).each())
    if not items or items[-1].get("role") == "assistant":
        items.append({"role": "user", "content": GO_ON})
    body["input"] = items
    return Built(PATH, encode(body), names.ours)


def _choice(choice: str | Json, names: Names) -> object:
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "name": names.wire(choice)}
    return choice


class _Items:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: Names) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)

    def each(self) -> Iterator[Json]:
        """The items of all messages."""
        for message in handed_on(tidy(self._request.messages), self._profile.inputs, self._request.files):
            match message.role:
                case "user":
                    if content := self._user(message.parts):
                        yield {"role": "user", "content": content}
                case "assistant":
                    yield from self._assistant(message.parts)
                case "tool":
                    for result in cast("Sequence[RequestResult]", message.parts):
                        yield self._result(result)

    def _user(self, parts: Sequence[RequestPart]) -> str | list[Json]:
        if len(parts) == 1 and type(parts[0]) is TextPart:
            return parts[0].text
        return list(self._user_parts(parts))

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

    def _assistant(self, parts: Iterable[RequestPart]) -> Iterator[Json]:
        thoughts: list[Json] = []  # held until there is what they led to: alone they are refused
        for part in parts:
            match part:
                case ReasoningPart(opaque=opaque):
                    if opaque is not None and opaque.issuer == self._issuer:
                        thoughts.append(msgspec.json.decode(opaque.data))
                    continue
                case TextPart(text=text):
                    item = _said(text) if text else None
                case NoticePart():
                    item = _said(notice(part))
                case FilePart():
                    item = _said(as_note(part))
                case RequestCall():
                    item = self._call(part)
                case RequestResult():
                    item = None
            if item is not None:
                yield from thoughts
                thoughts = []
                yield item

    def _call(self, call: RequestCall) -> Json:
        name = self._names.wire(call.name)
        return {
            "type": "function_call",
            "call_id": self._ids.add(call, name),
            "name": name,
            "arguments": as_object(call.arguments),
        }

    def _result(self, result: RequestResult) -> Json:
        output: str | list[Json] = result_text(result)
        if result.files:
            output = [_text(result_text(result)), *map(self._file, result.files)]
        return {"type": "function_call_output", "call_id": self._ids.wire(result.call), "output": output}

    def _file(self, file: FilePart) -> Json:
        files = self._request.files
        match kind_of(file, self._profile.inputs, files):
            case "image":
                return {"type": "input_image", "image_url": as_data_url(file, files)}
            case "pdf":
                name = file.name or "file.pdf"
                return {"type": "input_file", "filename": name, "file_data": as_data_url(file, files)}
            case "text":
                return _text(as_text(file, files))
            case "audio" | "unread":
                return _text(as_note(file))


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _said(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}
