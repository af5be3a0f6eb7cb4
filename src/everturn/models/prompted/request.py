"""Prompted request: moves the tools of a request into the system prompt, and calls and results into the messages.

A pure function: the same input gives the same bytes, so that a provider's prompt cache works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical
from everturn.core.parts import FilePart, ProviderToolPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult
from everturn.models.formats.files import file_kind
from everturn.models.formats.notices import schema_instruction
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.tool_schemas import tool_schema
from everturn.models.formats.turn_cache import cache_messages, cached_messages
from everturn.models.formats.valid_history import repair_history, result_text
from everturn.models.prompted.tool_format import RESULT_KEY, OfferedTools, ToolFormat, write_result

CONCEPT = """# Tools

You can call tools: functions that are run for you. Call one when it helps with what you were asked, and only then."""
RESULTS = f"""What a call came to is told to you in the next message, as {{"{RESULT_KEY}": {{"tool_call_id": …, "name": …, "result": …}}}};
an "error" or "rejected" stands there in place of the result if the call failed or the person did not allow it. Calls are
numbered call_1, call_2, … through the conversation. Never write such a message yourself, and never guess a result: wait for it.
If you only want to show what a call looks like, put it into a code fence; then it is not run."""
NO_TOOLS_NOW = "Calls to tools in this conversation are over: no tool can be called now. Answer in plain words."
MUST_CALL = "Now you must call a tool."
MUST_CALL_ONE = "Now you must call the tool {name}."


def build_prompted_request(
    request: ModelRequest, tool_format: ToolFormat, offer: OfferedTools, params: dict[str, Any]
) -> ModelRequest:
    """Return the request for the model. `params` are those that remain without the tool format's own."""
    messages = _convert_messages(request, tool_format, offer)
    system = build_system_prompt(
        request.system, tool_format, offer, has_calls=any(m.role == "tool" for m in request.messages)
    )
    return replace(request, system=system, messages=messages, tools=[], params=params)


def build_system_prompt(system: str, tool_format: ToolFormat, offer: OfferedTools, has_calls: bool = False) -> str:
    """Return a system prompt with the concept, the instructions, an example and the tools."""
    if not offer.tools:
        return "\n\n".join(filter(None, (system, NO_TOOLS_NOW if has_calls else "")))
    tools = "\n".join(
        encode_canonical({"name": tool.name, "description": tool.description, "parameters": tool_schema(tool.schema)})
        for tool in offer.tools
    )
    parts = [system, CONCEPT, tool_format.rules(offer), RESULTS, f"These are the tools:\n{tools}"]
    if offer.must_call:
        is_one = offer.choice != "required"
        parts.append(MUST_CALL_ONE.format(name=offer.choice) if is_one else MUST_CALL)
    if offer.schema is not None and not (offer.is_constrained and tool_format.constrains_answers):
        parts.append(schema_instruction(offer.schema))
    return "\n\n".join(filter(None, parts))


def _convert_messages(request: ModelRequest, tool_format: ToolFormat, offer: OfferedTools) -> list[RequestMessage]:
    """Convert the messages; each is converted once per turn, however many requests the turn has."""
    key = f"prompted {tool_format.name} {offer.is_constrained}"
    cached = cached_messages(request, key, dict[str, str]())  # our call ids -> the model's
    converted, numbers = list(cached.converted), dict(cached.state)
    for message in repair_history(cached.remaining(request)):
        entry = _convert_message(message, tool_format, offer, numbers, request.files)
        if (
            converted and entry.role == "user" == converted[-1].role
        ):  # a result and the next user message become one message
            converted[-1] = replace(converted[-1], parts=converted[-1].parts + entry.parts)
        else:
            converted.append(entry)
    cache_messages(request, key, converted, numbers)
    return list(converted)


def _convert_message(
    message: RequestMessage,
    tool_format: ToolFormat,
    offer: OfferedTools,
    numbers: dict[str, str],
    files: Mapping[str, bytes],
) -> RequestMessage:
    if message.role == "tool":
        return RequestMessage("user", tuple(_results(message.parts, numbers, files)))
    if message.role == "user":
        return message
    calls = [part for part in message.parts if isinstance(part, RequestCall)]
    for call in calls:
        numbers[call.call] = f"call_{len(numbers) + 1}"
    if not calls and not offer.is_constrained:
        return message
    words = "".join(
        provider_tool_as_text(part) if isinstance(part, ProviderToolPart) else part.text
        for part in message.parts
        if isinstance(part, TextPart | ProviderToolPart)
    )
    others = [part for part in message.parts if not isinstance(part, RequestCall | TextPart | ProviderToolPart)]
    text = tool_format.write_answer(words, calls, offer)
    return replace(message, parts=(*others, *([TextPart(text)] if text else [])))


def _results(
    parts: Sequence[RequestPart], numbers: dict[str, str], files: Mapping[str, bytes]
) -> Iterator[RequestPart]:
    """Yield all results in one text, with the files that are text, and then the other files."""
    texts_of_results: list[str] = []
    others: list[FilePart] = []
    for result in parts:
        if isinstance(result, RequestResult):
            texts = [file for file in result.files if file_kind(file, frozenset(), files) == "text"]
            others += [file for file in result.files if file not in texts]
            text_files = [{"name": file.name, "text": files[file.blob].decode("utf-8", "replace")} for file in texts]
            texts_of_results.append(
                write_result(numbers[result.call], replace(result, text=result_text(result)), text_files)
            )
    yield TextPart("\n".join(texts_of_results))
    yield from others
