"""A neutral request → the body of a Gemini `streamGenerateContent` request.

Its rules: user and model take turns, and a user begins and ends; the results of a step stand in one content right behind
it, as many as there were calls and in their order; no part is empty, but for one that holds a seal; a seal goes back on
the very part it came on. Gemini 3 refuses calls and pictures of the model that have none, so those of another get a
stand-in that Google documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from everturn.core.history import as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult, ToolSpec
from everturn.models.formats import Built
from everturn.models.formats.files import AUDIO, as_base64, as_note, as_text, kind_of
from everturn.models.formats.gemini_schema import openapi
from everturn.models.formats.made import Made
from everturn.models.formats.names import NAME_SIZE, Names
from everturn.models.formats.params import CONVERSATION, PROMPT, RESERVED, Params, encode, take
from everturn.models.formats.schemas import tool_schema
from everturn.models.formats.tidy import NOTHING, result_text, tidy
from everturn.models.formats.words import GO_ON, must_fit, notice
from everturn.models.profile import Origin, Profile

PATH = "/{}:streamGenerateContent?alt=sse"
STAND_IN = "skip_thought_signature_validator"
STRICT = "gemini-3*"  # the models that miss a seal
UNREAD = frozenset({"image/gif"})  # the one picture others read and Gemini does not
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

_tools: Made[msgspec.Raw] = Made(1_000)  # a tool is the same in every request, and its schema is written anew for each


def build(request: ModelRequest, profile: Profile, origin: Origin) -> Built:
    """Write the body."""
    names = _Names(request.tools)
    params = take(request, profile, _RESERVED)
    system = request.system
    if params.output_schema is not None and request.tools and not profile.has_schema_with_tools:
        system = "\n\n".join(filter(None, (system, must_fit(params.output_schema))))
        params.output_schema = None
    body, config = _split(params)
    if system.strip():
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if request.tools:
        declared = [
            _tools.get(tool, _as_is) if names.wire(tool.name) == tool.name else _tool(tool, names.wire(tool.name))
            for tool in request.tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
    if params.tool_choice is not None:
        calling = _choice(params.tool_choice, names)
        body["toolConfig"] = {**body.get("toolConfig", {}), "functionCallingConfig": calling}
    if config:
        body["generationConfig"] = config
    collection, model = _placed(origin.model)
    contents = _Contents(request, profile, origin, names).all()
    if fnmatchcase(model, STRICT):
        _stand_in(contents)
    body["contents"] = contents
    return Built(PATH.format(f"{collection}/{quote(model, safe='', errors='replace')}"), encode(body), names.ours)


def _placed(model: str) -> tuple[str, str]:
    """Where a model is kept, and its name there."""
    collection, slash, name = model.partition("/")
    return (collection, name) if slash and name and collection in _COLLECTIONS else (_COLLECTIONS[0], model)


def _split(params: Params) -> tuple[Json, Json]:
    """What stands at the top, and what belongs into `generationConfig`; `top_p` is `topP`."""
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
        # As it is: a tool still checks what it is called with, but nobody an answer, so this one may not become wider.
        config |= {"responseMimeType": "application/json", "responseJsonSchema": params.output_schema}
    return body, config


def _tool(tool: ToolSpec, name: str) -> Json:
    schema = tool_schema(tool.schema)
    made: Json = {"name": name, "description": tool.description}
    if not schema["properties"] and not schema.get("additionalProperties"):
        return made  # an object without properties is refused; a tool that takes nothing says nothing
    return {**made, "parameters": openapi(schema)}


def _as_is(tool: ToolSpec) -> msgspec.Raw:
    return msgspec.Raw(encode(_tool(tool, tool.name)))


def _choice(choice: str | Json, names: Names) -> Json:
    if not isinstance(choice, str):
        return choice
    mode = _MODES.get(choice)
    return {"mode": mode} if mode else {"mode": "ANY", "allowedFunctionNames": [names.wire(choice)]}


class _Names(Names):
    """Names of tools, which begin with a letter here, or with `_`."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        super().__init__(tools)
        taken = {super(_Names, self).wire(tool.name) for tool in tools}
        self._begun: dict[str, str] = {}
        for tool in tools:
            plain = super().wire(tool.name)
            if not _is_start(plain):
                wire, number = f"_{plain}"[:NAME_SIZE], 1
                while wire in taken:
                    wire, number = f"_{number}_{plain}"[:NAME_SIZE], number + 1
                taken.add(wire)
                self._begun[tool.name] = wire
                self.ours.pop(plain, None)
                self.ours[wire] = tool.name

    def wire(self, name: str) -> str:
        """The vendor's name of a tool; of one that never was, too."""
        plain = super().wire(name)
        return plain if _is_start(plain) else self._begun.get(name, f"_{plain}"[:NAME_SIZE])


def _is_start(name: str) -> bool:
    return name[0] == "_" or name[0].isalpha()


class _Contents:
    def __init__(self, request: ModelRequest, profile: Profile, origin: Origin, names: Names) -> None:
        self._request, self._profile, self._issuer, self._names = request, profile, origin.issuer, names
        self._calls: dict[str, Json] = {}  # our id of a call -> what its result repeats
        self._taken: set[str] = set()

    def all(self) -> list[Json]:
        """Everything that was said, in turns, with a user at both ends."""
        contents: list[Json] = []
        for message in tidy(self._request.messages):
            match message.role:
                case "user":
                    # A message that vanished would join the answers before and after it into one.
                    parts = self._user(message.parts) or [{"text": NOTHING}]
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
            contents.insert(0, {"role": "user", "parts": [{"text": GO_ON}]})
        if not contents or contents[-1]["role"] == "model":
            contents.append({"role": "user", "parts": [{"text": GO_ON}]})
        return contents

    def _user(self, parts: Iterable[RequestPart]) -> list[Json]:
        made: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    if text.strip():
                        made.append({"text": text})
                case NoticePart():
                    made.append({"text": notice(part)})
                case FilePart():
                    made.append(self._file(part))
                case _:
                    pass
        return made

    def _model(self, parts: Iterable[RequestPart]) -> list[Json]:
        made: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text=text, opaque=opaque):
                    self._say(text, self._opened(opaque), made)
                case NoticePart():
                    made.append({"text": notice(part)})
                case FilePart():
                    made.append(self._file(part))
                case ReasoningPart(text=text, opaque=opaque):
                    # Without a seal a thought says nothing to the model, and costs what it weighs.
                    if seal := self._opened(opaque):
                        made.append({"text": text, "thought": True, **seal})
                case RequestCall():
                    made.append({"functionCall": self._call(part), **self._opened(part.opaque)})
                case RequestResult():
                    pass
        # What was cut off before it came to anything is nothing to go on from.
        return [] if all(part.get("thought") or part.get("text") == "" for part in made) else made

    def _say(self, text: str, seal: Json, made: list[Json]) -> None:
        if seal.pop("on", "") == "file":  # a file holds no seal with us; the empty text behind it does
            if made and "inlineData" in made[-1]:
                made[-1] |= seal
            seal = {}
        if text.strip() or seal:
            made.append({"text": text, **seal})

    def _opened(self, opaque: Opaque | None) -> Json:
        """What is sealed, if it was this very model that sealed it; through its other door it seals in other words."""
        if opaque is None or opaque.issuer != self._issuer:
            return {}
        found: object = msgspec.json.decode(opaque.data)
        return cast("Json", found) if isinstance(found, dict) and "thoughtSignature" in found else {}

    def _call(self, call: RequestCall) -> Json:
        said: Json = {"name": self._names.wire(call.name)}
        if call.given:  # Gemini 3 finds a result by its id; the models before know none
            said["id"] = call.call if call.given in self._taken else call.given
            self._taken.add(call.given)
        self._calls[call.call] = said
        return {**said, "args": msgspec.Raw(as_object(call.arguments).encode())}

    def _results(self, results: Sequence[RequestResult]) -> list[Json]:
        made: list[Json] = []
        files: list[FilePart] = []
        for result in results:
            files += result.files
            response = {"error" if result.is_error else "result": result_text(result)}
            made.append({"functionResponse": {**self._calls[result.call], "response": response}})
        if files:
            made.append({"text": "[files that the tools above brought]"})
        return [*made, *map(self._file, files)]

    def _file(self, file: FilePart) -> Json:
        files, kind = self._request.files, file.media_type
        match kind_of(file, self._profile.inputs, files) if kind not in UNREAD else "unread":
            case "image" | "pdf":
                return {"inlineData": {"mimeType": kind, "data": as_base64(file, files)}}
            case "audio":
                return {"inlineData": {"mimeType": f"audio/{AUDIO[kind]}", "data": as_base64(file, files)}}
            case "text":
                return {"text": as_text(file, files)}
            case "unread":
                return {"text": as_note(file)}


def _stand_in(contents: Sequence[Json]) -> None:
    """Seal what must be sealed and is not: the pictures of the model, and the first call of each step of this turn."""
    is_this_turn = True
    for content in reversed(contents):
        parts: list[Json] = content["parts"]
        if content["role"] == "user":
            is_this_turn = is_this_turn and any("functionResponse" in part for part in parts)
            continue
        first = next((part for part in parts if "functionCall" in part), None)
        for part in parts:
            if "inlineData" in part or (part is first and is_this_turn):
                part.setdefault("thoughtSignature", STAND_IN)
