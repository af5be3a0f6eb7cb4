"""A request with tools → one without: the tools stand in the system prompt, calls and results in the conversation.

A pure function: asked twice, it is the same to the byte, so that a provider's prompt cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical import canonical
from everturn.core.parts import FilePart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult
from everturn.models.formats.files import kind_of
from everturn.models.formats.schemas import tool_schema
from everturn.models.formats.tidy import result_text, tidy
from everturn.models.formats.words import must_fit
from everturn.models.formats.written import remember, so_far
from everturn.models.prompted.paradigm import RESULT, Offer, Paradigm, write_result

CONCEPT = """# Tools

You can call tools: functions that are run for you. Call one when it helps with what you were asked, and only then."""
RESULTS = f"""What a call came to is told to you in the next message, as {{"{RESULT}": {{"tool_call_id": …, "name": …, "result": …}}}};
an "error" or "rejected" stands there in place of the result if the call failed or the person did not allow it. Calls are
numbered call_1, call_2, … through the conversation. Never write such a message yourself, and never guess a result: wait for it.
If you only want to show what a call looks like, put it into a code fence; then it is not run."""
NO_MORE = "Calls to tools in this conversation are over: no tool can be called now. Answer in plain words."
MUST_CALL = "Now you must call a tool."
MUST_CALL_ONE = "Now you must call the tool {name}."


def ask(request: ModelRequest, paradigm: Paradigm, offer: Offer, params: dict[str, Any]) -> ModelRequest:
    """The request as the model gets it. `params` are those that are left when the paradigm has taken its own."""
    messages = _told(request, paradigm, offer)
    system = splice(request.system, paradigm, offer, has_calls=any(m.role == "tool" for m in request.messages))
    return replace(request, system=system, messages=messages, tools=[], params=params)


def splice(system: str, paradigm: Paradigm, offer: Offer, has_calls: bool = False) -> str:
    """A system prompt with the concept, the form, an example and the tools there are."""
    if not offer.tools:
        return "\n\n".join(filter(None, (system, NO_MORE if has_calls else "")))
    tools = "\n".join(
        canonical({"name": tool.name, "description": tool.description, "parameters": tool_schema(tool.schema)})
        for tool in offer.tools
    )
    parts = [system, CONCEPT, paradigm.rules(offer), RESULTS, f"These are the tools:\n{tools}"]
    if offer.must_call:
        is_one = offer.choice != "required"
        parts.append(MUST_CALL_ONE.format(name=offer.choice) if is_one else MUST_CALL)
    if offer.schema is not None and not (offer.is_bound and paradigm.binds_answers):
        parts.append(must_fit(offer.schema))
    return "\n\n".join(filter(None, parts))


def _told(request: ModelRequest, paradigm: Paradigm, offer: Offer) -> list[RequestMessage]:
    """The conversation, each message told once in a turn, however many requests it has."""
    key = f"prompted {paradigm.name} {offer.is_bound}"
    before = so_far(request, key, dict[str, str]())  # our ids of calls -> those the model knows
    told, numbers = list(before.shown), dict(before.notes)
    for message in tidy(before.left(request)):
        one = _one(message, paradigm, offer, numbers, request.files)
        if told and one.role == "user" == told[-1].role:  # a result and what a person says then: one after the other
            told[-1] = replace(told[-1], parts=told[-1].parts + one.parts)
        else:
            told.append(one)
    remember(request, key, told, numbers)
    return list(told)


def _one(
    message: RequestMessage, paradigm: Paradigm, offer: Offer, numbers: dict[str, str], files: Mapping[str, bytes]
) -> RequestMessage:
    if message.role == "tool":
        return RequestMessage("user", tuple(_results(message.parts, numbers, files)))
    if message.role == "user":
        return message
    calls = [part for part in message.parts if isinstance(part, RequestCall)]
    for call in calls:
        numbers[call.call] = f"call_{len(numbers) + 1}"
    if not calls and not offer.is_bound:
        return message
    words = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    others = [part for part in message.parts if not isinstance(part, RequestCall | TextPart)]
    told = paradigm.tell(words, calls, offer)
    return replace(message, parts=(*others, *([TextPart(told)] if told else [])))


def _results(
    parts: Sequence[RequestPart], numbers: dict[str, str], files: Mapping[str, bytes]
) -> Iterator[RequestPart]:
    """All results in one text, with the files that are text, and then the others they brought."""
    told: list[str] = []
    others: list[FilePart] = []
    for result in parts:
        if isinstance(result, RequestResult):
            texts = [file for file in result.files if kind_of(file, frozenset(), files) == "text"]
            others += [file for file in result.files if file not in texts]
            shown = [{"name": file.name, "text": files[file.blob].decode("utf-8", "replace")} for file in texts]
            told.append(write_result(numbers[result.call], replace(result, text=result_text(result)), shown))
    yield TextPart("\n".join(told))
    yield from others
