"""Gemini request: builds the body of `streamGenerateContent` from a neutral request.

Gemini's rules: user and model alternate, and a user message begins and ends; the results of a step are in one content
right after it, as many as there were calls and in their order; no part is empty, except one with a thought signature; a
signature goes back on the part it came with. Gemini 3 refuses calls and images of the model without a signature, so
those of another model get a placeholder that Google documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from everturn.core.history import arguments_as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult, ToolSpec
from everturn.models.formats import BuiltRequest
from everturn.models.formats.files import AUDIO, as_base64, as_note, as_text, file_kind
from everturn.models.formats.gemini_schema import to_openapi
from everturn.models.formats.gemini_server_tools import is_metadata
from everturn.models.formats.memo import Memo
from everturn.models.formats.notices import CONTINUE, notice_text
from everturn.models.formats.params import CONVERSATION, PROMPT, RESERVED, Params, encode_body, take_params
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.provider_tools import declare_tools, find_replayable, offered_tools
from everturn.models.formats.tool_names import NAME_SIZE, ToolNames
from everturn.models.formats.tool_schemas import tool_schema
from everturn.models.formats.valid_history import EMPTY_TEXT, repair_history, result_text
from everturn.models.profile import Origin, Profile

PATH = "/{}:streamGenerateContent?alt=sse"
PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"
SIGNATURE_MODELS = "gemini-3*"  # the models that require signatures
UNREAD = frozenset({"image/gif"})  # the image type that others read and Gemini does not
CONFIG: Final = frozenset(
    {
        *("temperature", "topP", "topK", "seed", "stopSequences", "candidateCount", "maxOutputTokens"),
        *("presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "enableEnhancedCivicAnswers"),
        *("responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "mediaResolution"),
        *("thinkingConfig", "speechConfig", "imageConfig", "audioTimestamp", "routingConfig", "modelSelectionConfig"),
    }
)
_OTHER_WORDS = {"stop": "stopSequences"}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_RESERVED = {
    **RESERVED,
    "contents": CONVERSATION,
    "systemInstruction": PROMPT,
    "system_instruction": PROMPT,
}
_COLLECTIONS = ("models", "tunedModels")
Json = dict[str, Any]

_tools: Memo[msgspec.Raw] = Memo(1_000)  # a tool is the same in every request, and its schema has to be rewritten


def build(request: ModelRequest, profile: Profile, origin: Origin) -> BuiltRequest:
    """Build the request."""
    names = _GeminiToolNames(request.tools)
    params = take_params(request, profile, _RESERVED)
    body, config = _split(params)
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        declared = [
            _tools.get(tool, _as_is) if names.wire(tool.name) == tool.name else _tool(tool, names.wire(tool.name))
            for tool in request.tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
    provider_tools = _provider_tools(request, params, profile)
    if provider_tools:
        body["tools"] = [*body.get("tools", ()), *declare_tools(request, profile)]
        if profile.provider_tools == "mixed" and profile.has_call_parts:  # beside functions it is required there
            body["toolConfig"] = {**body.get("toolConfig", {}), "includeServerSideToolInvocations": True}
    if params.tool_choice is not None:
        choice = _choice(params.tool_choice, names)
        body["toolConfig"] = {**body.get("toolConfig", {}), "functionCallingConfig": choice}
    if config:
        body["generationConfig"] = config
    collection, model = _collection_and_name(origin.model)
    contents = _Contents(request, profile, origin, names, provider_tools).all()
    if fnmatchcase(model, SIGNATURE_MODELS):
        _add_placeholder_signatures(contents)
    body["contents"] = contents
    return BuiltRequest(
        PATH.format(f"{collection}/{quote(model, safe='', errors='replace')}"), encode_body(body), names.ours
    )


def _provider_tools(request: ModelRequest, params: Params, profile: Profile) -> list[str]:
    """The names of the built-in tools that a request declares. Older models have them alone, or not at all."""
    if profile.provider_tools != "mixed" and (request.tools or params.output_schema):
        return []
    return [tool.name for tool in offered_tools(request, profile)]


def _collection_and_name(model: str) -> tuple[str, str]:
    """Return the collection of a model, and its name there."""
    collection, slash, name = model.partition("/")
    return (collection, name) if slash and name and collection in _COLLECTIONS else (_COLLECTIONS[0], model)


def _split(params: Params) -> tuple[Json, Json]:
    """Split the parameters into top-level fields and `generationConfig`; `top_p` becomes `topP`."""
    body: Json = {}
    config: Json = {}
    for name, value in params.rest.items():
        first, *more = name.split("_")
        wire = first + "".join(word.capitalize() for word in more)
        wire = _OTHER_WORDS.get(wire, wire)
        if wire == "generationConfig" and isinstance(value, dict):
            config = {**cast("Json", value), **config}
        elif wire in CONFIG:
            config[wire] = [value] if wire == "stopSequences" and isinstance(value, str) else value
        else:
            body[name] = value
    if params.max_tokens is not None:
        config["maxOutputTokens"] = params.max_tokens
    if params.output_schema is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": params.output_schema}
    return body, config


def _tool(tool: ToolSpec, name: str) -> Json:
    schema = tool_schema(tool.schema)
    declaration: Json = {"name": name, "description": tool.description}
    if not schema["properties"] and not schema.get("additionalProperties"):
        return declaration  # Gemini refuses an object without properties; a tool without parameters declares none
    return {**declaration, "parameters": to_openapi(schema)}


def _as_is(tool: ToolSpec) -> msgspec.Raw:
    return msgspec.Raw(encode_body(_tool(tool, tool.name)))


def _choice(choice: str | Json, names: ToolNames) -> Json:
    if not isinstance(choice, str):
        return choice
    mode = _MODES.get(choice)
    return {"mode": mode} if mode else {"mode": "ANY", "allowedFunctionNames": [names.wire(choice)]}


class _GeminiToolNames(ToolNames):
    """Tool names, which have to begin with a letter or `_` here."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        super().__init__(tools)
        taken = {super(_GeminiToolNames, self).wire(tool.name) for tool in tools}
        self._prefixed: dict[str, str] = {}
        for tool in tools:
            plain = super().wire(tool.name)
            if not _is_start(plain):
                wire, number = f"_{plain}"[:NAME_SIZE], 1
                while wire in taken:
                    wire, number = f"_{number}_{plain}"[:NAME_SIZE], number + 1
                taken.add(wire)
                self._prefixed[tool.name] = wire
                self.ours.pop(plain, None)
                self.ours[wire] = tool.name

    def wire(self, name: str) -> str:
        """Return the vendor's name of a tool; also of an unknown one."""
        plain = super().wire(name)
        return plain if _is_start(plain) else self._prefixed.get(name, f"_{plain}"[:NAME_SIZE])


def _is_start(name: str) -> bool:
    return name[0] == "_" or name[0].isalpha()


class _Contents:
    def __init__(
        self, request: ModelRequest, profile: Profile, origin: Origin, names: ToolNames, provider_tools: Sequence[str]
    ) -> None:
        self._provider_tools = provider_tools  # those that the request declares
        self._replayed: set[int] = set()
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._calls: dict[str, Json] = {}  # our id of a call -> the fields that its result repeats
        self._taken: set[str] = set()

    def all(self) -> list[Json]:
        """Return all messages as alternating contents, with a user at both ends."""
        contents: list[Json] = []
        history = repair_history(self._request.messages)
        self._replayed = find_replayable(history, self._issuer, self._provider_tools, has_pairs=True)
        for message in history:
            match message.role:
                case "user":
                    # A dropped message would join the answers before and after it into one.
                    parts = self._user(message.parts) or [{"text": EMPTY_TEXT}]
                case "assistant":
                    parts = self._model(message.parts)
                case "tool":
                    parts = self._results(cast("Sequence[RequestResult]", message.parts))
            role = "model" if message.role == "assistant" else "user"
            if parts and contents and contents[-1]["role"] == role:
                contents[-1]["parts"] += parts
            elif parts:
                contents.append({"role": role, "parts": parts})
        if contents and contents[0]["role"] == "model":
            contents.insert(0, {"role": "user", "parts": [{"text": CONTINUE}]})
        if not contents or contents[-1]["role"] == "model":
            contents.append({"role": "user", "parts": [{"text": CONTINUE}]})
        return contents

    def _user(self, parts: Iterable[RequestPart]) -> list[Json]:
        contents: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    if text.strip():
                        contents.append({"text": text})
                case NoticePart():
                    contents.append({"text": notice_text(part)})
                case FilePart():
                    contents.append(self._file(part))
                case _:
                    pass
        return contents

    def _model(self, parts: Iterable[RequestPart]) -> list[Json]:
        contents: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text, opaque=opaque):
                    self._say(text, self._opened(opaque), contents)
                case NoticePart():
                    contents.append({"text": notice_text(part)})
                case ProviderToolPart():
                    contents += self._provider_tool(part)
                case FilePart():
                    contents.append(self._file(part))
                case ReasoningPart(text=text, opaque=opaque):
                    # Without a signature, reasoning has no use for the model and costs its tokens.
                    if seal := self._opened(opaque):
                        contents.append({"text": text, "thought": True, **seal})
                case RequestCall():
                    contents.append({"functionCall": self._call(part), **self._opened(part.opaque)})
                case RequestResult():
                    pass
        # An answer that was cut off before any output is dropped.
        return [] if all(part.get("thought") or part.get("text") == "" for part in contents) else contents

    def _provider_tool(self, part: ProviderToolPart) -> list[Json]:
        """A part of a built-in tool as it came; metadata has no place in a request, and the rest is text."""
        opaque = part.opaque
        if opaque is not None and opaque.issuer == self._issuer and part.name in self._provider_tools:
            sealed: object = msgspec.json.decode(opaque.data)
            if isinstance(sealed, dict) and is_metadata(cast("Json", sealed)):
                return []
            if id(part) in self._replayed:
                return [cast("Json", sealed)]
        return [{"text": provider_tool_as_text(part)}]

    def _say(self, text: str, seal: Json, contents: list[Json]) -> None:
        if seal.pop("on", "") == "file":  # a FilePart has no opaque data; the empty text after it has
            if contents and "inlineData" in contents[-1]:
                contents[-1] |= seal
            seal = {}
        if text.strip() or seal:
            contents.append({"text": text, **seal})

    def _opened(self, opaque: Opaque | None) -> Json:
        """Return the signature if this model issued it; its OpenAI-compatible API has another format."""
        if opaque is None or opaque.issuer != self._issuer:
            return {}
        signature: object = msgspec.json.decode(opaque.data)
        return cast("Json", signature) if isinstance(signature, dict) and "thoughtSignature" in signature else {}

    def _call(self, call: RequestCall) -> Json:
        reference: Json = {"name": self._names.wire(call.name)}
        if call.provider_id:  # Gemini 3 matches a result by its id; earlier models have no ids
            reference["id"] = call.call if call.provider_id in self._taken else call.provider_id
            self._taken.add(call.provider_id)
        self._calls[call.call] = reference
        return {**reference, "args": msgspec.Raw(arguments_as_object(call.arguments).encode())}

    def _results(self, results: Sequence[RequestResult]) -> list[Json]:
        contents: list[Json] = []
        files: list[FilePart] = []
        for result in results:
            files += result.files
            response = {"error" if result.is_error else "result": result_text(result)}
            contents.append({"functionResponse": {**self._calls[result.call], "response": response}})
        if files:
            contents.append({"text": "[files that the tools above brought]"})
        return [*contents, *map(self._file, files)]

    def _file(self, file: FilePart) -> Json:
        files, kind = self._request.files, file.media_type
        match file_kind(file, self._profile.inputs, files) if kind not in UNREAD else "unread":
            case "image" | "pdf" if reference := self._request.references.get(file.blob):
                return {"fileData": {"mimeType": kind, "fileUri": reference}}
            case "image" | "pdf":
                return {"inlineData": {"mimeType": kind, "data": as_base64(file, files)}}
            case "audio":
                return {"inlineData": {"mimeType": f"audio/{AUDIO[kind]}", "data": as_base64(file, files)}}
            case "text":
                return {"text": as_text(file, files)}
            case "unread":
                return {"text": as_note(file)}


def _add_placeholder_signatures(contents: Sequence[Json]) -> None:
    """Add placeholder signatures where required: to images, and to the first call of each step of this turn."""
    is_this_turn = True
    for content in reversed(contents):
        parts: list[Json] = content["parts"]
        if content["role"] == "user":
            is_this_turn = is_this_turn and any("functionResponse" in part for part in parts)
            continue
        first = next((part for part in parts if "functionCall" in part), None)
        for part in parts:
            if "inlineData" in part or (part is first and is_this_turn):
                part.setdefault("thoughtSignature", PLACEHOLDER_SIGNATURE)
