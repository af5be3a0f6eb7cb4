"""The live edge: however a stream is cut, lost, repeated or resumed, every character is shown exactly once."""

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.simulated_driver import Dice, dice

from everturn import wire
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk
from everturn.core.deltas import (
    UNSEEN,
    CallDelta,
    CallProgress,
    Cursor,
    Delta,
    Frame,
    ReasoningDelta,
    TextDelta,
    TurnItem,
    TurnReader,
    merge_frames,
)
from everturn.core.events import Entry, HookFinished, StepFinished, StepInterrupted, StepRestarted, StepStarted
from everturn.core.parts import FilePart, ReasoningPart, StreamedPart, TextPart, ToolPart
from everturn.turn.stream import StepAssembly

AnyDelta = TextDelta | ReasoningDelta | CallDelta
Piece = tuple[str, str]  # what kind, and its whole text

ANY = st.characters(exclude_categories=())  # lone surrogates too: models do write them


def streams(characters: st.SearchStrategy[str], least: int = 1) -> st.SearchStrategy[list[Piece]]:
    """What a model says in one step: text, reasoning and calls, in any order."""
    kinds = st.sampled_from(["text", "reasoning", "call"])
    return st.lists(st.tuples(kinds, st.text(characters, min_size=least, max_size=12)), max_size=5)


def chunks_of(pieces: Sequence[Piece], dice: Dice) -> list[Chunk]:
    """The same stream, cut into chunks anywhere; the arguments of calls that stand together may come in turns."""
    chunks: list[Chunk] = []
    calls: list[list[Chunk]] = []
    for slot, (kind, text) in enumerate([*pieces, ("text", "")]):
        cut: list[Chunk] = []
        while text:
            size = dice.pick(1, 2, 3, 50)
            piece, text = text[:size], text[size:]
            chunk_type = {"text": TextChunk, "reasoning": ReasoningChunk}.get(kind)
            cut.append(CallChunk(slot, piece) if chunk_type is None else chunk_type(piece))
            cut += dice.pick([], [TextChunk("")])  # says nothing, and must not end a part
        if kind == "call":
            chunks.append(CallChunk(slot, "", "look", f"given{slot}"))
            calls.append(cut)
            continue
        while calls := [left for left in calls if left]:
            chunks.append(dice.pick(*calls).pop(0))
        chunks += cut
    return chunks


def batches_of(chunks: list[Chunk], dice: Dice) -> list[list[Chunk]]:
    batches: list[list[Chunk]] = [[]]
    for chunk in chunks:
        if dice.pick(True, False):
            batches.append([])
        batches[-1].append(chunk)
    return batches


def assemble(pieces: Sequence[Piece], dice: Dice) -> tuple[tuple[StreamedPart, ...], list[AnyDelta]]:
    assembly, deltas = StepAssembly("t", 1, 3), list[AnyDelta]()
    for batch in batches_of([*chunks_of(pieces, dice), FinishChunk("stop")], dice):
        deltas += [frame for frame in assembly.feed(batch) if isinstance(frame, AnyDelta)]
    assert assembly.finish == "stop"
    return assembly.parts(), deltas


def text_in(part: StreamedPart) -> str:
    """What is shown of a part piece by piece: of a file, nothing."""
    return part.arguments if isinstance(part, ToolPart) else "" if isinstance(part, FilePart) else part.text


@given(streams(ANY), dice, dice)
def test_however_a_stream_is_cut_its_parts_are_the_same(pieces: list[Piece], dice: Dice, other: Dice):
    parts, _ = assemble(pieces, dice)

    assert parts == assemble(pieces, other)[0] == assemble(pieces, Dice(b""))[0]
    wire.dump_event(StepFinished(turn="t", step=1, parts=parts, finish="stop"))  # whatever a model wrote can be stored


@given(streams(ANY), dice)
def test_what_was_shown_is_always_the_beginning_of_what_is_stored(pieces: list[Piece], dice: Dice):
    parts, deltas = assemble(pieces, dice)
    shown = [""] * len(parts)
    for delta in deltas:
        assert delta.offset == len(shown[delta.part])
        shown[delta.part] += delta.text
        assert text_in(parts[delta.part]).startswith(shown[delta.part])
        wire.dump_frames([delta])  # whatever a model wrote can be sent
    assert shown == [text_in(part) for part in parts]


# Readers ------------------------------------------------------------------------------------------------------------


class Face:
    """Draws what it is shown, and complains when a piece does not fit where it is put."""

    def __init__(self) -> None:
        self.partial: dict[int, str] = {}
        self.stored: list[tuple[StreamedPart, ...]] = []
        self.drawn: list[list[str]] = []
        self.calls: set[str] = set()

    def draw(self, shown: TurnItem) -> None:
        match shown:
            case StepStarted() | StepRestarted():
                self.partial = {}
            case Delta(part=part, offset=offset, text=text):
                assert offset == len(self.partial.get(part, ""))
                self.partial[part] = self.partial.get(part, "") + text
                if isinstance(shown, CallDelta):
                    self.calls.add(shown.call)
            case StepFinished(parts=parts) | StepInterrupted(parts=parts):
                self.stored.append(parts)
                self.drawn.append([self.partial.get(at, "") for at in range(len(parts))])
            case _:
                pass


def timeline(steps: list[list[Piece]], dice: Dice) -> list[Entry | Delta]:
    """A turn as it really happened: entries of the log, and between them deltas; some steps die and start again."""
    happened: list[Entry | Delta] = []
    seq = 0
    for number, pieces in enumerate(steps, 1):
        seq += dice.pick(1, 2)  # another turn of the session wrote in between
        happened.append(Entry(seq, StepStarted(turn="t", step=number)))
        parts, deltas = assemble(pieces, dice)
        while dice.pick(False, False, True):  # the driver dies in the middle of what may be another answer
            half = assemble(dice.pick(pieces, [("text", "otherwise")]), dice)[1]
            happened += [replace(delta, seq=seq) for delta in half[: len(half) // 2]]
            seq += dice.pick(1, 2)
            happened.append(Entry(seq, StepRestarted(turn="t", step=number)))
        happened += [replace(delta, seq=seq) for delta in deltas]
        seq += dice.pick(1, 2)
        end = dice.pick(StepFinished, StepInterrupted)
        happened.append(Entry(seq, end(turn="t", step=number, parts=parts, finish="stop")))
        seq += 1
        happened.append(Entry(seq, HookFinished(turn="t", step=number, plugin="notes")))
    return happened


def merged(deltas: list[Delta], dice: Dice) -> list[Delta]:
    """The same deltas in larger pieces, as an edge sends them that does not send every one."""
    pieces: list[Delta] = []
    for delta in deltas:
        last = pieces[-1] if pieces else None
        if last is not None and (last.seq, last.part) == (delta.seq, delta.part) and dice.pick(True, False):
            pieces[-1] = replace(last, text=last.text + delta.text)
        else:
            pieces.append(delta)
    return pieces


def follow(happened: list[Entry | Delta], dice: Dice) -> Face:
    """Follow a turn over a bad line: deltas are lost, late or doubled, the line breaks, the log is always there."""
    face, reader, log, bus = Face(), TurnReader("t"), list[Entry](), list[Delta]()
    present: list[Delta] = []  # what the bus still knows of the step under way

    def read_log() -> None:
        for entry in log:
            for shown in reader.entry(entry):
                face.draw(shown)

    for item in happened:
        if isinstance(item, Entry):
            log.append(item)
            present = []
        else:
            bus.append(item)
            present.append(item)
        match dice.pick("hear", "read", "lose", "wait", "twice", "reconnect"):
            case "reconnect":
                reader = TurnReader("t", Cursor.parse(str(reader.cursor)))
                bus = merged(present, dice)
                read_log()
            case "read":
                read_log()
            case "lose":
                del bus[:1]
            case "twice":
                bus = [*bus[:1], *bus]
            case _:
                pass
        while bus and dice.pick(True, True, False):
            if (delta := reader.delta(bus.pop(0))) is not None:
                face.draw(delta)
    read_log()
    return face


TURNS = st.lists(streams(st.characters()), min_size=1, max_size=3)


@given(TURNS, dice, dice)
def test_every_reader_sees_every_character_exactly_once(steps: list[list[Piece]], dice: Dice, line: Dice):
    face = follow(timeline(steps, dice), line)

    assert len(face.stored) == len(steps)
    assert face.drawn == [[text_in(part) for part in parts] for parts in face.stored]
    assert face.calls == {part.call for parts in face.stored for part in parts if isinstance(part, ToolPart)}


def test_a_call_without_arguments_is_shown_even_if_its_delta_was_lost():
    parts = (ToolPart("c", "now", ""), TextPart("hi"))
    reader, face = TurnReader("t", Cursor(1)), Face()
    reader.delta(TextDelta("t", 1, 1, 0, "hi"))

    for shown in reader.entry(Entry(2, StepFinished(turn="t", step=1, parts=parts, finish="stop"))):
        face.draw(shown)

    assert face.calls == {"c"}


@given(TURNS, dice)
def test_a_reader_that_comes_at_the_end_is_given_everything_by_the_log(steps: list[list[Piece]], dice: Dice):
    reader, face = TurnReader("t"), Face()
    for entry in timeline(steps, dice):
        if isinstance(entry, Entry):
            for shown in reader.entry(entry):
                face.draw(shown)

    assert face.drawn == [[text_in(part) for part in parts] for parts in face.stored]


def test_deltas_of_a_step_that_was_given_up_are_void():
    reader = TurnReader("t", Cursor(1))
    list(reader.entry(Entry(2, StepRestarted(turn="t", step=1))))

    assert reader.delta(TextDelta("t", 1, 0, 0, "old")) is None
    assert reader.delta(TextDelta("t", 2, 0, 0, "new")) == TextDelta("t", 2, 0, 0, "new")


# Cursors ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**40), max_size=5))
def test_a_cursor_is_read_as_it_was_written(seq: int, offsets: list[int]):
    cursor = Cursor(seq, tuple(offsets))

    assert Cursor.parse(str(cursor)) == cursor


GARBAGE = st.text(ANY) | st.text("0123456789:,-+_. e", max_size=20) | st.just("9" * 5_000) | st.just("1:" + "9" * 5_000)


@given(GARBAGE)
@example("0:-1")
@example("1:-5,3")
def test_a_cursor_from_an_unknown_client_is_a_place_in_the_turn_whatever_it_says(text: str):
    cursor = Cursor.parse(text)

    assert cursor.seq >= 0
    assert all(offset >= UNSEEN for offset in cursor.offsets)
    assert Cursor.parse(str(cursor)) == cursor


# Merging ------------------------------------------------------------------------------------------------------------


@given(st.data())
def test_merged_frames_show_a_reader_the_same_wherever_it_was(data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3)), max_size=20))
    sizes, frames = [0, 0, 0], list[Frame]()
    for part, text in pieces:
        frames.append(TextDelta("t", 1, part, sizes[part], text))
        sizes[part] += len(text)
        if data.draw(st.booleans()):
            frames.append(CallProgress("t", "c", "…"))
    seen = data.draw(st.integers(0, len(frames)))

    def shown(then: list[Frame]) -> str:
        reader = TurnReader("t", Cursor(1))
        texts = ["", "", ""]
        for frame in (*frames[:seen], *then):
            if isinstance(frame, Delta) and (piece := reader.delta(frame)) is not None:
                texts[piece.part] += piece.text
        return repr((texts, reader.cursor))

    merged = merge_frames(frames)
    assert not any(isinstance(frame, CallProgress) for frame in merged)
    assert shown(merged) == shown(frames[seen:]) == shown(frames)


def test_a_reader_that_leaves_in_the_middle_of_the_rest_goes_on_there() -> None:
    parts = (TextPart("one"), ReasoningPart("two"))
    finished = Entry(2, StepFinished(turn="t", step=1, parts=parts, finish="stop"))
    reader = TurnReader("t")
    list(reader.entry(Entry(1, StepStarted(turn="t", step=1))))
    assert next(iter(reader.entry(finished))) == TextDelta("t", 1, 0, 0, "one")

    again = TurnReader("t", Cursor.parse(str(reader.cursor)))

    assert list(again.entry(finished)) == [ReasoningDelta("t", 1, 1, 0, "two"), finished.event]
