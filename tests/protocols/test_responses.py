"""A turn as Responses: numbers that are read off the log, and so the same for everybody (pure)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai._models import construct_type
from openai._types import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from everturn import Chat
from everturn.core import events as all_events
from everturn.core.deltas import CallDelta, CallProgress, Delta, ReasoningDelta, TextDelta, TurnItem, TurnReader
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Entry,
    Event,
    GateOpened,
    GateResolved,
    OutputRejected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnSuspended,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.options import ClientTool
from everturn.core.parts import FilePart, ToolPart, Usage
from everturn.models.scripted import think
from everturn.protocols.openai_common import segments_of_log
from everturn.protocols.responses import ResponseHeader, ResponsesEncoder
from everturn.testing import ScriptedModel, call, calls, say
from tests.protocols.openai_server import BELL, look, mail

SEEN = {
    *(CallFinished, CallStarted, GateOpened, OutputRejected),
    *(StepFinished, StepInterrupted, StepRestarted, StepStarted),
    *(TurnCancelled, TurnCompleted, TurnFailed, TurnSuspended),
}
UNSEEN = {
    "TurnStarted": "`response.created` is said before it",
    "AnswerStarted": "a message of theirs is a part of ours; there is no placeholder",
    "MessageAdded": "what plugins and the runtime tell the model is not for clients",
    "InputRefused": "the text of the refusal is the answer; it is said as any text",
    "GateResolved": "the client itself has answered, or somebody elsewhere; what comes of it is seen",
    "CallClaimed": "as above",
    "NestedCallRequested": "a call of a tool's own: no model sees it",
    "PermissionDecided": "a record for us",
    "FileUploadChanged": "how a request names a file is between us and the provider",
    "RequestRetried": "no protocol has a word for it, and nothing of the step was sent yet",
    "AgentSwitched": "the answer goes on, whoever writes it",
    "CompactionStarted": "what the model reads of earlier messages is not for clients",
    "CompactionFinished": "as above",
    "CompactionFailed": "as above",
    "LimitReached": "the closing answer says it in words",
    "SubagentStarted": "a sub-agent run is the result of its call",
    "CallSuspended": "it still runs, for whoever reads this",
    "CallNotified": "as above",
    "CallResumed": "as above",
    "ToolStepStarted": "a record for the tool that is resumed",
    "ToolStepFinished": "as above",
    "WaitStarted": "it still runs, for whoever reads this",
    "WaitFinished": "as above",
    "FilesChanged": "there is no item for it",
    "LateResultReceived": "the item of its call is done; the model is told",
    "HookFinished": "a record for us",
    "TurnFinishing": "the end itself follows",
    "TitleSet": "a response has no title",
    "AgentSelected": "",
    "InstructionsSet": "",
    "LeafSelected": "a session's, not a turn's, as are the rest",
    "MessageDeleted": "",
    "SessionUpdated": "",
    "AnswerRated": "",
    "MessagesImported": "",
    "GrantRevoked": "",
    "RevertStarted": "",
    "FilesReverted": "",
    "CommandDropped": "",
}

CLIENT = ClientTool("bell", "Ring.", BELL)


@cache
def story() -> tuple[Entry, ...]:
    """The log of a turn with everything in it, that waits twice."""
    return asyncio.run(_story())


async def _story() -> tuple[Entry, ...]:
    first = [think("Well: a mail 📯."), say("I look."), calls(call("look", path="a"), call("mail", to="ada"))]
    model = ScriptedModel(first, [say("And ring."), calls(call("bell", times=2))], [think("Äh."), say("All is done.")])
    chat = Chat(model, tools=[look, mail])
    turn = await chat.send("Go", clients=[CLIENT])
    async for event in turn:
        if isinstance(event, TurnSuspended):
            for gate in await chat.gates():
                if gate.kind == "client":
                    await chat.claim(gate, "a client of this test")
                    await chat.answer(gate, result="rang", claim="a client of this test")
                else:
                    await chat.answer(gate, allow="once")
    entries = await chat.app.store.events(chat.session, turn=turn.id)
    await chat.app.aclose()
    return tuple(entries)


def pieces(turn: str, seq: int, parts: Sequence[Any], sizes: Iterator[int]) -> Iterator[Delta]:
    """The deltas of a step, cut anyhow."""
    for at, part in enumerate(parts):
        if isinstance(part, FilePart):
            continue
        text: str = part.arguments if isinstance(part, ToolPart) else part.text
        offset = 0
        while offset < len(text):
            piece = text[offset : offset + next(sizes)]
            if isinstance(part, ToolPart):
                yield CallDelta(turn, seq, at, offset, piece, part.call, part.name)
            else:
                kind = ReasoningDelta if type(part).__name__ == "ReasoningPart" else TextDelta
                yield kind(turn, seq, at, offset, piece)
            offset += len(piece)


def shown(
    entries: Sequence[Entry], sizes: Sequence[int] = (), drops: Sequence[bool] = (), void: Sequence[Delta] = ()
) -> Iterator[TurnItem]:
    """What a reader is shown: live in pieces of these sizes, some of them missed; without sizes, out of the log."""
    turn = entries[0].event.turn  # type: ignore[attr-defined]
    reader, seq = TurnReader(turn), 0
    cuts = iter(sizes[at % len(sizes)] for at in range(10**6)) if sizes else iter(())
    missed = iter(drops[at % len(drops)] if drops else False for at in range(10**6))
    for entry in entries:
        event = entry.event
        if isinstance(event, StepRestarted):
            yield from (delta for piece in void if (delta := reader.delta(piece)) is not None)
        if isinstance(event, StepStarted | StepRestarted):
            seq = entry.seq
        elif isinstance(event, StepFinished) and sizes:
            for delta in pieces(turn, seq, event.parts, cuts):
                if not next(missed) and (new := reader.delta(delta)) is not None:
                    yield new
        yield from reader.entry(entry)


def about(segment: int) -> ResponseHeader:
    return ResponseHeader("resp_1", "session", "turn", "assistant", 0.0, segment)


def response_events(segment: int, fed: Iterator[TurnItem], after: int = -1) -> list[dict[str, Any]]:
    """The events of a response."""
    encoder = ResponsesEncoder(about(segment), after)
    out = encoder.begin()
    for item in fed:
        out += encoder.feed(item)
        if encoder.is_done:
            break
    out += encoder.end("over")
    return [msgspec.json.decode(frame.partition(b"data: ")[2]) for frame in out.split(b"\n\n") if frame]


def split_texts(events: Sequence[dict[str, Any]]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The text of every item, and all that is not a piece of it."""
    texts: dict[str, str] = {}
    for event in events:
        if event["type"].endswith("text.delta"):
            texts[event["item_id"]] = texts.get(event["item_id"], "") + event["delta"]
    return texts, [event for event in events if not event["type"].endswith("text.delta")]


def numbers(events: Sequence[dict[str, Any]]) -> list[int]:
    return [event["sequence_number"] for event in events]


SEGMENTS = st.integers(0, 2)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def test_every_event_is_said_or_is_decided_not_to_be() -> None:
    names = {kind.__name__ for kind in get_args(all_events.LogEvent)}
    seen = {kind.__name__ for kind in SEEN}
    assert seen | UNSEEN.keys() == names
    assert not seen & UNSEEN.keys()


def test_what_is_decided_not_to_be_said_is_not_said() -> None:
    for entry in story():
        if type(entry.event).__name__ in UNSEEN:
            encoder = ResponsesEncoder(about(0))
            if not isinstance(entry.event, all_events.GateResolved | all_events.CallClaimed):
                assert encoder.feed(entry.event) == b""
    assert ResponsesEncoder(about(0)).feed(CallProgress("turn", "call", "half")) == b""


def test_the_story_is_three_responses() -> None:
    kinds: list[list[str]] = []
    for segment in range(3):
        last = response_events(segment, shown(story()))[-1]
        assert last["type"] == "response.completed"
        kinds.append([item["type"] for item in last["response"]["output"]])
    assert [sorted(kind) for kind in kinds] == [
        ["mcp_approval_request", "mcp_call", "message", "reasoning"],
        ["function_call", "mcp_call", "message"],
        ["message", "reasoning"],
    ]


@given(SEGMENTS, SIZES, SIZES, st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_whoever_comes_back_after_any_event_has_every_character_once(
    segment: int, sizes: list[int], other: list[int], cut: int
) -> None:
    live = response_events(segment, shown(story(), sizes))
    at = cut % len(live)
    rest = response_events(segment, shown(story(), other), live[at]["sequence_number"])
    whole = [*live[: at + 1], *rest]
    assert numbers(whole) == sorted(set(numbers(whole)))
    assert split_texts(whole) == split_texts(response_events(segment, shown(story())))


@given(SEGMENTS, SIZES, st.booleans(), st.data())
@settings(max_examples=50, deadline=None)
def test_after_any_number_comes_what_has_a_higher_one(
    segment: int, sizes: list[int], is_live: bool, data: st.DataObject
) -> None:
    every = response_events(segment, shown(story(), [1]))  # character by character
    near = data.draw(st.sampled_from(every))["sequence_number"] + data.draw(st.integers(-2, 2))
    rest = response_events(segment, shown(story(), sizes if is_live else ()), near)
    assert split_texts(rest) == split_texts([event for event in every if event["sequence_number"] > near])


@given(SEGMENTS, SIZES, st.lists(st.booleans(), min_size=1, max_size=7))
@settings(max_examples=30, deadline=None)
def test_a_reader_that_missed_some_of_it_has_the_same_items_and_texts(
    segment: int, sizes: list[int], drops: list[bool]
) -> None:
    live, later = response_events(segment, shown(story(), sizes, drops)), response_events(segment, shown(story()))
    assert split_texts(live)[0] == split_texts(later)[0]
    assert live[-1]["response"]["usage"] == later[-1]["response"]["usage"]
    by_id = [{item["id"]: item for item in events[-1]["response"]["output"]} for events in (live, later)]
    assert by_id[0] == by_id[1]
    _accepted(live)


def test_what_was_shown_of_a_step_that_starts_again_is_void() -> None:
    entries = list(story())
    at = next(at for at, entry in enumerate(entries) if isinstance(entry.event, StepStarted))
    begun = entries[at]
    again = Entry(begun.seq, StepRestarted(turn=begun.event.turn, step=1))  # type: ignore[attr-defined]
    moved = [*entries[: at + 1], *(Entry(entry.seq + 1, entry.event) for entry in [again, *entries[at + 1 :]])]
    void = [TextDelta(again.event.turn, begun.seq, 0, 0, "I was about to say")]  # type: ignore[attr-defined]
    live, later = response_events(0, shown(moved, [3], void=void)), response_events(0, shown(moved))
    assert "about to say" in str(live[:-1])
    assert "about to say" not in str([live[-1], later])
    assert live[-1]["response"] == later[-1]["response"]
    assert numbers(live) == sorted(set(numbers(live)))
    _accepted(live)
    _accepted(later)
    seen = next(event for event in live if event["type"].endswith("text.delta"))["sequence_number"]
    rest = response_events(0, shown(moved), seen)
    assert split_texts(rest)[0] == split_texts(later)[0]


def _accepted(events: Sequence[dict[str, Any]]) -> None:
    """Their own client takes all of it, and has it in the end."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        parsed: Any = construct_type(type_=ResponseStreamEvent, value=event)
        state.handle_event(parsed)


@pytest.mark.parametrize("segment", [0, 1, 2])
def test_their_client_takes_every_response(segment: int) -> None:
    _accepted(response_events(segment, shown(story(), [2])))


@pytest.mark.parametrize("why", ["drain", "slow", "revoked", "unshared", "lost"])
def test_a_stream_that_is_cut_says_where_to_go_on(why: str) -> None:
    encoder = ResponsesEncoder(about(0))
    encoder.begin()
    last = 0
    for item in shown(story(), [3]):
        for frame in filter(None, encoder.feed(item).split(b"\n\n")):
            last = msgspec.json.decode(frame.partition(b"data: ")[2])["sequence_number"]
        if last > 30_000_000_000:
            break
    told_why = msgspec.json.decode(encoder.end(why).partition(b"data: ")[2])
    assert (told_why["type"], told_why["code"], told_why["sequence_number"]) == ("error", why, last)
    assert f"starting_after={last}" in told_why["message"]
    assert encoder.is_done
    assert encoder.end(why) == b""


@pytest.mark.parametrize(
    ("ended", "kind", "status"),
    [
        (TurnCompleted(turn="turn"), "response.completed", "completed"),
        (TurnFailed(turn="turn", problem=all_events.Problem("model", "it broke")), "response.failed", "failed"),
        (TurnCancelled(turn="turn"), "response.incomplete", "cancelled"),
    ],
)
def test_how_a_turn_ends_is_how_the_response_does(ended: Event, kind: str, status: str) -> None:
    begun = [entry for entry in story() if entry.seq < next(e.seq for e in story() if isinstance(e.event, StepStarted))]
    [*_, last] = response_events(0, iter([*(entry.event for entry in begun), ended]))
    assert (last["type"], last["response"]["status"]) == (kind, status)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_off_is_incomplete(finish: Any, reason: str) -> None:
    step = [
        StepStarted(turn="turn", step=1),
        StepFinished(turn="turn", step=1, parts=(), finish=finish, usage=Usage(3, 4)),
    ]
    [*_, last] = response_events(0, iter([*step, TurnCompleted(turn="turn")]))
    assert last["response"]["incomplete_details"] == {"reason": reason}
    assert last["response"]["usage"]["total_tokens"] == 7


def test_a_turn_that_parks_again_at_what_was_asked_before_goes_on_in_the_same_response() -> None:
    gates = [Gate(f"g{n}", "turn", f"c{n}", "mail", "{}", f"hash {n}") for n in range(3)]
    opened = [GateOpened(turn="turn", gate=gate) for gate in gates[:2]]
    parked = TurnSuspended(turn="turn", step=1)
    answered = [
        GateResolved(turn="turn", gate=gate.id, call=gate.call, resolution=GateResolution(allowed=True))
        for gate in gates
    ]
    first = segments_of_log([*opened, parked])
    assert (first.current, first.is_suspended, first.unanswered(0)) == (0, True, gates[:2])
    two = segments_of_log([*opened, parked, answered[0], parked])  # the second answer is on its way
    assert (two.current, two.is_suspended, two.unanswered(0)) == (1, False, gates[1:2])
    three = segments_of_log(
        [*opened, parked, answered[0], parked, answered[1], GateOpened(turn="turn", gate=gates[2]), parked]
    )
    assert (three.current, three.is_suspended) == (1, True)
    assert (three.unanswered(0), three.unanswered(1)) == ([], gates[2:])
