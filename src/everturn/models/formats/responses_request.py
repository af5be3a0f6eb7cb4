"""OpenAI Responses request: builds its body from a neutral request, with nothing stored at the provider.

`store` is false, so every item is sent whole and without the provider's ids, and reasoning is returned encrypted: it is
sent back to the model that issued it, and only in front of the items that followed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.history import arguments_as_object
from everturn.core.parts import FilePart, NoticePart, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.models.formats import BuiltRequest
from everturn.models.formats.files import as_data_url, as_note, as_text, file_kind, move_files_to_user
from everturn.models.formats.notices import CONTINUE, notice_text, user_content
from everturn.models.formats.params import RESERVED, encode_body, schema_name, take_params
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.provider_tools import declare_tools, find_replayable, offered_tools
from everturn.models.formats.responses_server_tools import INCLUDES, ITEMS
from everturn.models.formats.tool_names import CallIds, ToolNames
from everturn.models.formats.tool_schemas import tool_schema
from everturn.models.formats.valid_history import repair_history, result_text
from everturn.models.profile import Origin, Profile

PATH = "/responses"
LEAST_TOKENS = 16  # the API refuses less
ENCRYPTED_REASONING = "reasoning.encrypted_content"
_RESERVED = {**RESERVED, "store": "the log is here, and the vendor is asked to keep nothing"}
Json = dict[str, Any]


def build(request: ModelRequest, profile: Profile, origin: Origin) -> BuiltRequest:
    """Build the request."""
    names = ToolNames(request.tools)
    params = take_params(request, profile, _RESERVED)
    provider_tools = declare_tools(request, profile)
    hosted = [tool.name for tool in offered_tools(request, profile)]
    include = [*params.rest.pop("include", ()), *((ENCRYPTED_REASONING,) if profile.has_encrypted_reasoning else ())]
    include += [INCLUDES[name] for name in hosted if name in INCLUDES]
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
        output_format = {"type": "json_schema", "name": name, "schema": params.output_schema, "strict": True}
        body["text"] = {**body.get("text", {}), "format": output_format}
    if request.system:
        body["instructions"] = request.system
    if request.tools or provider_tools:
        body["tools"] = [
            {
                "type": "function",
                "name": names.wire(tool.name),
                "description": tool.description,
                "parameters": tool_schema(tool.schema),
                "strict": False,
            }
            for tool in request.tools
        ] + provider_tools
    if params.tool_choice is not None:
        body["tool_choice"] = _choice(params.tool_choice, names)
    items = list(_Items(request, profile, origin, names, hosted).each())
    if not items or items[-1].get("role") == "assistant" or items[-1].get("type") in ITEMS:
        items.append({"role": "user", "content": CONTINUE})
    body["input"] = items
    return BuiltRequest(PATH, encode_body(body), names.ours)


def _choice(choice: str | Json, names: ToolNames) -> object:
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "name": names.wire(choice)}
    return choice


class _Items:
    def __init__(
        self, request: ModelRequest, profile: Profile, origin: Origin, names: ToolNames, hosted: Sequence[str]
    ) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._replayed = find_replayable(request.messages, origin.issuer, hosted, has_pairs=False)
        self._ids = CallIds(profile.ids)

    def each(self) -> Iterator[Json]:
        """Yield the items of all messages."""
        for message in move_files_to_user(
            repair_history(self._request.messages), self._profile.inputs, self._request.files
        ):
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
        return list(user_content(parts, _text, self._file))

    def _assistant(self, parts: Iterable[RequestPart]) -> Iterator[Json]:
        thoughts: list[Json] = []  # held until an item follows: alone they are refused
        for part in parts:
            match part:
                case ReasoningPart(opaque=opaque):
                    if opaque is not None and opaque.issuer == self._issuer:
                        thoughts.append(msgspec.json.decode(opaque.data))
                    continue
                case TextPart(text=text):
                    item = _output_text(text) if text else None
                case NoticePart():
                    item = _output_text(notice_text(part))
                case ProviderToolPart(opaque=opaque):
                    item = _output_text(provider_tool_as_text(part))
                    if opaque is not None and id(part) in self._replayed:
                        self._replayed.remove(id(part))  # a plugin may have put the same message in twice
                        item = msgspec.json.decode(opaque.data)
                case FilePart():
                    item = _output_text(as_note(part))
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
            "arguments": arguments_as_object(call.arguments),
        }

    def _result(self, result: RequestResult) -> Json:
        output: str | list[Json] = result_text(result)
        if result.files:
            output = [_text(result_text(result)), *map(self._file, result.files)]
        return {"type": "function_call_output", "call_id": self._ids.wire(result.call), "output": output}

    def _file(self, file: FilePart) -> Json:
        files = self._request.files
        reference = self._request.references.get(file.blob)
        match file_kind(file, self._profile.inputs, files):
            case "image" if reference:
                return {"type": "input_image", "file_id": reference}
            case "pdf" if reference:
                return {"type": "input_file", "file_id": reference}
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


def _output_text(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}
