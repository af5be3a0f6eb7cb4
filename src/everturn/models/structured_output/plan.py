"""Output plan: chooses how a model is held to the schema of its answer, and changes the request accordingly.

    request, profile → OutputPlan(request, reader)

Pure: the same request gives the same plan, so that a request that is sent again is the same to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.requests import ModelRequest, ToolSpec
from everturn.errors import ModelError
from everturn.models.formats.notices import schema_instruction
from everturn.models.formats.reasoning_effort import write_reasoning
from everturn.models.profile import Profile
from everturn.models.structured_output.json_text import WRAPPER_KEY
from everturn.models.structured_output.output_reader import OutputReader
from everturn.models.structured_output.schema_facts import is_always_object, is_object_schema, resolve_root
from everturn.models.structured_output.schema_writer import SchemaNotSupported, write_schema
from everturn.models.structured_output.subsets import FORMAT_SUBSETS, SUBSETS, SchemaSubset

OutputMode = Literal["native", "tool", "prompted"]
OUTPUT_MODES: Final[tuple[OutputMode, ...]] = ("native", "tool", "prompted")
OUTPUT_TOOL: Final = "final_result"
TOOL_DESCRIPTION: Final = "Give the final answer. Call this once, when no other calls are needed."
TOOL_INSTRUCTION: Final = (
    "When no more calls are needed, give your final answer by calling the tool {name}; do not write it as text."
)
# The JSON mode of a format, in its own parameters: an answer is some JSON object.
_JSON_MODES: Final[Mapping[str, JsonObject]] = {
    "chat": {"response_format": {"type": "json_object"}},
    "responses": {"text": {"format": {"type": "json_object"}}},
    "gemini": {"responseMimeType": "application/json"},
    "ollama": {"format": "json"},
}


class OutputPlan(Struct, frozen=True):
    """The request to send, how it is held to the schema, and the reader of the answer; without one, it is as it is.

    `reason` says why it is not the mode `native`.
    """

    request: ModelRequest
    mode: OutputMode
    reader: OutputReader | None = None
    reason: str = ""


def subset_of(profile: Profile) -> SchemaSubset:
    """Return the schemas that a vendor enforces."""
    return SUBSETS[profile.output_subset or FORMAT_SUBSETS[profile.format]]


def as_object_schema(schema: JsonObject) -> tuple[JsonObject, str]:
    """Return a schema whose root is an object, and the key of the wrapper; "" if it was one."""
    schema = resolve_root(schema)
    if is_object_schema(schema):
        return schema, ""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    title = {"title": schema["title"]} if isinstance(schema.get("title"), str) else {}
    wrapper: JsonObject = {"type": "object", "properties": {WRAPPER_KEY: inner}, "required": [WRAPPER_KEY]}
    return {**title, **wrapper, "additionalProperties": False, **shared}, WRAPPER_KEY


def as_object_text(schema: JsonObject) -> tuple[JsonObject, str]:
    """Return a schema whose values are objects, and the key of the wrapper: for an answer that is found by its braces."""
    return (schema, "") if is_always_object(schema, schema) else as_object_schema(schema)


def plan_output(request: ModelRequest, profile: Profile) -> OutputPlan:
    """Return the plan for a request.

    Raises:
        ModelError: the schema is no object, or it cannot be had in the mode that the request names.
    """
    params = {**profile.params, **request.params}
    schema, wanted = params.pop("output_schema", None), params.pop("output_mode", None)
    if schema is None:
        return OutputPlan(replace(request, params=params), "native")
    if not isinstance(schema, dict):
        raise ModelError(f"output_schema must be a JSON Schema, which is an object; this is {schema!r}", kind="request")
    if wanted is not None and wanted not in OUTPUT_MODES:
        raise ModelError(f"there is no output_mode {wanted!r}; there are: {', '.join(OUTPUT_MODES)}", kind="request")
    return _OutputPlanner(request, profile, params, cast("JsonObject", schema)).plan(wanted)


class _OutputPlanner:
    def __init__(self, request: ModelRequest, profile: Profile, params: dict[str, Any], schema: JsonObject) -> None:
        self._request, self._profile, self._params, self._schema = request, profile, params, schema
        self._choice: object = params.get("tool_choice") if request.tools else None

    def plan(self, wanted: OutputMode | None) -> OutputPlan:
        if isinstance(self._choice, str) and self._choice not in ("auto", "none"):
            # This step has to be a call of one of the given tools: it has no answer that a schema could hold for.
            return OutputPlan(replace(self._request, params=self._params), "native")
        reason = ""
        if wanted in (None, "native"):
            try:
                return self._native()
            except SchemaNotSupported as lack:
                reason = str(lack)
                if wanted is not None:
                    raise ModelError(
                        f"the output schema cannot be used with output_mode='native' of {self._profile.vendor}: {reason}",
                        kind="request",
                    ) from None
        if wanted == "tool" or (wanted is None and self._has_tool):
            return self._by_tool(reason)
        return self._prompted(reason)

    def _native(self) -> OutputPlan:
        profile = self._profile
        if not profile.has_output_schema:
            raise SchemaNotSupported("this model does not enforce schemas")
        if self._request.tools and not profile.has_schema_with_tools:
            raise SchemaNotSupported("this model does not enforce schemas beside tools")
        schema, key = _written(msgspec.json.encode(self._schema), subset_of(profile).name)
        # A server that is held by a grammar writes nothing around the JSON; others, that only say so, may.
        reader = OutputReader(key) if subset_of(profile).needs_object else None
        return OutputPlan(self._sent({"output_schema": schema}), "native", reader)

    @property
    def _can_force(self) -> bool:
        """Whether the tool choice may require a call: some vendors refuse that, all of them while a model thinks."""
        thinking: object = write_reasoning(self._params, self._profile).get("thinking")
        is_thinking = isinstance(thinking, dict) and cast("JsonObject", thinking).get("type") in ("enabled", "adaptive")
        return self._profile.can_force_call and not is_thinking

    @property
    def _has_tool(self) -> bool:
        if self._choice == "none" and not self._can_force:
            return False
        return self._profile.has_output_tool or (bool(self._request.tools) and self._choice != "none")

    def _by_tool(self, reason: str) -> OutputPlan:
        request = self._request
        names = {tool.name for tool in request.tools}
        name = next(name for number in range(1, 1_000) if (name := _numbered(number)) not in names)
        tool, key = _output_tool(msgspec.json.encode(self._schema), name)
        choice, system = self._choice, request.system
        if self._can_force and (choice is None or isinstance(choice, str)):
            choice = "required" if request.tools and choice != "none" else name
        else:
            choice = None if choice == "none" else choice
            system = "\n\n".join(filter(None, (system, TOOL_INSTRUCTION.format(name=name))))
        params = {**self._params, **({"tool_choice": choice} if choice is not None else {})}
        if choice is None:
            params.pop("tool_choice", None)
        sent = replace(request, system=system, tools=[*request.tools, tool], params=params)
        return OutputPlan(sent, "tool", OutputReader(key, name), reason)

    def _prompted(self, reason: str) -> OutputPlan:
        request = self._request
        schema, key = as_object_text(self._schema)
        system = "\n\n".join(filter(None, (request.system, schema_instruction(schema))))
        more: JsonObject = {}
        if self._profile.has_json_mode and not request.tools:
            for name, value in _JSON_MODES.get(self._profile.format, {}).items():
                current = self._params.get(name)
                more[name] = {**cast("JsonObject", current), **value} if isinstance(current, dict) else value
        sent = replace(self._sent(more), system=system)
        return OutputPlan(sent, "prompted", OutputReader(key), reason)

    def _sent(self, more: JsonObject) -> ModelRequest:
        return replace(self._request, params={**self._params, **more})


def _numbered(number: int) -> str:
    return OUTPUT_TOOL if number == 1 else f"{OUTPUT_TOOL}_{number}"


@lru_cache(maxsize=256)
def _written(schema: bytes, subset: str) -> tuple[JsonObject, str]:
    """Return a schema in a subset, and the key of its wrapper. A turn asks for the same one in every step."""
    whole, key = resolve_root(msgspec.json.decode(schema)), ""
    if SUBSETS[subset].needs_object:
        whole, key = as_object_schema(whole)
    return write_schema(whole, SUBSETS[subset]), key


@lru_cache(maxsize=256)
def _output_tool(schema: bytes, name: str) -> tuple[ToolSpec, str]:
    whole, key = as_object_schema(msgspec.json.decode(schema))
    text: object = whole.get("description")
    description = f"{TOOL_DESCRIPTION}\n{text}" if isinstance(text, str) and text else TOOL_DESCRIPTION
    return ToolSpec(name, description, whole, read_only=True), key
