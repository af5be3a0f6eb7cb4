"""Converse bodies as bodies of Anthropic Messages, so that what both have in common is read and checked once.

It assumes nothing about a body: what has another form than the documented one is left out.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from everturn.testing.provider.faults import is_list, is_object

Json = dict[str, Any]
EXTRA = "additionalModelRequestFields"


def as_messages(body: Json) -> Json:
    """The same request in the words of Anthropic Messages."""
    extra, inference = _object(body.get(EXTRA)), _object(body.get("inferenceConfig"))
    made: Json = {**extra, "stream": True, "max_tokens": inference.get("maxTokens", 4096)}
    if "model" in body:
        made["model"] = body["model"]
    named = {"temperature": "temperature", "topP": "top_p", "stopSequences": "stop_sequences"}
    made |= {new: inference[old] for old, new in named.items() if old in inference}
    if system := _blocks(body.get("system")):
        made["system"] = system
    made["messages"] = [
        {"role": message.get("role"), "content": _blocks(message.get("content"))}
        for message in objects(body.get("messages"))
    ]
    config = _object(body.get("toolConfig"))
    if tools := _tools(objects(config.get("tools"))):
        made["tools"] = tools
    if choice := _object(config.get("toolChoice")):
        kind = next(iter(choice))
        made["tool_choice"] = {"type": kind, **_object(choice[kind])}
    if (schema := read_schema(body)) is not None:
        made["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return made


def objects(value: Any) -> list[Json]:
    """The objects of a list."""
    return [each for each in value if is_object(each)] if is_list(value) else []


def read_schema(body: Json) -> Any:
    """The schema of the answer, which is JSON in a text; None: there is none."""
    wanted = _object(_object(body.get("outputConfig")).get("textFormat"))
    text = _object(_object(wanted.get("structure")).get("jsonSchema")).get("schema")
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def _object(value: Any) -> Json:
    return value if is_object(value) else {}


def _blocks(value: Any) -> list[Json]:
    return _marked(objects(value), _block)


def _tools(tools: list[Json]) -> list[Json]:
    return _marked(tools, _tool)


def _marked(items: Iterable[Json], convert: Callable[[Json], Json]) -> list[Json]:
    """Convert items; a cache point is a mark on what is before it."""
    made: list[Json] = []
    for item in items:
        if "cachePoint" not in item:
            made.append(convert(item))
        elif made:
            made[-1] = {**made[-1], "cache_control": {"type": "ephemeral"}}
    return made


def _tool(tool: Json) -> Json:
    spec = _object(tool.get("toolSpec"))
    schema = _object(spec.get("inputSchema")).get("json")
    return {"name": spec.get("name"), "description": spec.get("description", ""), "input_schema": schema}


def _block(block: Json) -> Json:
    kind = next(iter(block), "")
    value = block.get(kind)
    inner = _object(value)
    match kind:
        case "text":
            return {"type": "text", "text": value}
        case "image":
            return {"type": "image", "source": _source(inner, "image/")}
        case "document":
            return {"type": "document", "source": _source(inner, "application/")}
        case "toolUse":
            return {
                "type": "tool_use",
                "id": inner.get("toolUseId"),
                "name": inner.get("name"),
                "input": inner.get("input"),
            }
        case "toolResult":
            result: Json = {"type": "tool_result", "tool_use_id": inner.get("toolUseId")}
            result["content"] = _blocks(inner.get("content"))
            return {**result, "is_error": True} if inner.get("status") == "error" else result
        case "reasoningContent":
            if "redactedContent" in inner:
                return {"type": "redacted_thinking", "data": _opened(inner["redactedContent"])}
            text = _object(inner.get("reasoningText"))
            return {"type": "thinking", "thinking": text.get("text"), "signature": text.get("signature")}
        case _:
            return {"type": kind}


def _source(file: Json, prefix: str) -> Json:
    data = _object(file.get("source")).get("bytes")
    return {"type": "base64", "media_type": f"{prefix}{file.get('format')}", "data": data}


def _opened(data: Any) -> Any:
    """A blob is base64 in JSON; the sealed text in it is ours."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (TypeError, ValueError):
        return data
