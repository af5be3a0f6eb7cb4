"""A whole session as a reader sees it: log entries and deltas of all its turns in, what is shown out, each character once.

Several turns of a session may stream at once, one on each branch. `core.deltas.Reader` is the same for a single turn.
A cursor is text that comes from strangers: whatever it says, reading it does no harm, and what it names that never was
is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.deltas import PARTS_LIMIT, UNSEEN, CallProgress, Delta, Shown, rest
from everturn.core.events import (
    Entry,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
)
from everturn.core.parts import StreamedPart

TEXT_LIMIT = 65_536  # characters of a cursor; a hundred branches that stream need fewer
STEPS_LIMIT = 256  # steps that a cursor may name
SEQ_LIMIT = 2**63 - 1


class SessionCursor(Struct, frozen=True):
    """A place in a session: the last entry seen and, of each step that streams, how much of each of its parts.

    A step is known by the position of the entry that began it.
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
        """Read what `str` wrote; anything else is the beginning."""
        if len(text) > TEXT_LIMIT:
            return cls()
        seq, _, named = text.partition(":")
        try:
            at = _number(seq, 0)
            steps = tuple(_step(one) for one in named.split(";")) if named else ()
        except ValueError:
            return cls()
        if len(steps) > STEPS_LIMIT or any(start > at or len(seen) > PARTS_LIMIT for start, seen in steps):
            return cls()
        return cls(at, tuple(sorted(dict(steps).items())))


def _number(text: str, least: int) -> int:
    if len(text) > 20:
        raise ValueError(text)
    return min(max(int(text), least), SEQ_LIMIT)


def _step(text: str) -> tuple[int, tuple[int, ...]]:
    start, _, seen = text.partition("=")
    return _number(start, 1), tuple(_number(one, UNSEEN) for one in seen.split(","))


class _Step:
    """A step that streams: where it began, and how much of each of its parts was shown."""

    __slots__ = ("seen", "start")

    def __init__(self, start: int, seen: Iterable[int] = ()) -> None:
        self.start, self.seen = start, list(seen)

    def note(self, delta: Delta) -> None:
        if delta.part >= PARTS_LIMIT:
            return
        while len(self.seen) <= delta.part:
            self.seen.append(UNSEEN)
        self.seen[delta.part] = delta.offset + len(delta.text)


class SessionReader:
    """Turns entries and deltas, in whatever pieces they come, into what one reader of a session is shown."""

    def __init__(self, cursor: SessionCursor | None = None) -> None:
        cursor = cursor or SessionCursor()
        self.seq = cursor.seq
        self._named = dict(cursor.steps)
        self._steps: dict[str, _Step] = {}  # turn -> its step that streams

    @property
    def cursor(self) -> SessionCursor:
        """Where this reader is; another one can go on from here, on any node."""
        steps = ((step.start, tuple(step.seen)) for step in self._steps.values() if step.seen)
        return SessionCursor(self.seq, tuple(sorted(steps)))

    @property
    def steps(self) -> Mapping[str, int]:
        """The steps that stream, as far as they are known: turn -> where its step began."""
        return {turn: step.start for turn, step in self._steps.items()}

    @property
    def after(self) -> int:
        """The position behind which the log is to be read: what was shown is learned from where the cursor needs it."""
        return min((start - 1 for start in self._named), default=self.seq)

    def learn(self, entries: Iterable[Entry]) -> None:
        """See entries that were shown before the cursor: which turn a step belongs to, and whether it goes on."""
        for entry in entries:
            if entry.seq <= self.seq:
                self._mark(entry)
        self._named.clear()  # whatever is left of it never was

    def begun(self, steps: Mapping[str, int]) -> None:
        """Learn of steps that stream now: turn -> where its step began."""
        for turn, start in steps.items():
            if start <= self.seq and turn not in self._steps:
                self._steps[turn] = _Step(start)

    def unknown(self, entries: Sequence[Entry]) -> set[str]:
        """Turns of which a step ends in these entries whose beginning nobody has shown here: it is to be learned."""
        begun = set(self._steps)
        found: set[str] = set()
        for entry in entries:
            event = entry.event
            match event:
                case StepStarted(turn=turn) | StepRestarted(turn=turn):
                    begun.add(turn)
                case StepFinished(turn=turn) | StepInterrupted(turn=turn) if entry.seq > self.seq and turn not in begun:
                    found.add(turn)
                case _:
                    pass
        return found

    def entry(self, entry: Entry) -> Iterator[Shown]:
        """Show an entry of the log, and before it what was missed of the step it ends."""
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
        if step is None:  # nobody said where it began; all of it is shown
            step = self._steps[turn] = _Step(self.seq)
        for delta in rest(turn, step.start, parts, tuple(step.seen)):
            step.note(delta)
            yield delta

    def _mark(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case StepStarted(turn=turn) | StepRestarted(turn=turn):
                self._steps[turn] = _Step(entry.seq, self._named.pop(entry.seq, ()))
            case StepFinished(turn=turn) | StepInterrupted(turn=turn):
                self._steps.pop(turn, None)
            case _ if isinstance(event, Terminal):
                self._steps.pop(event.turn, None)
            case _:
                pass

    def is_ahead(self, delta: Delta) -> bool:
        """Whether a delta is of a step that began behind where this reader is: the log is to be read first."""
        return delta.seq > self.seq

    def delta(self, delta: Delta) -> Delta | None:
        """Show a delta, or the part of it that is new; None when it is old, void, or after a gap."""
        step = self._steps.get(delta.turn)
        if step is None or delta.seq != step.start or delta.part >= PARTS_LIMIT:
            return None
        seen, part = step.seen, delta.part
        if part < len(seen) and seen[part] == delta.offset and delta.text:  # what nearly every delta is like
            seen[part] += len(delta.text)
            return delta
        shown = seen[part] if part < len(seen) else UNSEEN
        have = max(shown, 0)
        end = delta.offset + len(delta.text)
        if delta.offset > have or (end <= have and shown != UNSEEN):
            return None
        step.note(delta)
        return delta if delta.offset == have else replace(delta, offset=have, text=delta.text[have - delta.offset :])


def merge_shown(shown: Sequence[Delta | CallProgress]) -> list[Delta | CallProgress]:
    """The same in fewer pieces: the deltas of a part in one where they go on, whatever other parts said meanwhile.

    Nothing passes what a tool says of itself.
    """
    merged: list[Delta | CallProgress] = []
    runs: dict[tuple[str, int, int], list[Delta]] = {}

    def close() -> None:
        for run in runs.values():
            merged.append(run[0] if len(run) == 1 else _joined(run))
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
        else:  # it says something again, or there is a gap: the reader knows what to do with it
            close()
            runs[key] = [item]
    close()
    return merged


def _joined(run: Sequence[Delta]) -> Delta:
    # The last one has the name of its call, if any of them does.
    return replace(run[-1], offset=run[0].offset, text="".join(delta.text for delta in run))
