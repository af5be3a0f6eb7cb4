"""The fold of the terminal comes to what the fold of the core, and of the page, comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn import api, wire
from everturn.core.deltas import CallDelta, ReasoningDelta, TextDelta
from everturn.core.events import (
    AnswerStarted,
    LeafSelected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import FilePart, TextPart
from everturn.terminal.tui.state import MAX_PROGRESS_ROWS, SessionState
from tests.helpers.transcript_app import Writing, text_delta

GOLDEN = sorted((Path(__file__).parent.parent / "golden" / "v1").glob("*.jsonl"))


def folded(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All that the rows of a folded log come to."""
    known: dict[str, Any] = {}
    for row in rows:
        known.update(row)
    return known


def open_gates(known: dict[str, Any], state: SessionState) -> set[str]:
    """The questions that no row has a resolution for, of turns that go on."""
    rows = [(key.split(" ")[1:], value) for key, value in known.items() if key.startswith("gate ")]
    return {gate for (turn, gate), row in rows if not row.get("resolution") and not state.turns[turn].phase.is_terminal}


@pytest.mark.parametrize("log", GOLDEN, ids=lambda path: path.stem)
def test_every_golden_log_comes_to_what_it_came_to_for_the_page(log: Path) -> None:
    rows = msgspec.json.decode(log.with_suffix(".folded.json").read_bytes())
    state = SessionState()
    known: dict[str, Any] = {}
    for entry, row in zip(wire.load_log(log.read_bytes()), rows, strict=True):
        state.apply(api.StreamItem(seq=entry.seq, event=entry.event))  # pyright: ignore[reportArgumentType]
        known.update(row)
        assert state.tree.leaf == known["leaf"]
        for name, turn in state.turns.items():
            assert turn.phase == known[f"turn {name}"]["phase"]
        assert {gate.id for gate in state.open_gates} == open_gates(known, state)
    messages = {name: bare(msgspec.to_builtins(message)) for name, message in state.tree.messages.items()}
    assert messages == {key[8:]: bare(value) for key, value in known.items() if key.startswith("message ")}
    going = [turn for turn in state.turns.values() if not turn.phase.is_terminal]
    assert state.running is (going[-1] if going else None)
    assert set(state.ends) == {name for name, turn in state.turns.items() if turn.phase.is_terminal}
    assert not state.live


def bare(value: Any) -> Any:
    """Without what is nothing."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item not in (None, "", [], (), {}, False, 0)}
    return [bare(item) for item in value] if isinstance(value, list | tuple) else value


def test_two_branches_that_stream_at_once_do_not_mix() -> None:
    writing = Writing()
    writing.said("a", "One?")
    writing.said("b", "Two?")
    for at, (first, two) in enumerate(zip("first", "other", strict=True)):
        writing.delta(text_delta("a", at, first))
        writing.delta(text_delta("b", at, two))
    state = writing.state
    assert state.live["a"][0].text == "first"
    assert state.live["b"][0].text == "other"
    assert [message.id for message in state.branch()] == ["b-in", "b-out"]
    assert [message.id for message in state.branch("a-out")] == ["a-in", "a-out"]
    writing.event(LeafSelected(message="a-out"))
    assert state.running is state.turns["a"], "the turn of the branch that is looked at"
    writing.answered("a", [TextPart("first")])
    assert "a" not in state.live
    assert state.live["b"][0].text == "other"


def test_what_was_seen_of_a_step_that_begins_again_is_dropped() -> None:
    writing = Writing()
    writing.said("t", "Say it.")
    writing.delta(text_delta("t", 0, "half of"))
    writing.delta(ReasoningDelta("t", 0, 1, 0, "hm"))
    writing.event(StepRestarted(turn="t", step=1))
    assert not writing.state.live.get("t")
    writing.delta(text_delta("t", 0, "all of it"))
    assert writing.state.live["t"][0].text == "all of it"
    assert writing.state.steps["t"][1].restarts == 1
    writing.event(StepInterrupted(turn="t", step=1, parts=(TextPart("all of"),), finish="cancelled"))
    assert not writing.state.live.get("t")
    writing.event(TurnFinishing(turn="t", outcome="cancelled"))
    writing.event(TurnCancelled(turn="t"))
    assert writing.state.running is None
    assert isinstance(writing.state.ends["t"], TurnCancelled)


def test_a_call_that_streams_keeps_its_name_and_progress_is_bounded() -> None:
    writing = Writing()
    writing.said("t", "Do it.")
    writing.delta(CallDelta("t", 0, 0, 0, "", "t-1", "wri"))
    writing.delta(CallDelta("t", 0, 0, 0, '{"a"', "t-1", "write_file"))
    live = writing.state.live["t"][0]
    assert (live.kind, live.call, live.name, live.text) == ("call", "t-1", "write_file", '{"a"')
    for number in range(5 * MAX_PROGRESS_ROWS):
        writing.progress("t", "t-1", f"row {number}")
    rows = writing.state.progress["t-1"]
    assert len(rows) <= 2 * MAX_PROGRESS_ROWS
    assert rows[-1] == f"row {5 * MAX_PROGRESS_ROWS - 1}"


def test_hidden_messages_are_not_shown_and_a_message_that_joined_waits_no_more() -> None:
    writing = Writing()
    question = Message("in", None, "user", (TextPart("hello"), FilePart("b", "text/plain", 3, "a.txt")), turn="t")
    writing.event(TurnStarted(turn="t", input=question))
    writing.event(AnswerStarted(turn="t", message=Message("out", "in", "assistant", turn="t", hidden=True)))
    writing.event(StepStarted(turn="t", step=1))
    writing.event(StepFinished(turn="t", step=1, parts=(TextPart("not for you"),), finish="stop"))
    state = writing.state
    assert [message.id for message in state.branch()] == ["in"]
    state.queued = [
        api.QueuedView(turn="t", message="in", at=0.0, text="hello", files=[]),
        api.QueuedView(turn="u", message="next", at=0.0, text="later", files=[]),
    ]
    assert [message.text for message in state.queued_messages] == ["later"]


def test_a_delta_alone_is_no_place_in_the_log() -> None:
    state = SessionState()
    assert state.apply(api.StreamItem(delta=TextDelta("t", 4, 0, 0, "x"))) == "t"
    assert state.seq == 0
