"""Ollama request: builds the body of a request in Ollama's own format from a neutral request.

Ollama's OpenAI-compatible API accepts neither `num_ctx` nor `think`, so this one is used. Parameters:

    num_ctx, temperature, seed, stop, …    go into `options`; so does `options` itself
    max_tokens, output_schema              become `options.num_predict` and `format`
    think, keep_alive, format, truncate    and all others are sent unchanged

Ollama ignores unknown fields. Set a new option with `options={…}`, a new field by its name.

Ollama cannot force a tool call: of the tool choices only "none" has an effect, and then no tool is offered. With a
`format` some models are constrained from the first token on, and call nothing.

The context window is `num_ctx`; without it, what the server expects to have memory for, which may be 4096 tokens. A
longer prompt would lose its beginning without an error. So `truncate` is false by default, and the server refuses
instead; servers before 0.12.6 do not know the field, and truncate silently. An answer that outgrows the window while it
is generated still pushes the beginning out: `shift=False` ends it there, but makes the server load the model again, so
that is left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.canonical_json import replace_surrogates
from everturn.core.continuation import continued_text
from everturn.core.history import arguments_as_object
from everturn.core.parts import FilePart, NoticePart, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.models.formats import BuiltRequest
from everturn.models.formats.files import as_base64, as_note, as_text, file_kind, move_files_to_user
from everturn.models.formats.memo import Memo
from everturn.models.formats.notices import CONTINUE, notice_text
from everturn.models.formats.params import Params, encode_body, take_params
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.tool_names import CallIds, ToolNames
from everturn.models.formats.tool_schemas import tool_schema
from everturn.models.formats.turn_cache import cache_messages, cached_messages
from everturn.models.formats.valid_history import repair_history, result_text
from everturn.models.profile import Origin, Profile

PATH = "/api/chat"
OPTIONS = frozenset(
    {
        *("num_ctx", "num_predict", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap"),
        *("draft_num_predict", "seed", "stop", "temperature", "top_k", "top_p", "min_p", "typical_p"),
        *("repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty"),
        # older servers
        *("tfs_z", "mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline", "numa", "use_mlock", "low_vram"),
    }
)
SCHEMAS = 500  # maximum number of schemas of a tool, with every reference followed
DEPTH = 24  # maximum nesting of schemas
Json = dict[str, Any]

_tools: Memo[msgspec.Raw] = Memo(1_000)  # a tool is the same in every request, and there may be dozens of them


def build(request: ModelRequest, profile: Profile, origin: Origin) -> BuiltRequest:
    """Build the request."""
    names = ToolNames(request.tools)
    params = take_params(request, profile)
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
    body["messages"] = _OllamaMessages(request, profile, origin, names).all()
    return BuiltRequest(PATH, encode_body(body), names.ours)


def _options(params: Params) -> Json:
    """Move what belongs into `options` out of the other parameters."""
    rest = params.rest
    options: Json = {**(rest.pop("options", None) or {})}
    options |= {name: rest.pop(name) for name in OPTIONS & rest.keys()}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]  # Ollama accepts lists only
    if params.max_tokens is not None:
        options["num_predict"] = params.max_tokens
    return options


# Messages -------------------------------------------------------------------------------------------------------------


class _OllamaMessages:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: ToolNames) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._ids = CallIds(profile.ids)
        self._called: dict[str, str] = {}  # call id -> tool name; results follow their calls

    def all(self) -> list[Json]:
        """Return all messages. Each is converted once per turn, however many requests the turn has."""
        request = self._request
        key = f"ollama {id(self._profile)} {self._issuer} {self._names.ours}"
        written = cached_messages(request, key, self._ids)
        self._ids, messages = written.state, list(written.converted)
        for message in move_files_to_user(
            repair_history(written.remaining(request)), self._profile.inputs, request.files
        ):
            parts = message.parts
            if len(parts) == 1 and type(parts[0]) is TextPart and parts[0].text:  # the common case
                converted: Iterable[Json] = ({"role": message.role, "content": parts[0].text},)
            else:
                converted = self._messages_of(message)
            for entry in converted:
                if messages and entry["role"] == "assistant" == messages[-1]["role"]:
                    messages[-1] = _joined(messages[-1], entry)
                else:
                    messages.append(entry)
        cache_messages(request, key, messages, self._ids)
        system = [{"role": "system", "content": request.system}] if request.system else []
        if self._profile.continuation == "last" and continued_text(request):
            return [*system, *messages[:-1]]
        is_asked = messages and messages[-1]["role"] != "assistant"  # the model would only continue its last message
        return [*system, *messages] if is_asked else [*system, *messages, {"role": "user", "content": CONTINUE}]

    def _messages_of(self, message: RequestMessage) -> Iterator[Json]:
        match message.role:
            case "user":
                entry = self._user(message.parts)
                if entry["content"] or "images" in entry:
                    yield entry
            case "assistant":
                if entry := self._assistant(message.parts):
                    yield entry
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
                    texts.append(notice_text(part))
                case FilePart():
                    match file_kind(part, self._profile.inputs, files):
                        case "image":
                            images.append(as_base64(part, files))
                        case "text":
                            texts.append(as_text(part, files))
                        case "audio" | "pdf" | "unread":
                            texts.append(as_note(part))
                case _:
                    pass
        entry: Json = {"role": "user", "content": "\n\n".join(filter(None, texts))}
        return {**entry, "images": images} if images else entry

    def _assistant(self, parts: Iterable[RequestPart]) -> Json | None:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    texts.append(text)
                case NoticePart():
                    texts.append(notice_text(part))
                case ProviderToolPart():
                    texts.append(provider_tool_as_text(part))
                case FilePart():
                    texts.append(as_note(part))
                case ReasoningPart(text=text, opaque=opaque):
                    thoughts.append(
                        text if opaque is None else ""
                    )  # reasoning with opaque data belongs to another model
                case RequestCall():
                    calls.append(self._call(part))
                case RequestResult():
                    pass
        entry: Json = {"role": "assistant", "content": "".join(texts)}
        if calls:
            entry["tool_calls"] = calls
            if self._profile.replay and (thought := "".join(thoughts)):
                entry[self._profile.replay] = thought
        return entry if calls or entry["content"] else None

    def _call(self, call: RequestCall) -> Json:
        name = self._called[call.call] = self._names.wire(call.name)
        arguments = msgspec.Raw(arguments_as_object(replace_surrogates(call.arguments)).encode())
        return {"id": self._ids.add(call, name), "function": {"name": name, "arguments": arguments}}

    def _results(self, results: Sequence[RequestResult]) -> Iterator[Json]:
        files: list[FilePart] = []
        for result in results:
            files += result.files
            yield {
                "role": "tool",
                "tool_name": self._called[result.call],
                "tool_call_id": self._ids.wire(result.call),  # servers before 0.12.10 ignore it
                "content": result_text(result),
            }
        if files:  # only user messages may have images
            yield self._user([TextPart("[files that the tools above brought]"), *files])


def _joined(first: Json, second: Json) -> Json:
    """Merge two assistant messages in a row: the server joins their texts, but loses the calls of the second."""
    return {**second, "content": "\n\n".join(filter(None, (first["content"], second["content"])))}


# Tools ----------------------------------------------------------------------------------------------------------------


def _tool(tool: ToolSpec, name: str) -> Json:
    schema = tool_schema(tool.schema)
    parameters = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    parameters["properties"] = _PlainSchema(schema).each(schema["properties"], ())
    if isinstance(others := parameters.get("additionalProperties"), dict):
        parameters["additionalProperties"] = _PlainSchema(schema).simplify(cast("Json", others), ())
    return {"type": "function", "function": {"name": name, "description": tool.description, "parameters": parameters}}


def _as_is(tool: ToolSpec) -> msgspec.Raw:
    return msgspec.Raw(encode_body(_tool(tool, tool.name)))


class _PlainSchema:
    """Rewrites property schemas for the server, which drops `$ref`, `oneOf` and `const` and fails on `true`."""

    def __init__(self, root: Json) -> None:
        self._root, self._left = root, SCHEMAS

    def each(self, properties: Json, above: tuple[str, ...]) -> Json:
        """Rewrite properties; `above` are the references that led here, to cut cycles."""
        return {name: self.simplify(schema, above) for name, schema in properties.items()}

    def simplify(self, schema: object, above: tuple[str, ...]) -> Json:
        """Rewrite one schema; what cannot be expressed is left open."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or len(above) >= DEPTH:
            return {}
        plain = dict(cast("Json", schema))
        ref = plain.pop("$ref", "")
        if isinstance(ref, str) and ref:
            return {} if ref in above else {**self.simplify(self._found(ref), (*above, ref)), **plain}
        above = (*above, "")
        if either := self._branches(plain, "anyOf", above) or self._branches(plain, "oneOf", above):
            plain["anyOf"] = either
        if positions := self._branches(plain, "prefixItems", above):
            plain["prefixItems"] = positions
        if "const" in plain:
            plain.setdefault("enum", [plain.pop("const")])
        for key in ("items", "additionalProperties"):
            if isinstance(plain.get(key), dict):
                plain[key] = self.simplify(plain[key], above)
        properties = plain.pop("properties", None)
        properties = self.each(cast("Json", properties), above) if isinstance(properties, dict) else {}
        for branch in self._branches(plain, "allOf", above):
            properties = {**branch.get("properties", {}), **properties}
            plain = {**branch, **plain}
        return {**plain, "properties": properties} if properties else plain

    def _branches(self, schema: Json, key: str, above: tuple[str, ...]) -> list[Json]:
        branches = schema.pop(key, None)
        return (
            [self.simplify(branch, above) for branch in cast("list[object]", branches)]
            if isinstance(branches, list)
            else []
        )

    def _found(self, ref: str) -> object:
        node: Any = self._root
        for name in ref.removeprefix("#/").split("/"):
            node = cast("Json", node).get(name) if isinstance(node, dict) else None
        return node
