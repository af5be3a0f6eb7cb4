"""A neutral request → the body of a request in Ollama's own format.

Its OpenAI-compatible door takes no `num_ctx` and no `think`, so this one is used. What it takes:

    num_ctx, temperature, seed, stop, …    go into `options`, where it looks for them; `options` itself does, too
    max_tokens, output_schema              are `options.num_predict` and `format`
    think, keep_alive, format, truncate    and whatever else is given go out as they are

It passes over fields that it does not know. A new option can be had with `options={…}`, a new field by its name.

Nobody can be made to call a tool here: of the choices only "none" is heard, and then no tool is offered. With a
`format` some models are held to it from the first word on, and call nothing.

The window is what `num_ctx` says; without it, what the server thinks it has memory for, which may be 4096 tokens. A
longer prompt would lose its beginning behind a 200. So `truncate` is false unless the caller says otherwise, and the
server refuses instead; one before 0.12.6 does not know the word, and nothing it sends tells. An answer that outgrows
the window while it is written pushes the beginning out all the same: `shift=False` ends it there, but is a reason to
load the model again, so that is left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.canonical import clean
from everturn.core.history import as_object
from everturn.core.parts import FilePart, NoticePart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.models.formats import Built
from everturn.models.formats.files import as_base64, as_note, as_text, handed_on, kind_of
from everturn.models.formats.made import Made
from everturn.models.formats.names import CallIds, Names
from everturn.models.formats.params import Params, encode, take
from everturn.models.formats.schemas import tool_schema
from everturn.models.formats.tidy import result_text, tidy
from everturn.models.formats.words import GO_ON, notice
from everturn.models.formats.written import remember, so_far
from everturn.models.profile import Origin, Profile

PATH = "/api/chat"
OPTIONS = frozenset(
    {
        *("num_ctx", "num_predict", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap"),
        *("draft_num_predict", "seed", "stop", "temperature", "top_k", "top_p", "min_p", "typical_p"),
        *("repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty"),
        # of older servers
        *("tfs_z", "mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline", "numa", "use_mlock", "low_vram"),
    }
)
SCHEMAS = 500  # that a tool may come to, with every reference followed
DEPTH = 24  # of schemas inside schemas
Json = dict[str, Any]

_tools: Made[msgspec.Raw] = Made(1_000)  # a tool is the same in every request, and there may be dozens


def build(request: ModelRequest, profile: Profile, origin: Origin) -> Built:
    """Write the body."""
    names = Names(request.tools)
    params = take(request, profile)
    options = _options(params)
    body: Json = {"truncate": False, **params.rest, "model": origin.model, "stream": True}
    if options:
        body["options"] = options
    if params.output_schema is not None:
        body["format"] = params.output_schema
    if request.tools and params.tool_choice != "none":
        body["tools"] = [
            _tools.get(tool, _as_is) if names.wire(tool.name) == tool.name else _tool(tool, names.wire(tool.name))
            for tool in request.tools
        ]
    body["messages"] = _Messages(request, profile, origin, names).all()
    return Built(PATH, encode(body), names.ours)


def _options(params: Params) -> Json:
    """What belongs into `options`, taken out of the rest."""
    rest = params.rest
    options: Json = {**(rest.pop("options", None) or {})}
    options |= {name: rest.pop(name) for name in OPTIONS & rest.keys()}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]  # it takes nothing but lists
    if params.max_tokens is not None:
        options["num_predict"] = params.max_tokens
    return options


# Messages -------------------------------------------------------------------------------------------------------------


class _Messages:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: Names) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)
        self._called: dict[str, str] = {}  # by the ids of calls, whose results are always near

    def all(self) -> list[Json]:
        """All messages. Each is written once in a turn, however many requests it has."""
        request = self._request
        key = f"ollama {id(self._profile)} {self._issuer} {self._names.ours}"
        written = so_far(request, key, self._ids)
        self._ids, shown = written.notes, list(written.shown)
        for message in handed_on(tidy(written.left(request)), self._profile.inputs, request.files):
            parts = message.parts
            if len(parts) == 1 and type(parts[0]) is TextPart and parts[0].text:  # what nearly every one is
                these: Iterable[Json] = ({"role": message.role, "content": parts[0].text},)
            else:
                these = self._one(message)
            for one in these:
                if shown and one["role"] == "assistant" == shown[-1]["role"]:
                    shown[-1] = _joined(shown[-1], one)
                else:
                    shown.append(one)
        remember(request, key, shown, self._ids)
        system = [{"role": "system", "content": request.system}] if request.system else []
        is_asked = shown and shown[-1]["role"] != "assistant"  # what it said last it would only go on writing
        return [*system, *shown] if is_asked else [*system, *shown, {"role": "user", "content": GO_ON}]

    def _one(self, message: RequestMessage) -> Iterator[Json]:
        match message.role:
            case "user":
                said = self._user(message.parts)
                if said["content"] or "images" in said:
                    yield said
            case "assistant":
                if said := self._assistant(message.parts):
                    yield said
            case "tool":
                yield from self._results(cast("Sequence[RequestResult]", message.parts))

    def _user(self, parts: Iterable[RequestPart]) -> Json:
        texts: list[str] = []
        images: list[str] = []
        files = self._request.files
        for part in parts:
            match part:
                case TextPart(text=text):
                    texts.append(text)
                case NoticePart():
                    texts.append(notice(part))
                case FilePart():
                    match kind_of(part, self._profile.inputs, files):
                        case "image":
                            images.append(as_base64(part, files))
                        case "text":
                            texts.append(as_text(part, files))
                        case "audio" | "pdf" | "unread":
                            texts.append(as_note(part))
                case _:
                    pass
        said: Json = {"role": "user", "content": "\n\n".join(filter(None, texts))}
        return {**said, "images": images} if images else said

    def _assistant(self, parts: Iterable[RequestPart]) -> Json | None:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    texts.append(text)
                case NoticePart():
                    texts.append(notice(part))
                case FilePart():
                    texts.append(as_note(part))
                case ReasoningPart(text=text, opaque=opaque):
                    thoughts.append(text if opaque is None else "")  # what another has sealed is not ours to tell
                case RequestCall():
                    calls.append(self._call(part))
                case RequestResult():
                    pass
        said: Json = {"role": "assistant", "content": "".join(texts)}
        if calls:
            said["tool_calls"] = calls
            if self._profile.replay and (thought := "".join(thoughts)):
                said[self._profile.replay] = thought
        return said if calls or said["content"] else None

    def _call(self, call: RequestCall) -> Json:
        name = self._called[call.call] = self._names.wire(call.name)
        arguments = msgspec.Raw(as_object(clean(call.arguments)).encode())
        return {"id": self._ids.add(call, name), "function": {"name": name, "arguments": arguments}}

    def _results(self, results: Sequence[RequestResult]) -> Iterator[Json]:
        files: list[FilePart] = []
        for result in results:
            files += result.files
            yield {
                "role": "tool",
                "tool_name": self._called[result.call],
                "tool_call_id": self._ids.wire(result.call),  # before 0.12.10 nobody reads it, and nobody minds
                "content": result_text(result),
            }
        if files:  # only a user's message may hold them
            yield self._user([TextPart("[files that the tools above brought]"), *files])


def _joined(one: Json, other: Json) -> Json:
    """Two messages of the assistant in a row as one: the server joins their texts, and loses the calls of the second."""
    return {**other, "content": "\n\n".join(filter(None, (one["content"], other["content"])))}


# Tools ----------------------------------------------------------------------------------------------------------------


def _tool(tool: ToolSpec, name: str) -> Json:
    schema = tool_schema(tool.schema)
    parameters = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    parameters["properties"] = _Plain(schema).each(schema["properties"], ())
    return {"type": "function", "function": {"name": name, "description": tool.description, "parameters": parameters}}


def _as_is(tool: ToolSpec) -> msgspec.Raw:
    return msgspec.Raw(encode(_tool(tool, tool.name)))


class _Plain:
    """Schemas of properties in the words the server reads: `$ref`, `oneOf` and `const` it drops, at `true` it chokes."""

    def __init__(self, root: Json) -> None:
        self._root, self._left = root, SCHEMAS

    def each(self, properties: Json, above: tuple[str, ...]) -> Json:
        """Some properties; `above` are the references that led here, for a circle of them is cut."""
        return {name: self.one(schema, above) for name, schema in properties.items()}

    def one(self, schema: object, above: tuple[str, ...]) -> Json:
        """One schema; what cannot be said is left open."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or len(above) >= DEPTH:
            return {}
        plain = dict(cast("Json", schema))
        ref = plain.pop("$ref", "")
        if isinstance(ref, str) and ref:
            return {} if ref in above else {**self.one(self._found(ref), (*above, ref)), **plain}
        above = (*above, "")
        if either := self._branches(plain, "anyOf", above) or self._branches(plain, "oneOf", above):
            plain["anyOf"] = either
        if "const" in plain:
            plain.setdefault("enum", [plain.pop("const")])
        for key in ("items", "additionalProperties"):
            if isinstance(plain.get(key), dict):
                plain[key] = self.one(plain[key], above)
        properties = plain.pop("properties", None)
        properties = self.each(cast("Json", properties), above) if isinstance(properties, dict) else {}
        for branch in self._branches(plain, "allOf", above):
            properties = {**branch.get("properties", {}), **properties}
            plain = {**branch, **plain}
        return {**plain, "properties": properties} if properties else plain

    def _branches(self, schema: Json, key: str, above: tuple[str, ...]) -> list[Json]:
        branches = schema.pop(key, None)
        return [self.one(one, above) for one in cast("list[object]", branches)] if isinstance(branches, list) else []

    def _found(self, ref: str) -> object:
        found: Any = self._root
        for name in ref.removeprefix("#/").split("/"):
            found = cast("Json", found).get(name) if isinstance(found, dict) else None
        return found
