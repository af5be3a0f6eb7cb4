"""A whole session as a reader sees it: however the line breaks, every character of every branch is shown exactly once."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.test_deltas import ANY, Piece, assemble, streams, text_in
from tests.helpers.simulated_driver import Dice, dice

from everturn.core.deltas import SEQ_LIMIT, UNSEEN, CallProgress, Delta, ReasoningDelta, TextDelta, TurnItem
from everturn.core.events import (
    Entry,
    HookFinished,
    LeafSelected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCompleted,
    TurnStarted,
)
from everturn.core.parts import StreamedPart
from everturn.core.projections.session_reader import SessionCursor, SessionReader, merge_deltas

Happening = Entry | Delta
branches = st.lists(st.lists(streams(ANY), min_size=1, max_size=3), min_size=1, max_size=3)


class Face:
    """Draws what it is shown, complains when a piece does not fit, and counts what it sees of the log."""

    def __init__(self) -> None:
        self.partial: dict[str, tuple[int, dict[int, str]]] = {}
        self.log: list[object] = []
        self.drawn: list[tuple[list[str], tuple[StreamedPart, ...]]] = []

    def draw(self, shown: TurnItem, seq: int) -> None:
        self.log += [] if isinstance(shown, Delta | CallProgress) else [shown]
        match shown:
            case StepStarted(turn=turn) | StepRestarted(turn=turn):
                self.partial[turn] = (seq, {})
            case Delta(turn=turn, part=part, offset=offset, text=text):
                start, parts = self.partial[turn]
                assert (start, offset) == (shown.seq, len(parts.get(part, "")))
                parts[part] = parts.get(part, "") + text
            case StepFinished(turn=turn, parts=whole) | StepInterrupted(turn=turn, parts=whole):
                _, parts = self.partial.pop(turn)
                self.drawn.append(([parts.get(at, "") for at in range(len(whole))], whole))
            case _:
                pass

    def check(self, log: Sequence[Entry]) -> None:
        assert self.log == [entry.event for entry in log]
        for drawn, parts in self.drawn:
            assert drawn == [text_in(part) for part in parts]


def timeline(branches: list[list[list[Piece]]], dice: Dice) -> list[Happening]:
    """A session as it really happened: turns on several branches at once, their entries and deltas in any order."""
    scripts = [_turn(f"t{number}", steps, dice) for number, steps in enumerate(branches)]
    happened: list[Happening] = []
    starts: dict[str, int] = {}
    seq = 0
    while scripts := [script for script in scripts if script]:
        item = dice.pick(*scripts).pop(0)
        if isinstance(item, Delta):
            happened.append(replace(item, seq=starts[item.turn]))
            continue
        seq += 1
        if dice.pick(False, False, True):
            happened.append(Entry(seq, LeafSelected(message=None)))
            seq += 1
        if isinstance(item.event, StepStarted | StepRestarted):
            starts[item.event.turn] = seq
        happened.append(Entry(seq, item.event))
    return happened


def _turn(turn: str, steps: list[list[Piece]], dice: Dice) -> list[Happening]:
    script: list[Happening] = [Entry(0, TurnStarted(turn=turn))]
    for number, pieces in enumerate(steps, 1):
        script.append(Entry(0, StepStarted(turn=turn, step=number)))
        parts, deltas = assemble(pieces, dice)
        if dice.pick(False, False, True):  # the driver dies in the middle of what may be another answer
            half = assemble(dice.pick(pieces, [("text", "otherwise")]), dice)[1]
            script += [replace(delta, turn=turn) for delta in half[: len(half) // 2]]
            script.append(Entry(0, StepRestarted(turn=turn, step=number)))
        script += [replace(delta, turn=turn) for delta in deltas]
        end = dice.pick(StepFinished, StepInterrupted)
        script.append(Entry(0, end(turn=turn, step=number, parts=parts, finish="stop")))
        script.append(Entry(0, HookFinished(turn=turn, step=number, plugin="notes")))
    return [*script, Entry(0, TurnCompleted(turn=turn))]


class Line:
    """Follows a session over a bad line. The log is always there; of deltas some are lost, late, doubled or merged."""

    def __init__(self) -> None:
        self.face, self.reader = Face(), SessionReader()
        self.log: list[Entry] = []
        self.bus: list[Delta] = []
        self.present: dict[str, list[Delta]] = {}  # what the bus still knows of the steps under way

    def read(self, dice: Dice | None = None) -> None:
        """Read the log on; the line may break anywhere in it."""
        self.reader.add_streaming_steps({turn: deltas[0].seq for turn, deltas in self.present.items() if deltas})
        unread = [entry for entry in self.log if entry.seq > self.reader.read_after]
        self.reader.learn_from(unread)
        for turn in self.reader.unknown_turns(unread):
            self.reader.learn_from([entry for entry in self.log if getattr(entry.event, "turn", "") == turn])
        for entry in unread:
            for shown in self.reader.entry(entry):
                self.face.draw(shown, entry.seq)
                if dice is not None and dice.pick(False, False, True):
                    self.reconnect()
                    return

    def hear(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            assert not isinstance(delta, CallProgress)
            if (piece := self.reader.delta(delta)) is not None:
                self.face.draw(piece, 0)

    def reconnect(self) -> None:
        self.reader = SessionReader(SessionCursor.parse(str(self.reader.cursor)))
        self.bus = [delta for deltas in self.present.values() for delta in deltas]
        self.read()

    def happen(self, item: Happening) -> None:
        if isinstance(item, Delta):
            self.bus.append(item)
            self.present.setdefault(item.turn, []).append(item)
        else:
            self.log.append(item)
            self.present.pop(getattr(item.event, "turn", ""), None)

    def go_on(self, dice: Dice) -> None:
        match dice.pick("hear", "read", "lose", "wait", "twice", "merged", "reconnect"):
            case "hear":
                self.hear([self.bus.pop(0)] if self.bus else [])
            case "read":
                self.read(dice)
            case "lose":
                del self.bus[:1]
            case "twice":
                self.hear(self.bus[:1] * 2)
            case "merged":
                self.hear([delta for delta in merge_deltas(self.bus) if isinstance(delta, Delta)])
                self.bus = []
            case "reconnect":
                self.reconnect()
            case _:
                pass


@given(branches, dice)
def test_however_the_line_breaks_every_character_of_every_branch_is_shown_once(
    branches: list[list[list[Piece]]], dice: Dice
):
    line = Line()
    for item in timeline(branches, dice):
        line.happen(item)
        line.go_on(dice)
    line.read()

    line.face.check(line.log)
    assert str(line.reader.cursor) == str(line.log[-1].seq)


@given(branches, dice, st.integers(0, 40))
def test_from_a_position_exactly_what_comes_behind_it_is_shown(
    branches: list[list[list[Piece]]], dice: Dice, after: int
):
    log = [item for item in timeline(branches, dice) if isinstance(item, Entry)]
    reader, shown = SessionReader(SessionCursor(after)), list[object]()
    for turn in reader.unknown_turns(log[after:]):
        reader.learn_from([entry for entry in log if getattr(entry.event, "turn", "") == turn])
    for entry in log:
        shown += [item for item in reader.entry(entry) if not isinstance(item, Delta)]

    assert shown == [entry.event for entry in log[after:]]


@given(st.text(st.sampled_from("0123456789:=,;-x ٣_\x00"), max_size=40) | st.text(ANY, max_size=40))
def test_a_cursor_from_an_unknown_client_is_read_or_is_the_beginning(text: str):
    cursor = SessionCursor.parse(text)

    assert SessionCursor.parse(str(cursor)) == cursor
    assert 0 <= cursor.seq <= SEQ_LIMIT
    SessionReader(cursor).learn_from([])


@pytest.mark.parametrize(
    "text", ["", "x", "9" * 5000, "5:", "5:6=1", "5:0=1", "5:1", "5:1=", "1:" + "1=1;" * 40_000, "-5", "5:1=1;;2=2"]
)
def test_what_is_no_cursor_is_the_beginning(text: str):
    assert SessionCursor.parse(text).seq in (0, 5)
    assert SessionCursor.parse(text).steps in ((), ((1, (1,)),))


def test_a_cursor_names_every_step_that_streams():
    reader = SessionReader()
    for entry in (Entry(1, StepStarted(turn="a", step=1)), Entry(2, StepStarted(turn="b", step=1))):
        list(reader.entry(entry))
    reader.delta(TextDelta("a", 1, 0, 0, "hello"))
    reader.delta(ReasoningDelta("b", 2, 1, 0, "hm"))

    assert str(reader.cursor) == f"2:1=5;2={UNSEEN},2"
    assert SessionCursor.parse(str(reader.cursor)) == reader.cursor


def test_steps_that_a_cursor_invents_are_left_out():
    reader = SessionReader(SessionCursor.parse("2:1=3;2=4"))
    reader.learn_from([Entry(1, TurnStarted(turn="a")), Entry(2, StepStarted(turn="a", step=1))])

    assert str(reader.cursor) == "2:2=4"


def test_pieces_of_two_branches_are_merged_each_for_itself():
    a, b = TextDelta("a", 1, 0, 0, "ab"), TextDelta("b", 2, 0, 0, "xy")
    progress = CallProgress("a", "call", "half")

    assert merge_deltas([a, b, replace(a, offset=2, text="c"), replace(b, offset=2, text="z")]) == [
        replace(a, text="abc"),
        replace(b, text="xyz"),
    ]
    assert merge_deltas([a, progress, replace(a, offset=2, text="c")]) == [a, progress, replace(a, offset=2, text="c")]
    assert merge_deltas([a, replace(a, part=1, offset=2)]) == [a, replace(a, part=1, offset=2)]  # parts apart
    assert merge_deltas([a, replace(a, offset=3)]) == [a, replace(a, offset=3)]
