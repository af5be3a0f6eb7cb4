"""Gemini validation: refuses the requests that it refuses, with its messages: contents, parts, and generation settings.

`proto` refuses what is not a valid protocol buffer, `declarations` checks functions, and `turns`
the order of the turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.testing.provider.faults import Refused, is_object
from everturn.testing.provider.progress import either
from everturn.testing.provider.routes import Cloud
from everturn.testing.provider.strict.clouds import check_gemini_place
from everturn.testing.provider.strict.declarations import bad, check_declarations, check_name, check_schema
from everturn.testing.provider.strict.gemini_tools import check_built_in
from everturn.testing.provider.strict.proto import read_proto_message, snake
from everturn.testing.provider.strict.schemas import check_gemini_schema
from everturn.testing.provider.strict.turns import check_signatures, check_turns

Json = dict[str, Any]

_DATA = (
    *("text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
_MEDIA = frozenset(
    "image/png image/jpeg image/webp image/heic image/heif application/pdf audio/wav audio/x-wav audio/mp3 audio/mpeg "
    "audio/aiff audio/aac audio/ogg audio/flac video/mp4 video/mpeg video/mov video/quicktime video/avi video/x-flv "
    "video/mpg video/webm video/wmv video/3gpp".split()
)
_MIME_TYPES = ("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum")
_RANGES = {"temperature": (0.0, 2.0), "topP": (0.0, 1.0)}
_MAX_STOPS = 5


def check_gemini(body: Json, headers: Mapping[str, str], cloud: Cloud = "") -> None:
    """Raise `Refused` for a request that the real one would refuse; the model comes from the path."""
    model: str = body["model"]
    request = read_proto_message("GenerateContentRequest", body)
    check_tool_config(request, check_declarations(request))
    check_generation(request.get("generationConfig", {}))
    check_answer_schema(request, model)
    check_thinking(request.get("generationConfig", {}).get("thinkingConfig", {}), model)
    check_system(request)
    contents = check_contents(request, model)
    check_turns(contents)
    check_signatures(contents, model)
    check_gemini_place(request, cloud)
    check_built_in(request, model, cloud)


def shows_thoughts(body: Json) -> bool:
    """Whether a request asks for the thoughts of the model; its form is not validated yet."""
    config = either(body, "generationConfig")
    thinking = either(config, "thinkingConfig") if is_object(config) else None
    return is_object(thinking) and either(thinking, "includeThoughts") is True


def check_alt(query: str) -> None:
    """Our own rule: this provider has no other way to answer."""
    if "alt=sse" not in query.split("&"):
        raise Refused("This provider always streams events: 'alt' must be sse.")


# ------------------------------------------------------------------------------------------------- contents


def check_contents(request: Json, model: str) -> list[Json]:
    """There are contents, of two roles, and each has parts."""
    contents: list[Json] = request.get("contents", [])
    if not contents:
        raise bad("contents", "contents is not specified")
    for i, content in enumerate(contents):
        if content.get("role", "user") not in ("user", "model"):
            raise Refused("Please use a valid role: user, model.")
        if not content.get("parts"):
            raise bad(f"contents[{i}].parts", "contents.parts must not be empty.")
        for k, part in enumerate(content["parts"]):
            check_part(f"contents[{i}].parts[{k}]", part)
            check_file(f"contents[{i}].parts[{k}]", part)
            check_call(f"contents[{i}].parts[{k}]", part)
            check_response(f"contents[{i}].parts[{k}]", part, model)
    return contents


def check_system(request: Json) -> None:
    """A system instruction is not empty."""
    system = request.get("systemInstruction")
    for k, part in enumerate(system.get("parts", ()) if system is not None else ()):
        check_part(f"system_instruction.parts[{k}]", part)


def check_part(path: str, part: Json) -> None:
    """A part has exactly one field, and an empty text is invalid unless it is signed."""
    data = [name for name in _DATA if name in part]
    if len(data) > 1:
        text = f"Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{data[1]}'"
        raise Refused(text)
    if not data or (part.get("text") == "" and "thoughtSignature" not in part):
        raise bad(f"{path}.data", "required oneof field 'data' must have one initialized field")


def check_file(path: str, part: Json) -> None:
    """A file has a supported type."""
    for name in ("inlineData", "fileData"):
        file = part.get(name)
        kind = file.get("mimeType", "") if file is not None else "text/plain"
        if kind not in _MEDIA and not kind.startswith("text/"):
            raise Refused(f"Unsupported MIME type: {kind}")
    if "inlineData" in part and not part["inlineData"].get("data"):
        raise bad(f"{path}.inline_data.data", "must not be empty")
    if "fileData" in part and not part["fileData"].get("fileUri"):
        raise bad(f"{path}.file_data.file_uri", "must not be empty")


def check_call(path: str, part: Json) -> None:
    """A call names a function."""
    if "functionCall" in part:
        name = part["functionCall"].get("name", "")
        if not name:
            raise bad(f"{path}.function_call.name", "Name cannot be empty.")
        check_name(f"{path}.function_call.name", name)


def check_response(path: str, part: Json, model: str) -> None:
    """A result names a function, holds an object, and has files only for models that support them there."""
    response = part.get("functionResponse")
    if response is None:
        return
    if not response.get("name"):
        raise bad(f"{path}.function_response.name", "Name cannot be empty.")
    check_name(f"{path}.function_response.name", response["name"])
    if "response" not in response:
        raise bad(f"{path}.function_response.response", "must be specified")
    if response.get("parts") and model.startswith(("gemini-1", "gemini-2")):
        raise Refused("Multimodal function responses are not supported for this model.")
    for k, nested in enumerate(response.get("parts", ())):
        check_file(f"{path}.function_response.parts[{k}]", nested)


# generation settings ---------------------------------------------------------------------------------


def check_tool_config(request: Json, names: set[str]) -> None:
    """A tool choice names existing functions."""
    config = request.get("toolConfig", {}).get("functionCallingConfig")
    if config is None:
        return
    if not names:
        raise Refused("Function calling config is set without function_declarations.")
    allowed = config.get("allowedFunctionNames", ())
    path = "tool_config.function_calling_config.allowed_function_names"
    if allowed and config.get("mode") not in ("ANY", "VALIDATED"):
        raise bad(path, "should only be set when the function calling mode is ANY or VALIDATED")
    for name in allowed:
        if name not in names:
            raise bad(path, f"{name} is not one of the function_declarations")


def check_generation(config: Json) -> None:
    """Numbers are within their ranges, and there are few stop sequences."""
    for name, (low, high) in _RANGES.items():
        if not low <= config.get(name, low) <= high:
            raise bad(f"generation_config.{snake(name)}", f"{snake(name)} must be in the range [{low}, {high}].")
    for name in ("maxOutputTokens", "topK", "candidateCount"):
        if config.get(name, 1) < 1:
            raise bad(f"generation_config.{snake(name)}", f"{snake(name)} must be positive.")
    stops = config.get("stopSequences", ())
    if len(stops) > _MAX_STOPS:
        raise bad("generation_config.stop_sequences", f"at most {_MAX_STOPS} stop sequences are supported")


def check_answer_schema(request: Json, model: str) -> None:
    """An answer has a schema if it is JSON, only one, and for older models no functions beside it."""
    config = request.get("generationConfig", {})
    kind = config.get("responseMimeType", "text/plain")
    if kind not in _MIME_TYPES:
        listed = ", ".join(f"`{mime_type}`" for mime_type in _MIME_TYPES[:-1])
        raise bad("generation_config.response_mime_type", f"allowed mimetypes are {listed} and `{_MIME_TYPES[-1]}`.")
    schemas = [name for name in ("responseSchema", "responseJsonSchema") if name in config]
    if len(schemas) > 1:
        raise bad("generation_config", "only one of response_schema and response_json_schema may be set")
    if schemas and kind not in ("application/json", "text/x.enum"):
        raise bad(f"generation_config.{snake(schemas[0])}", "only allowed when response_mime_type is application/json")
    if "responseSchema" in config:
        check_schema("generation_config.response_schema", config["responseSchema"])
    if is_object(config.get("responseJsonSchema")):
        check_gemini_schema(config["responseJsonSchema"])
    if kind == "application/json" and model.startswith("gemini-2") and request.get("tools"):
        raise Refused("Function calling with a response mime type: 'application/json' is unsupported")


def check_thinking(wanted: Json, model: str) -> None:
    """The amount of thinking is set in one of two ways, of which older models know one."""
    if "thinkingBudget" in wanted and "thinkingLevel" in wanted:
        raise Refused("You can only set only one of thinking budget and thinking level.")
    if "thinkingLevel" in wanted and model.startswith(("gemini-1", "gemini-2")):
        raise Refused("Thinking level is not supported for this model.")
