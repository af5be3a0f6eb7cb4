"""Inventory of the SDK packages: the parameters, events, items and finish reasons that their types name, as JSON.

It imports the packages and the standard library only, so that it runs in an environment with other releases of them:
`python inventory.py` prints it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

Inventory = dict[str, list[str]]
PACKAGES: Final = ("openai", "anthropic", "google-genai", "botocore")


def members(union: Any) -> Iterator[Any]:
    """The classes of a union, however it is wrapped."""
    for each in get_args(union):
        if isinstance(each, type):
            yield each
        elif get_origin(each) is not None:
            yield from members(each)


def literals(cls: Any, field: str = "type") -> set[str]:
    """The values that a field can have."""
    found: set[str] = set()
    fields = getattr(cls, "model_fields", None)
    pending = [fields[field].annotation if fields is not None and field in fields else hints(cls).get(field)]
    while pending:
        hint = pending.pop()
        if get_origin(hint) is Literal:
            found |= {str(value) for value in get_args(hint)}
        else:
            pending += get_args(hint)
    return found


def hints(cls: Any) -> dict[str, Any]:
    """The fields of a typed dictionary, with their types; of another class, none."""
    return {} if hasattr(cls, "model_fields") else get_type_hints(cls, include_extras=True)


def types_of(union: Any) -> set[str]:
    """The values of `type` in the classes of a union."""
    return {kind for cls in members(union) for kind in literals(cls)}


def _fields(cls: Any) -> list[str]:
    return sorted(field.alias or name for name, field in cls.model_fields.items())


def _openai() -> Inventory:
    responses = importlib.import_module("openai.types.responses")
    create = importlib.import_module("openai.types.responses.response_create_params")
    chat = importlib.import_module("openai.types.chat.completion_create_params")
    chunk = importlib.import_module("openai.types.chat.chat_completion_chunk")
    return {
        "openai responses: parameters": sorted(get_type_hints(create.ResponseCreateParamsBase)),
        "openai responses: items": sorted(types_of(responses.ResponseOutputItem)),
        "openai responses: events": sorted(types_of(responses.ResponseStreamEvent)),
        "openai responses: tools": sorted(types_of(responses.ToolParam)),
        "openai chat: parameters": sorted(get_type_hints(chat.CompletionCreateParamsBase)),
        "openai chat: delta": _fields(chunk.ChoiceDelta),
        "openai chat: finish reasons": sorted(literals(chunk.Choice, "finish_reason")),
    }


def _anthropic() -> Inventory:
    types = importlib.import_module("anthropic.types")
    create = importlib.import_module("anthropic.types.message_create_params")
    return {
        "anthropic: parameters": sorted(get_type_hints(create.MessageCreateParamsBase)),
        "anthropic: blocks": sorted(types_of(types.ContentBlock)),
        "anthropic: deltas": sorted(types_of(types.RawContentBlockDelta)),
        "anthropic: events": sorted(types_of(types.RawMessageStreamEvent)),
        "anthropic: tools": sorted(types_of(types.ToolUnionParam)),
        "anthropic: stop reasons": sorted(get_args(types.StopReason)),
        "anthropic: counted tools": _fields(types.ServerToolUsage),
    }


GOOGLE_TYPES: Final = (
    "Part",
    "Tool",
    "Candidate",
    "GroundingMetadata",
    "GroundingChunk",
    "GroundingSupport",
    "Segment",
    "UrlMetadata",
)


def _google() -> Inventory:
    types = importlib.import_module("google.genai.types")
    return {
        "google: parameters": _fields(types.GenerateContentConfig),
        "google: finish reasons": sorted(each.value for each in types.FinishReason),
        "google: tool types": sorted(each.value for each in types.ToolType),
        **{f"google: {name}": _fields(getattr(types, name)) for name in GOOGLE_TYPES},
    }


def _bedrock() -> Inventory:
    session = importlib.import_module("botocore.session")
    model = session.Session().get_service_model("bedrock-runtime")
    operation = model.operation_model("ConverseStream")
    return {
        "bedrock: parameters": sorted(operation.input_shape.members),
        "bedrock: events": sorted(operation.output_shape.members["stream"].members),
        "bedrock: blocks": sorted(model.shape_for("ContentBlock").members),
        "bedrock: deltas": sorted(model.shape_for("ContentBlockDelta").members),
        "bedrock: tools": sorted(model.shape_for("Tool").members),
        "bedrock: inference": sorted(model.shape_for("InferenceConfiguration").members),
        "bedrock: stop reasons": sorted(model.shape_for("StopReason").enum),
    }


READERS: Final[dict[str, Callable[[], Inventory]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google-genai": _google,
    "botocore": _bedrock,
}


def versions() -> dict[str, str]:
    """The versions of the packages that are installed."""
    return {package: importlib.metadata.version(package) for package in PACKAGES}


def take_inventory() -> tuple[Inventory, dict[str, str]]:
    """Everything that the installed packages name; and the packages whose types could not be read, with the error."""
    found: Inventory = {}
    errors: dict[str, str] = {}
    for package, read in READERS.items():
        try:
            found |= read()
        except Exception as error:  # another release may have moved any of its types
            errors[package] = f"{type(error).__name__}: {error}"
    return found, errors


if __name__ == "__main__":
    inventory, failed = take_inventory()
    json.dump({"versions": versions(), "lists": inventory, "errors": failed}, sys.stdout)
