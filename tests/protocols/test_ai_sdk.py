"""The UI message stream of the AI SDK, as bytes: which chunks, at which level, in which order, and where it ends."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.deltas import CallDelta, CallProgress, TextDelta, TurnItem
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    CallStarted,
    Event,
    GateOpened,
    GateResolved,
    LogEvent,
    NestedCallRequested,
    StepFinished,
    StepRestarted,
    StepStarted,
    TurnCompleted,
    TurnStarted,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.messages import Message
from everturn.core.options import ClientTool, TurnOptions
from everturn.core.parts import FilePart, Output, TextPart, ToolPart
from everturn.protocols.ag_ui import AgUiEncoder
from everturn.protocols.ai_sdk import AiSdkEncoder
from everturn.protocols.waiting_point import HIDDEN_EVENTS, OpenItems, StreamPosition
from tests.helpers.recorded_streams import NAMES, encoded, shown, turns_of, values

TURN = "t"
HASH = "h" * 64

# What the first client of a level takes, field by field: those were strict, and some are still about.
FIVE = {
    "start": {"messageId", "messageMetadata"},
    "finish": {"messageMetadata"},
    "start-step": set[str](),
    "finish-step": set[str](),
    "abort": set[str](),
    "error": {"errorText"},
    "file": {"url", "mediaType"},
    **{f"{kind}-start": {"id"} for kind in ("text", "reasoning")},
    **{f"{kind}-delta": {"id", "delta"} for kind in ("text", "reasoning")},
    **{f"{kind}-end": {"id"} for kind in ("text", "reasoning")},
    "tool-input-start": {"toolCallId", "toolName", "providerExecuted", "dynamic"},
    "tool-input-delta": {"toolCallId", "inputTextDelta"},
    "tool-input-available": {"toolCallId", "toolName", "input", "providerExecuted", "dynamic"},
    "tool-output-available": {"toolCallId", "output", "providerExecuted", "dynamic"},
    "tool-output-error": {"toolCallId", "errorText", "providerExecuted", "dynamic"},
    "data-": {"id", "data", "transient"},
}
SIX = {
    **FIVE,
    "finish": {"messageMetadata", "finishReason"},
    "tool-output-available": FIVE["tool-output-available"] | {"preliminary"},
    "tool-approval-request": {"approvalId", "toolCallId"},
    "tool-output-denied": {"toolCallId"},
}
SEVEN = {
    **SIX,
    "tool-approval-request": {"approvalId", "toolCallId", "reason", "approvalDescriptor"},
    "tool-approval-response": {"approvalId", "approved", "reason"},
    "reset-step": set[str](),
}
LEVELS = {5: FIVE, 6: SIX, 7: SEVEN}


def call(number: int = 1, name: str = "mail", arguments: str = '{"to":"Bob"}') -> ToolPart:
    return ToolPart(f"t-1-{number}", name, arguments)


def gate(id: str, number: int = 1, **more: Any) -> GateOpened:
    pending_gate = Gate(id, TURN, f"t-1-{number}", "mail", '{"to":"Bob"}', HASH, session="s", **more)
    return GateOpened(turn=TURN, gate=pending_gate, at=10.0)


def resolution(id: str, number: int = 1, allowed: bool = True) -> GateResolved:
    return GateResolved(turn=TURN, gate=id, call=f"t-1-{number}", resolution=GateResolution(allowed))


def started(number: int = 1) -> CallStarted:
    return CallStarted(
        turn=TURN, call=f"t-1-{number}", tool="mail", arguments='{"to":"Ada"}', hash="", idempotent=True, key=""
    )


def settled(number: int = 1, state: Any = "completed", text: str = "sent") -> CallFinished:
    return CallFinished(turn=TURN, call=f"t-1-{number}", state=state, output=Output(text))


def opening(*parts: Any, clients: tuple[ClientTool, ...] = ()) -> list[Event]:
    return [
        TurnStarted(turn=TURN, options=TurnOptions(clients=clients)),
        AnswerStarted(turn=TURN, message=Message("m", None, "assistant")),
        StepStarted(turn=TURN, step=1),
        StepFinished(turn=TURN, step=1, parts=parts, finish="tool_calls"),
    ]


ENDING: list[Event] = [TurnCompleted(turn=TURN)]


def chunks(encoder: AiSdkEncoder, seen: list[TurnItem] | list[Event]) -> list[dict[str, Any]]:
    return values(encoded(encoder, iter(seen)))


def types(stream: list[dict[str, Any]]) -> list[str]:
    return [chunk["type"] for chunk in stream if not chunk["type"].startswith("data-")]


def test_every_event_has_a_decided_mapping():
    for encoder in (AiSdkEncoder, AgUiEncoder):
        decided = set(encoder.ENCODERS) | HIDDEN_EVENTS
        assert decided == set(typing.get_args(LogEvent)), encoder
        assert not set(encoder.ENCODERS) & HIDDEN_EVENTS


@pytest.mark.parametrize("mode", ["open", "closed"])
@pytest.mark.parametrize("level", [5, 6, 7])
@pytest.mark.parametrize("name", NAMES)
def test_a_level_has_only_the_chunks_and_fields_that_its_first_client_takes(name: str, level: Any, mode: Any):
    for turn in turns_of(name):
        for chunk in values(encoded(AiSdkEncoder("s", level=level, mode=mode), shown(turn))):
            kind = chunk.pop("type")
            assert set(chunk) <= LEVELS[level]["data-" if kind.startswith("data-") else kind], kind


def told_of(stream: list[dict[str, Any]]) -> dict[str, str]:
    """Every text, reasoning and input by its id, put together."""
    whole: dict[str, str] = {}
    for chunk in stream:
        if "delta" in chunk:
            whole[chunk["id"]] = whole.get(chunk["id"], "") + chunk["delta"]
        elif "inputTextDelta" in chunk:
            whole[chunk["toolCallId"]] = whole.get(chunk["toolCallId"], "") + chunk["inputTextDelta"]
    return whole


@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(0, 3))
def test_deltas_cut_anyhow_give_the_same_end(name: str, size: int, lost: int):
    """`lost`: so many pieces of each part never come, and their characters come out of the log."""

    def cut(text: str) -> list[str]:
        pieces = [text[at : at + size] for at in range(0, len(text), size)] or [""]
        return pieces[: len(pieces) - lost] if lost else pieces

    for turn in turns_of(name):
        whole = values(encoded(AiSdkEncoder("s", mode="open"), shown(turn)))
        pieces = values(encoded(AiSdkEncoder("s", mode="open"), shown(turn, cut)))
        assert told_of(pieces) == told_of(whole)
        assert sorted(_ends(pieces)) == sorted(_ends(whole))


def _ends(stream: list[dict[str, Any]]) -> list[str]:
    """All but how much of a part came at once."""
    return [kind for kind in types(stream) if "delta" not in kind]


def test_what_was_missed_of_a_text_comes_after_a_later_part_and_kills_nothing():
    """A client dies of a delta for a text that has ended."""
    seen: list[TurnItem] = [
        *opening()[:3],
        TextDelta(TURN, 3, 0, 0, "Hel"),
        CallDelta(TURN, 3, 1, 0, "{}", "t-1-1", "mail"),
        TextDelta(TURN, 3, 0, 3, "lo"),
        StepFinished(turn=TURN, step=1, parts=(TextPart("Hello"), call(arguments="{}")), finish="tool_calls"),
    ]
    stream = chunks(AiSdkEncoder(), seen)
    kinds = types(stream)
    assert told_of(stream)["3.0"] == "Hello"
    assert kinds.count("text-start") == kinds.count("text-end") == 1
    assert kinds.index("text-end") > max(at for at, kind in enumerate(kinds) if kind == "text-delta")


def test_a_step_that_is_begun_again_is_reset_where_there_is_a_chunk_for_it():
    seen: list[TurnItem] = [
        *opening()[:3],
        TextDelta(TURN, 3, 0, 0, "Hel"),
        CallDelta(TURN, 3, 1, 0, '{"to":', "t-1-1", "mail"),
        CallDelta(TURN, 3, 2, 0, "{", "t-1-2", "mail"),
        StepRestarted(turn=TURN, step=1),
        CallDelta(TURN, 4, 0, 0, '{"to":"Bob"}', "t-1-1", "mail"),
        StepFinished(turn=TURN, step=1, parts=(call(),), finish="tool_calls"),
    ]
    seven = chunks(AiSdkEncoder(level=7), seen)
    assert types(seven).count("reset-step") == 1
    assert "text-end" not in types(seven)  # of a text that a reset has taken away

    six = chunks(AiSdkEncoder(level=6), seen)
    starts = [chunk["toolCallId"] for chunk in six if chunk["type"] == "tool-input-start"]
    assert starts == ["t-1-1", "t-1-2", "t-1-1"]  # resumed, or its arguments would go on where they were
    assert [chunk["toolCallId"] for chunk in six if chunk["type"] == "tool-output-error"] == ["t-1-2"]
    assert any(chunk["type"] == "data-restarted" for chunk in six)


def test_who_runs_a_call_is_said_when_it_runs_and_a_client_begins_nothing_before():
    declared = ClientTool("mail", "", {"type": "object"})
    before = [*opening(call(), clients=(declared,)), gate("g1"), resolution("g1"), started()]
    stream = chunks(AiSdkEncoder(mode="open"), before)
    assert "tool-input-available" not in types(stream)

    stream = chunks(AiSdkEncoder(mode="open"), [*before, gate("g2", kind="client")])
    ready = [chunk for chunk in stream if chunk["type"] == "tool-input-available"]
    assert [(chunk["providerExecuted"], chunk["input"]) for chunk in ready] == [(False, {"to": "Ada"})]

    stream = chunks(AiSdkEncoder(mode="open"), [*opening(call()), gate("g1"), resolution("g1"), started()])
    ready = [chunk for chunk in stream if chunk["type"] == "tool-input-available"]
    assert [(chunk["providerExecuted"], chunk["input"]) for chunk in ready] == [(True, {"to": "Ada"})]


def test_a_closed_stream_ends_when_everything_waits_and_not_before():
    log = [*opening(call(1), call(2), call(3)), started(1), gate("g2", 2), gate("g3", 3)]
    assert not _ended(AiSdkEncoder(), log)  # the first still runs
    assert _ended(AiSdkEncoder(), [*log, settled(1)])
    assert not _ended(AiSdkEncoder(mode="open"), [*log, settled(1)])
    stream = chunks(AiSdkEncoder(), [*log, settled(1)])
    assert types(stream)[-2:] == ["finish-step", "finish"]
    assert stream[-1]["finishReason"] == "tool-calls"


def _ended(encoder: AiSdkEncoder, log: list[Event]) -> bool:
    for event in log:
        encoder.feed(event)
    return encoder.is_done


def test_what_yes_and_no_do_not_answer_keeps_a_closed_stream_open():
    for kind in ("form", "manual"):
        log = [*opening(call()), *([started()] if kind == "form" else []), gate("g", kind=kind)]
        stream = chunks(AiSdkEncoder(), log)
        assert not _ended(AiSdkEncoder(), log)
        assert [chunk["data"]["kind"] for chunk in stream if chunk["type"] == "data-approval"] == [kind]
        assert "tool-approval-request" not in types(stream)


def test_a_call_that_waits_for_a_call_it_made_waits_too():
    nested = NestedCallRequested(turn=TURN, call="t-1-1.1", parent="t-1-1", name="look", arguments="{}")
    inner = GateOpened(turn=TURN, gate=Gate("g", TURN, "t-1-1.1", "look", "{}", HASH))
    log = [*opening(call()), started(), nested]
    assert not _ended(AiSdkEncoder(), log)
    assert _ended(AiSdkEncoder(), [*log, inner])


def test_the_stream_after_an_answer_says_only_what_is_new():
    before = [*opening(TextPart("Wait."), call(1), call(2)), started(1), gate("g2", 2), settled(1)]
    after = [resolution("g2", 2), started(2), settled(2), StepStarted(turn=TURN, step=2), *ENDING]
    place = StreamPosition(shown=frozenset({"g2"}), answered=frozenset({"g2"}), at=20.0)

    stream = chunks(AiSdkEncoder(place=place), [*before, *after])

    assert stream[0] == {"type": "start", "messageId": "m", "messageMetadata": {"everturn": {"session": ""}}}
    assert types(stream) == [
        "start",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "finish-step",
        "finish",
    ]
    assert {chunk["toolCallId"] for chunk in stream if "toolCallId" in chunk} == {"t-1-2"}


def test_two_streams_of_a_turn_say_together_what_one_says():
    log = [*opening(TextPart("Wait."), call(1), call(2)), started(1), gate("g2", 2), settled(1)]
    rest = [resolution("g2", 2), started(2), settled(2), *ENDING]
    for level in (6, 7):
        first = chunks(AiSdkEncoder(level=level), log)
        place = StreamPosition(shown=frozenset({"g2"}), answered=frozenset({"g2"}), at=20.0)
        second = chunks(AiSdkEncoder(level=level, place=place), [*log, *rest])
        whole = chunks(AiSdkEncoder(level=level, mode="open"), [*log, *rest])
        assert [*first[:-2], *second[1:]] == whole


def test_an_answer_given_elsewhere_does_not_end_the_stream_again():
    log = [*opening(call(1), call(2)), gate("g1", 1), gate("g2", 2)]
    elsewhere = [resolution("g1", 1), started(1), settled(1)]  # now the second one is all that waits
    place = StreamPosition(shown=frozenset({"g2"}), answered=frozenset({"g2"}), at=20.0)
    stream = chunks(AiSdkEncoder(place=place), [*log, *elsewhere, resolution("g2", 2), started(2), settled(2), *ENDING])
    assert types(stream)[-1] == "finish"
    assert [chunk["toolCallId"] for chunk in stream if chunk["type"] == "tool-output-available"] == ["t-1-1", "t-1-2"]


def test_a_stream_that_goes_on_does_not_end_at_a_gate_before_its_place():
    log = [
        *opening(call(1)),
        gate("g1"),
        resolution("g1"),
        started(),
        gate("g2", kind="result"),
        resolution("g2"),
        settled(),
    ]
    place = StreamPosition(shown=frozenset({"g2"}), answered=frozenset({"g2"}))
    stream = chunks(AiSdkEncoder(place=place), [*log, *ENDING])
    assert "tool-output-available" in types(stream)
    assert "tool-approval-request" not in types(stream)


def test_a_stream_that_is_resumed_passes_the_gates_that_are_history_and_ends_at_those_that_are_not():
    log = [*opening(call(1)), gate("g1"), resolution("g1"), started(), gate("g2", kind="result", output=Output("sent"))]
    stream = chunks(AiSdkEncoder(place=StreamPosition(still_open=frozenset({"g2"}), at=20.0)), log)
    approval_ids = [chunk["approvalId"] for chunk in stream if chunk["type"] == "tool-approval-request"]
    assert approval_ids == ["g1", "g2"]
    assert types(stream)[-1] == "finish"
    later = gate("g1")  # opened after it was asked for, so it is news
    assert _ended(AiSdkEncoder(place=StreamPosition(at=5.0)), [*opening(call(1)), later])


def test_a_result_is_shown_before_it_is_asked_about_and_gone_when_it_is_withheld():
    log = [*opening(call()), started(), gate("g", kind="result", output=Output("secret"))]
    stream = chunks(
        AiSdkEncoder(level=7, mode="open"), [*log, resolution("g", allowed=False), settled(state="withheld", text="no")]
    )
    kinds = types(stream)
    at = kinds.index("tool-approval-request")
    outputs = [chunk for chunk in stream if chunk["type"] == "tool-output-available"]
    assert kinds[at - 1] == "tool-output-available"
    assert [(output["output"], output["preliminary"]) for output in outputs] == [("secret", True)]
    request = next(chunk for chunk in stream if chunk["type"] == "tool-approval-request")
    assert request["approvalDescriptor"]["subject"] == "result"
    assert kinds[-2:] == ["tool-output-error", "finish"] or "tool-output-error" in kinds

    veiled = [*opening(call()), started(), gate("g", kind="result")]
    assert "tool-output-available" not in types(chunks(AiSdkEncoder(mode="open"), veiled))


def test_a_denial_is_one_only_where_somebody_was_asked():
    gated = [*opening(call()), gate("g"), resolution("g", allowed=False), settled(state="denied", text="no")]
    assert "tool-output-denied" in types(chunks(AiSdkEncoder(mode="open"), gated))
    unasked = [*opening(call()), settled(state="denied", text="a rule says no")]
    stream = chunks(AiSdkEncoder(mode="open"), unasked)
    assert [chunk["errorText"] for chunk in stream if chunk["type"] == "tool-output-error"] == ["a rule says no"]
    assert "tool-output-error" in types(chunks(AiSdkEncoder(level=5), gated))


def test_an_output_of_a_call_that_the_client_does_not_know_is_not_told():
    assert "tool-output-available" not in types(chunks(AiSdkEncoder(), [*opening(), settled(9)]))
    progress = CallProgress(TURN, "t-1-9", "half")
    assert "tool-output-available" not in types(chunks(AiSdkEncoder(), [*opening(), progress]))


def test_a_file_is_an_address_that_needs_a_role():
    stream = chunks(AiSdkEncoder("s9"), opening(FilePart("b1", "image/png", 5)))
    assert [chunk["url"] for chunk in stream if chunk["type"] == "file"] == ["/api/sessions/s9/blobs/b1"]


@pytest.mark.parametrize("why", ["drain", "slow", "revoked", "unshared", "lost"])
def test_what_is_cut_short_ends_in_an_error(why: str):
    encoder = AiSdkEncoder()
    sent = b"".join(encoder.feed(event) for event in opening(TextPart("Hel"))) + encoder.end(why)
    assert why in values(sent)[-1]["errorText"]
    assert sent.endswith(b"data: [DONE]\n\n")
    assert encoder.end(why) == b""


def test_a_place_that_never_comes_is_silent_to_the_end():
    """An id that a client made up shows it nothing, and runs nothing."""
    place = StreamPosition(shown=frozenset({"made-up"}), at=20.0)
    assert values(encoded(AiSdkEncoder(place=place), iter([*opening(call()), gate("g"), *ENDING]))) == []


def test_standing_counts_no_gate_of_a_call_that_is_settled():
    standing = OpenItems(("call",))
    for event in (*opening(call()), gate("g")):
        standing.feed(event)
    assert standing.is_end_of_stream
    standing.feed(settled())
    assert not standing.is_end_of_stream
