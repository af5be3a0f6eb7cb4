"""Gemini validation, protocol buffers: normalizes the field names of a body, and refuses what is not a valid message.

A request there is a protocol buffer sent as JSON. So a field has two names (`functionCall`, `function_call`), a single
value may stand for a list of one, a number may be a string, and unknown fields are refused before anything else is
checked.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Any

import msgspec

from everturn.testing.provider.faults import Refused, is_json_integer, is_list, is_object

Json = dict[str, Any]

_TYPES = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_MAX_DEPTH = 100
_CAPITAL = re.compile(r"[A-Z]")


def _fields(**kinds: str) -> dict[str, str]:
    """Field by kind: `string="a b"` makes two. A `many_` in front is a list of it, a `map_` a map."""
    return {name: kind for kind, names in kinds.items() for name in names.split()}


MESSAGES: dict[str, dict[str, str]] = {
    "GenerateContentRequest": _fields(
        string="model cachedContent serviceTier",
        bool="store",
        many_Content="contents",
        many_Tool="tools",
        many_SafetySetting="safetySettings",
        Content="systemInstruction",
        ToolConfig="toolConfig",
        GenerationConfig="generationConfig",
    ),
    "Content": _fields(string="role", many_Part="parts"),
    "Part": _fields(
        string="text",
        bool="thought",
        bytes="thoughtSignature",
        Blob="inlineData",
        FileData="fileData",
        FunctionCall="functionCall",
        FunctionResponse="functionResponse",
        ExecutableCode="executableCode",
        CodeExecutionResult="codeExecutionResult",
        ToolCall="toolCall",
        ToolResponse="toolResponse",
        Struct="videoMetadata partMetadata mediaResolution",
    ),
    "Blob": _fields(string="mimeType", bytes="data"),
    "FileData": _fields(string="mimeType fileUri"),
    "ExecutableCode": _fields(string="id code", Language="language"),
    "CodeExecutionResult": _fields(string="id output", Outcome="outcome"),
    "ToolCall": _fields(string="id", ToolType="toolType", Struct="args"),
    "ToolResponse": _fields(string="id", ToolType="toolType", Struct="response"),
    "FunctionCall": _fields(string="id name", Struct="args"),
    "FunctionResponse": _fields(
        string="id name scheduling", Struct="response", bool="willContinue", many_FunctionResponsePart="parts"
    ),
    "FunctionResponsePart": _fields(FunctionResponseBlob="inlineData"),
    "FunctionResponseBlob": _fields(string="mimeType displayName", bytes="data"),
    "Tool": _fields(
        many_FunctionDeclaration="functionDeclarations",
        Struct="googleSearch googleSearchRetrieval codeExecution urlContext computerUse fileSearch googleMaps "
        "retrieval enterpriseWebSearch parallelAiSearch exaAiSearch",
        many_Struct="mcpServers",
    ),
    "FunctionDeclaration": _fields(
        string="name description behavior",
        Schema="parameters response",
        Value="parametersJsonSchema responseJsonSchema",
    ),
    "Schema": _fields(
        Type="type",
        string="format title description pattern",
        bool="nullable",
        many_string="enum required propertyOrdering",
        int="minItems maxItems minProperties maxProperties minLength maxLength",
        float="minimum maximum",
        Value="default example",
        Schema="items",
        many_Schema="anyOf",
        map_Schema="properties",
    ),
    "ToolConfig": _fields(
        FunctionCallingConfig="functionCallingConfig",
        Struct="retrievalConfig",
        bool="includeServerSideToolInvocations",
    ),
    "FunctionCallingConfig": _fields(Mode="mode", many_string="allowedFunctionNames"),
    "SafetySetting": _fields(string="category threshold"),
    "GenerationConfig": _fields(
        string="responseMimeType mediaResolution",
        many_string="stopSequences responseModalities",
        int="candidateCount maxOutputTokens topK seed logprobs",
        float="temperature topP presencePenalty frequencyPenalty",
        bool="responseLogprobs enableEnhancedCivicAnswers",
        Struct="speechConfig imageConfig",
        Schema="responseSchema",
        Value="responseJsonSchema",
        ThinkingConfig="thinkingConfig",
    ),
    "ThinkingConfig": _fields(bool="includeThoughts", int="thinkingBudget", ThinkingLevel="thinkingLevel"),
}
ENUMS: dict[str, tuple[str, ...]] = {
    "Type": ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"),
    "Mode": ("AUTO", "ANY", "NONE", "VALIDATED"),
    "Language": ("PYTHON",),
    "Outcome": ("OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"),
    "ToolType": tuple(
        "GOOGLE_SEARCH_WEB GOOGLE_SEARCH_IMAGE URL_CONTEXT GOOGLE_MAPS FILE_SEARCH MEDIA_PROCESSING".split()
    ),
    "ThinkingLevel": ("MINIMAL", "LOW", "MEDIUM", "HIGH"),
}


def read_proto_message(message: str, value: Any, path: str = "") -> Json:
    """A message with camel-case names, without null values.

    Raises:
        Refused: a field is unknown, or has another type.
    """
    if not is_object(value):
        raise wrong(path, _TYPES + message, value)
    if path.count(".") > _MAX_DEPTH:
        raise Refused("Invalid JSON payload received. Message too deep. Max recursion depth reached.")
    found: Json = {}
    for name, field_value in value.items():
        field = name if name in MESSAGES[message] else _camel(name)
        kind = MESSAGES[message].get(field)
        if kind is None:
            raise _no_place(name, path, "Cannot find field.")
        if field_value is not None:
            inner = f"{path}.{snake(field)}" if path else snake(field)
            if is_list(field_value) and not kind.startswith("many_") and kind != "Value":
                raise _no_place(name, path, "Proto field is not repeating, cannot start list.")
            found[field] = _field(kind, field_value, inner)
    return found


def _field(kind: str, value: Any, path: str) -> Any:
    if kind.startswith("many_"):
        items = value if is_list(value) else [value]
        return [_convert(kind[5:], item, f"{path}[{i}]") for i, item in enumerate(items)]
    if kind.startswith("map_"):
        if not is_object(value):
            raise wrong(path, "Map", value)
        return {key: _convert(kind[4:], item, f"{path}[{i}].value") for i, (key, item) in enumerate(value.items())}
    return _convert(kind, value, path)


def _convert(kind: str, value: Any, path: str) -> Any:
    if kind in MESSAGES:
        return read_proto_message(kind, value, path)
    if kind in ENUMS:
        if not isinstance(value, str) or value.upper() not in ENUMS[kind]:
            raise wrong(path, _TYPES + kind, value)
        return value.upper()
    return _scalar(kind, value, path)


def _scalar(kind: str, value: Any, path: str) -> Any:
    match kind:
        case "string" if not isinstance(value, str):
            raise wrong(path, "TYPE_STRING", value)
        case "bool" if not isinstance(value, bool):
            raise wrong(path, "TYPE_BOOL", value)
        case "int" | "float":
            return _number(kind, value, path)
        case "bytes":
            return _bytes(value, path)
        case "Struct" if not is_object(value):
            raise wrong(path, "type.googleapis.com/google.protobuf.Struct", value)
        case _:
            return value


def _bytes(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise wrong(path, "TYPE_BYTES", value)
    if not is_base64(value):
        raise Refused(f"Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed for \"{value[:40]}\"")
    return value


def _number(kind: str, value: Any, path: str) -> float:
    name = "TYPE_INT32" if kind == "int" else "TYPE_FLOAT"
    try:
        number = float(value) if isinstance(value, str | float) or is_json_integer(value) else None
    except ValueError:
        number = None
    if number is None or (kind == "int" and not number.is_integer()):
        raise wrong(path, name, value)
    return int(number) if kind == "int" else number


def is_base64(value: str) -> bool:
    """Whether a text is base64, in either alphabet."""
    try:
        base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        return False
    return True


def wrong(path: str, kind: str, value: Any) -> Refused:
    """The error for a value of another type."""
    return Refused(f"Invalid value at '{path}' ({kind}), {msgspec.json.encode(value).decode()[:100]}")


def _no_place(name: str, path: str, why: str) -> Refused:
    where = f" at '{path}'" if path else ""
    return Refused(f'Invalid JSON payload received. Unknown name "{name}"{where}: {why}')


@lru_cache(1024)
def snake(name: str) -> str:
    """The snake-case form of a camel-case name."""
    return _CAPITAL.sub(r"_\g<0>", name).lower()


def _camel(name: str) -> str:
    """The camel-case form of a snake-case name; a name that is neither stays unknown."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest) if rest and name.islower() else ""
