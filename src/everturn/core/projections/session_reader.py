"""Session reader: merges log entries and deltas of all turns of a session, and shows each character once.

Several turns of a session may stream at once, one on each branch. `core.deltas.TurnReader` is the same for one turn.
A cursor is untrusted input: parsing one is always safe, and steps that never existed are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.deltas import (
    PARTS_LIMIT,
    UNSEEN,
    CallProgress,
    Delta,
    StreamingStep,
    TurnItem,
    missing_deltas,
    parse_cursor_number,
)
from everturn.core.events import (
    Entry,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
)
from everturn.core.parts import StreamedPart

TEXT_LIMIT = 65_536  # characters of a cursor; a hundred streaming branches need fewer
STEPS_LIMIT = 256  # steps that a cursor may name


class SessionCursor(Struct, frozen=True):
    """A position in a session: the last entry seen and, for each streaming step, the offset in each of its parts.

    A step is identified by the position of the entry that started it.
    """

    seq: int = 0
    steps: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def __str__(self) -> str:
        """Write it as `120:118=0,345;119=4`, or `120` while nothing streams."""
        if not self.steps:
            return str(self.seq)
        return f"{self.seq}:" + ";".join(f"{start}={','.join(map(str, seen))}" for start, seen in self.steps)

    @classmethod
    def parse(cls, text: str) -> SessionCursor:
        """Parse what `str` wrote; invalid text gives the beginning."""
        if len(text) > TEXT_LIMIT:
            return cls()
        seq, _, named = text.partition(":")
        try:
            at = parse_cursor_number(seq, 0)
            steps = tuple(_parse_step(step) for step in named.split(";")) if named else ()
        except ValueError:
            return cls()
        if len(steps) > STEPS_LIMIT or any(start > at or len(seen) > PARTS_LIMIT for start, seen in steps):
            return cls()
        return cls(at, tuple(sorted(dict(steps).items())))


def _parse_step(text: str) -> tuple[int, tuple[int, ...]]:
    start, _, seen = text.partition("=")
    return parse_cursor_number(start, 1), tuple(parse_cursor_number(offset, UNSEEN) for offset in seen.split(","))


class SessionReader:
    """Turns entries and deltas, in whatever pieces they arrive, into what one reader of a session shows."""

    def __init__(self, cursor: SessionCursor | None = None) -> None:
        cursor = cursor or SessionCursor()
        self.seq = cursor.seq
        self._named = dict(cursor.steps)
        self._steps: dict[str, StreamingStep] = {}  # turn -> its streaming step

    @property
    def cursor(self) -> SessionCursor:
        """The position of this reader; another reader can continue from it, on any node."""
        steps = ((step.start, tuple(step.seen)) for step in self._steps.values() if step.seen)
        return SessionCursor(self.seq, tuple(sorted(steps)))

    @property
    def steps(self) -> Mapping[str, int]:
        """The known streaming steps: turn -> where its step started."""
        return {turn: step.start for turn, step in self._steps.items()}

    @property
    def read_after(self) -> int:
        """The position after which to read the log: early enough to find the start of each step in the cursor."""
        return min((start - 1 for start in self._named), default=self.seq)

    def learn_from(self, entries: Iterable[Entry]) -> None:
        """Process entries before the cursor: they tell which turn a step belongs to, and whether it still streams."""
        for entry in entries:
            if entry.seq <= self.seq:
                self._mark(entry)
        self._named.clear()  # the rest never existed

    def add_streaming_steps(self, steps: Mapping[str, int]) -> None:
        """Add steps that stream now: turn -> where its step started."""
        for turn, start in steps.items():
            if start <= self.seq and turn not in self._steps:
                self._steps[turn] = StreamingStep(start)

    def unknown_turns(self, entries: Sequence[Entry]) -> set[str]:
        """Turns with a step that ends in these entries and whose start this reader has not seen: it must be learned."""
        started = set(self._steps)
        turns: set[str] = set()
        for entry in entries:
            event = entry.event
            match event:
                case StepStarted(turn=turn) | StepRestarted(turn=turn) | RequestRetried(turn=turn):
                    started.add(turn)
                case StepFinished(turn=turn) | StepInterrupted(turn=turn) if (
                    entry.seq > self.seq and turn not in started
                ):
                    turns.add(turn)
                case _:
                    pass
        return turns

    def entry(self, entry: Entry) -> Iterator[TurnItem]:
        """Show an entry of the log, and before it the missed rest of the step that it ends."""
        if entry.seq <= self.seq:
            return
        event = entry.event
        match event:
            case StepFinished(turn=turn, parts=parts) | StepInterrupted(turn=turn, parts=parts):
                yield from self._rest(turn, parts)
            case _:
                pass
        self._mark(entry)
        self.seq = entry.seq
        yield event

    def _rest(self, turn: str, parts: Sequence[StreamedPart]) -> Iterator[Delta]:
        step = self._steps.get(turn)
        if step is None:  # its start is unknown: all of it is shown
            step = self._steps[turn] = StreamingStep(self.seq)
        for delta in missing_deltas(turn, step.start, parts, tuple(step.seen)):
            step.note(delta)
            yield delta

    def _mark(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case StepStarted(turn=turn) | StepRestarted(turn=turn) | RequestRetried(turn=turn):
                self._steps[turn] = StreamingStep(entry.seq, self._named.pop(entry.seq, ()))
            case StepFinished(turn=turn) | StepInterrupted(turn=turn):
                self._steps.pop(turn, None)
            case _ if isinstance(event, Terminal):
                self._steps.pop(event.turn, None)
            case _:
                pass

    def delta(self, delta: Delta) -> Delta | None:
        """Show a delta, or the part of it that is new; None if it is old, of another step, or after a gap."""
        step = self._steps.get(delta.turn)
        return step.show(delta) if step is not None else None


def merge_deltas(shown: Sequence[Delta | CallProgress]) -> list[Delta | CallProgress]:
    """Compact deltas: contiguous deltas of a part become one, even if deltas of other parts come between.

    No delta moves across a tool's progress.
    """
    merged: list[Delta | CallProgress] = []
    runs: dict[tuple[str, int, int], list[Delta]] = {}

    def close() -> None:
        for run in runs.values():
            merged.append(run[0] if len(run) == 1 else _join_deltas(run))
        runs.clear()

    for item in shown:
        if isinstance(item, CallProgress):
            close()
            merged.append(item)
            continue
        key = (item.turn, item.seq, item.part)
        run = runs.get(key)
        if run is None:
            runs[key] = [item]
        elif run[-1].offset + len(run[-1].text) == item.offset and type(run[-1]) is type(item):
            run.append(item)
        else:  # a repetition or a gap: the reader handles it
            close()
            runs[key] = [item]
    close()
    return merged


def _join_deltas(run: Sequence[Delta]) -> Delta:
    # The last delta has the name of the call, if any has.
    return replace(run[-1], offset=run[0].offset, text="".join(delta.text for delta in run))
