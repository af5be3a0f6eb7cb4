"""Gemini validation, built-in tools: refuses them beside functions without the flag, and parts that were changed.

The messages about tools beside functions are the API's (github.com/cloudwego/eino-ext/issues/761,
lbjlaq/Antigravity-Manager#2241), the fields those of google-genai. That a changed part is refused by its signature, that
a call needs its response, and that its tool has to be declared are our own rules; Google does not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.core.canonical_json import encode_canonical
from everturn.testing.provider.faults import Refused
from everturn.testing.provider.gemini_signatures import is_third, signature
from everturn.testing.provider.gemini_tools import CALLS, DECLARED_BY, FIELDS
from everturn.testing.provider.routes import Cloud
from everturn.testing.provider.strict.clouds import VERTEX_TOOLS, check_vertex_mix

Json = dict[str, Any]
_REQUIRED = {
    "executableCode": ("code", "language"),
    "codeExecutionResult": ("outcome",),
    "toolCall": ("id", "toolType"),
    "toolResponse": ("id", "toolType"),
}


def check_built_in(request: Json, model: str, cloud: Cloud = "") -> None:
    """Built-in tools beside functions need a newer model and its flag; parts of theirs are whole, and unchanged."""
    tools: list[Json] = request.get("tools", [])
    declared = [field for tool in tools for field in (*FIELDS, *VERTEX_TOOLS) if field in tool]
    has_functions = any(tool.get("functionDeclarations") for tool in tools)
    config = request.get("toolConfig", {})
    is_older = model.startswith(("gemini-1", "gemini-2"))
    if cloud == "vertex" and is_older:
        check_vertex_mix(tools)
    if declared and has_functions and is_older:
        raise Refused(
            f"Built-in tools ({{{declared[0]}}}) and Function Calling cannot be combined in the same request. "
            "Please choose one to continue."
        )
    if declared and has_functions and cloud != "vertex" and not config.get("includeServerSideToolInvocations"):
        raise Refused(
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
        )
    kind = request.get("generationConfig", {}).get("responseMimeType", "")
    if declared and kind == "application/json" and is_older:
        raise Refused("Tool use with a response mime type: 'application/json' is unsupported")
    _check_parts(request, model, declared)


def _check_parts(request: Json, model: str, declared: Sequence[str]) -> None:
    calls: dict[str, str] = {}
    for i, content in enumerate(request.get("contents", [])):
        for k, part in enumerate(content.get("parts", ())):
            path = f"contents[{i}].parts[{k}]"
            kind = next((name for name in _REQUIRED if name in part), "")
            if not kind:
                continue
            if content.get("role") != "model":
                raise Refused(f"{path}.{kind}: only a model has it (our own rule)")
            _check_part(path, kind, part, model)
            wanted = DECLARED_BY.get(part[kind].get("toolType", ""), "codeExecution")
            if wanted not in declared:
                raise Refused(f"{path}.{kind}: the request does not declare {wanted} (our own rule)")
            _check_pair(path, kind, part[kind], calls)
    if calls and request["contents"][-1].get("role") == "user" and not _is_results(request["contents"][-1]):
        raise Refused(f"{next(iter(calls))}: a call of a built-in tool has no response (our own rule)")


def _is_results(content: Json) -> bool:
    return any("functionResponse" in part for part in content.get("parts", ()))


def _check_part(path: str, kind: str, part: Json, model: str) -> None:
    for field in _REQUIRED[kind]:
        if field not in part[kind]:
            raise Refused(f"* GenerateContentRequest.{path}.{kind}.{field}: required field is missing\n")
    if is_third(model):
        bare = {kind: part[kind]}
        if part.get("thoughtSignature") != signature(model, encode_canonical(bare)):
            raise Refused(f"{path}: Thought signature is not valid: the part was changed (our own rule).")


def _check_pair(path: str, kind: str, value: Json, calls: dict[str, str]) -> None:
    id = str(value.get("id") or "code")
    if kind in CALLS:
        if id in calls and value.get("id"):
            raise Refused(f"{path}.{kind}: its id is taken (our own rule)")
        calls[id] = kind
    elif CALLS.get(calls.pop(id, "")) != kind:
        raise Refused(f"{path}.{kind}: there is no call for it (our own rule)")
