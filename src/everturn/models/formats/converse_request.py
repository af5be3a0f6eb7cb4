"""Amazon Bedrock Converse request: builds its body from a neutral request.

Converse has Anthropic's blocks under names of its own, and the rules of both are the same where they overlap: roles
alternate, results follow their calls, no text is blank. So `messages_request` decides what a request says, for every model
of Bedrock, and this module writes it down. Beyond that: a document has a name and stands beside a text, a tool choice cannot
be "none", and parameters that only some models have are in a field of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from everturn.core.requests import ModelRequest
from everturn.models.formats import BuiltRequest
from everturn.models.formats.messages_request import build_body
from everturn.models.formats.params import CONVERSATION, encode_body, refuse_reserved, schema_name
from everturn.models.profile import Origin, Profile

PATH: Final = "/converse-stream"
EXTRA: Final = "additionalModelRequestFields"
DOCUMENT_TEXT: Final = "The document is attached."  # a message with a document must have a text
_TOP: Final = (  # parameters that are fields of the request, and are sent as they are
    "guardrailConfig",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
)
_INFERENCE: Final[Mapping[str, str]] = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "topP": "topP",
    "stop_sequences": "stopSequences",
    "stopSequences": "stopSequences",
}
_RESERVED: Final[Mapping[str, str]] = {
    "modelId": "choose the model with Chat(model) or send(model=…)",
    "toolConfig": CONVERSATION,
}
Json = dict[str, Any]


def build(request: ModelRequest, profile: Profile, origin: Origin) -> BuiltRequest:
    """Build the request."""
    refuse_reserved(request.params, _RESERVED)
    if isinstance(extra := request.params.get(EXTRA), dict):  # as all that is not Converse's own, they come back there
        rest = {name: value for name, value in request.params.items() if name != EXTRA}
        request = replace(request, params={**extra, **rest})
    body, names = build_body(request, profile, origin)
    return BuiltRequest(PATH, encode_body(_write(body)), names.ours)


def _write(body: Json) -> Json:
    body.pop("stream")
    messages, system, tools = body.pop("messages"), body.pop("system", ()), body.pop("tools", ())
    choice = body.pop("tool_choice", None)
    numbers = iter(range(1, 1_000_000))
    written: Json = {
        "messages": [
            {"role": message["role"], "content": _with_text(_blocks(message["content"], numbers))}
            for message in messages
        ]
    }
    if system:
        written["system"] = _blocks(system, numbers)
    # There is no choice "none": without calls in the history, no tools come to the same.
    is_needed = any(
        block["type"] in ("tool_use", "tool_result") for message in messages for block in message["content"]
    )
    if tools and (is_needed or choice != {"type": "none"}):
        written["toolConfig"] = {"tools": _tools(tools), **_choice(choice)}
    inference = body.pop("inferenceConfig", {})
    inference = {**{new: body.pop(old) for old, new in _INFERENCE.items() if old in body}, **inference}
    if not inference.get("maxTokens", 1):  # 0: the profile has no default
        del inference["maxTokens"]
    if inference:
        written["inferenceConfig"] = inference
    if output := {**_output(body.pop("output_config", {})), **body.pop("outputConfig", {})}:
        written["outputConfig"] = output
    written |= {name: body.pop(name) for name in _TOP if name in body}
    return {**written, EXTRA: body} if body else written


def _blocks(blocks: Iterable[Json], numbers: Iterator[int]) -> list[Json]:
    written: list[Json] = []
    for block in blocks:
        written.append(_block(block, numbers))
        written += _cache_point(block)
    return written


def _block(block: Json, numbers: Iterator[int]) -> Json:
    match block["type"]:
        case "image":
            source = block["source"]
            return {
                "image": {
                    "format": source["media_type"].removeprefix("image/"),
                    "source": {"bytes": source["data"]},
                }
            }
        case "document":
            # Names must differ, and have few characters; the documentation asks for neutral ones.
            name = f"document {next(numbers)}"
            return {"document": {"format": "pdf", "name": name, "source": {"bytes": block["source"]["data"]}}}
        case "tool_use":
            return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
        case "tool_result":
            content = block["content"]
            inner = [{"text": content}] if isinstance(content, str) else _blocks(content, numbers)
            result = {"toolUseId": block["tool_use_id"], "content": inner}
            return {"toolResult": {**result, "status": "error"} if block.get("is_error") else result}
        case "thinking":
            text = {"text": block["thinking"], "signature": block["signature"]}
            return {"reasoningContent": {"reasoningText": text}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": block["data"]}}
        case _:
            return {"text": block["text"]}


def _cache_point(block: Json) -> list[Json]:
    marker = block.get("cache_control")
    if not marker:
        return []
    return [{"cachePoint": {"type": "default", **({"ttl": marker["ttl"]} if "ttl" in marker else {})}}]


def _with_text(blocks: list[Json]) -> list[Json]:
    """Add a text to a message with documents, if it has none."""
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        at = next(at for at, block in enumerate(blocks) if "document" in block)
        blocks.insert(at, {"text": DOCUMENT_TEXT})
    return blocks


def _tools(tools: Iterable[Json]) -> list[Json]:
    written: list[Json] = []
    for tool in tools:
        spec: Json = {"name": tool["name"], "inputSchema": {"json": tool["input_schema"]}}
        if tool["description"]:
            spec["description"] = tool["description"]
        written.append({"toolSpec": spec})
        written += _cache_point(tool)
    return written


def _choice(choice: Json | None) -> Json:
    match choice:
        case {"type": "auto" | "any" as kind}:
            return {"toolChoice": {kind: {}}}
        case {"type": "tool", "name": name}:
            return {"toolChoice": {"tool": {"name": name}}}
        case {"type": "none"} | None:
            return {}
        case _:
            return {"toolChoice": choice}  # in the words of Converse


def _output(config: Json) -> Json:
    written: Json = {"effort": config["effort"]} if "effort" in config else {}
    if (wanted := config.get("format")) is not None:
        schema = wanted["schema"]
        text = msgspec.json.encode(schema).decode()
        definition = {"schema": text, "name": schema_name(schema) or "answer"}
        written["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": definition}}
    return written
