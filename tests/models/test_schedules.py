"""The short form of `schedules.py`: the same schedules every time. And it must notice a repair that is missing."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.models.schedule_models import CLOUDS, GROUPS, MAKERS
from tests.models.schedules import CLOUD_STORY, OPERATIONS, Tally, play

from everturn.core import history
from everturn.core.requests import ModelRequest, RequestMessage, RequestPart, RequestResult
from everturn.models import prompted
from everturn.models.formats import (
    chat_request,
    gemini_request,
    messages_request,
    ollama_request,
    responses_request,
    tool_names,
    valid_history,
)
from everturn.models.profile import Origin
from everturn.models.prompted import OfferedTools, ToolFormat
from everturn.models.prompted import request as prompted_request

SHORT = 20
ENOUGH = range(30, 200)  # seeds by which a missing repair must have been noticed; from here most need one or two


@pytest.mark.parametrize("first", [0, 20, 40])
async def test_no_vendor_refuses_a_history_whatever_happened(first: int) -> None:
    tally = await play(range(first, first + SHORT))
    assert tally.findings == []
    assert {group for _, group in tally.operations} == {*GROUPS, MAKERS}
    assert {name for name, _ in tally.operations} == set(OPERATIONS)


async def test_no_cloud_refuses_a_history_whatever_happened() -> None:
    tally = await play(range(SHORT), groups=CLOUD_STORY)
    assert tally.findings == []
    assert {group for _, group in tally.operations} >= {*CLOUDS}


@pytest.mark.parametrize("seed", [101175, 101447])
async def test_a_cancel_is_heard_behind_a_call_without_a_name(seed: int) -> None:
    tally = await play([seed])
    assert tally.findings == []


async def test_what_is_said_in_words_is_really_called_and_what_is_drawn_is_really_kept() -> None:
    drawing, ways = ("gemini-2", "gemini-3", "ollama"), ("json", "xml", "blocks")
    seen = (await play(range(2 * SHORT, 5 * SHORT), groups=(*drawing, *ways))).ingredients
    assert {name for name, _ in seen if name.startswith("in words")} == {f"in words: {way}" for way in (*ways, "bound")}
    assert {group for name, group in seen if name == "made a file"} == set(drawing)
    assert {group for name, group in seen if name.startswith("gate: ")} == {*drawing, *ways}


async def test_a_seed_makes_the_same_schedule_again() -> None:
    first, again = await play(range(3)), await play(range(3))
    assert first == again


Patch = tuple[object, str, Any]


def no_results(messages: Sequence[RequestMessage]) -> list[RequestMessage]:
    return [message for message in valid_history.repair_history(messages) if message.role != "tool"]


def as_they_come(messages: Sequence[RequestMessage]) -> Sequence[RequestMessage]:
    return messages


def unsigned(self: messages_request._AnthropicMessages, parts: Sequence[RequestPart]) -> list[dict[str, Any]]:
    blocks = SIGNED(self, parts)
    return [{key: value for key, value in block.items() if key != "signature"} for block in blocks]


def thoughts_last(self: responses_request._Items, parts: Sequence[RequestPart]) -> list[dict[str, Any]]:
    return list(THOUGHTS_FIRST(self, parts))[::-1]


def nameless(self: ollama_request._OllamaMessages, results: Sequence[RequestResult]) -> list[dict[str, Any]]:
    return [{**message, "tool_name": ""} for message in NAMED(self, results)]


def told_all(
    request: ModelRequest, tool_format: ToolFormat, offer: OfferedTools, params: dict[str, Any]
) -> ModelRequest:
    return prompted_request.build_prompted_request(
        request, tool_format, offer, {**params, "tool_format": tool_format.name}
    )


GEMINI_CALL = gemini_request._Contents._call
NAMED = ollama_request._OllamaMessages._results
SIGNED, THOUGHTS_FIRST = messages_request._AnthropicMessages._assistant, responses_request._Items._assistant
FORMATS = (chat_request, messages_request, responses_request, gemini_request, ollama_request)
BROKEN: dict[str, list[Patch]] = {
    "the results of calls are dropped": [(format, "repair_history", no_results) for format in FORMATS],
    "what plugins put in is not put in order": [(format, "repair_history", as_they_come) for format in FORMATS],
    "signatures are dropped": [(messages_request._AnthropicMessages, "_assistant", unsigned)],
    "thoughts stand behind what they led to": [(responses_request._Items, "_assistant", thoughts_last)],
    "seals are shown to whoever asks": [(Origin, "issuer", property(lambda self: "anybody"))],
    "thinking is asked for after calls without a thought": [(messages_request, "_may_think", lambda messages: True)],
    "arguments are sent as the model wrote them": [
        (where, "arguments_as_object", lambda arguments: arguments) for where in (history, *FORMATS)
    ],
    "names are sent as the model wrote them": [(tool_names.ToolNames, "wire", lambda self, name: name)],
    "ids are the provider's own": [
        (tool_names.CallIds, "_make", lambda self, call, name: call.provider_id or call.call)
    ],
    "gemini gets calls without a seal": [(gemini_request, "_add_placeholder_signatures", lambda contents: None)],
    "gemini gets pictures it cannot read": [(gemini_request, "UNREAD", frozenset[str]())],
    "gemini gets ids it has never given": [
        (gemini_request._Contents, "_call", lambda self, call: {**GEMINI_CALL(self, call), "id": "other"})
    ],
    "results do not say to ollama whose they are": [(ollama_request._OllamaMessages, "_results", nameless)],
    "what only we understand is sent on": [(prompted, "build_prompted_request", told_all)],
    "a user may speak right after a tool": [(chat_request, "_in_turn", lambda messages, must_alternate: messages)],
}


CONCERNED: dict[str, tuple[str, ...]] = {  # whom to ask, where it is not everybody
    "signatures are dropped": ("messages",),
    "thoughts stand behind what they led to": ("responses",),
    "thinking is asked for after calls without a thought": ("messages",),
    "gemini gets calls without a seal": ("gemini-3", "chat"),
    "gemini gets pictures it cannot read": ("gemini-2", "gemini-3"),
    "gemini gets ids it has never given": ("gemini-2", "gemini-3"),
    "results do not say to ollama whose they are": ("ollama",),
    "a user may speak right after a tool": ("mistral", "alternate"),
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_missing_repair_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name, replacement in BROKEN[broken]:
        monkeypatch.setattr(where, name, replacement)

    def is_refused(tally: Tally) -> bool:
        return any(finding.is_refusal for finding in tally.findings)

    tally = await play(ENOUGH, is_enough=is_refused, groups=CONCERNED.get(broken, tuple(GROUPS)))
    assert is_refused(tally), f"{broken}, and nobody refused anything"
