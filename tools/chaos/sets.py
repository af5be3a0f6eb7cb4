"""Lost and doubled inputs: compares acknowledged inputs with started turns, over any number of sessions.

It takes plain tuples, so that a campaign of a million inputs can read them from a table or a log, a session at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from everturn.core.events import Entry, TurnCancelled, TurnCompleted, TurnFailed, TurnStarted
from tools.chaos.ledger import LedgerLine

Input = tuple[str, str, str]
"""Session, key of the command, turn."""


class InputsReport(Struct, frozen=True):
    """The outcome of acknowledged inputs; the lists say which went wrong."""

    acknowledged: int
    begun: int
    lost: list[str]
    doubled: list[str]
    renamed: list[str]
    unfinished: list[str]

    @property
    def violations(self) -> list[str]:
        """All violations, as text."""
        return [*self.lost, *self.doubled, *self.renamed, *self.unfinished]


def check_inputs(acked: Iterable[Input], begun: Iterable[Input], ended: Iterable[tuple[str, str]]) -> InputsReport:
    """Compare the acknowledgements of clients with the logs.

    An input that was never acknowledged may be in the log (its client died, or the answer was lost), but only once. A
    repeated acknowledgement is not a second input.
    """
    promised: dict[tuple[str, str], str] = {}
    started_keys: set[tuple[str, str]] = set()
    turns: set[tuple[str, str]] = set()
    over: set[tuple[str, str]] = set()
    doubled: list[str] = []
    renamed: list[str] = []
    for session, key, turn in acked:
        if promised.setdefault((session, key), turn) != turn:
            renamed.append(f"input {key} of {session} was acknowledged as turn {promised[session, key]} and as {turn}")
    for session, key, turn in begun:
        if (session, key) in started_keys or (session, turn) in turns:
            doubled.append(f"input {key} of {session} began twice, now as turn {turn}")
        elif promised.get((session, key), turn) != turn:
            renamed.append(f"input {key} of {session} was acknowledged as turn {promised[session, key]}, not {turn}")
        started_keys.add((session, key))
        turns.add((session, turn))
    for session, turn in ended:
        if (session, turn) in over:
            doubled.append(f"turn {turn} of {session} ended twice")
        over.add((session, turn))
    lost = [f"input {key} of {session} was acknowledged and is lost" for session, key in promised.keys() - started_keys]
    unfinished = [f"turn {turn} of {session} has no end" for session, turn in turns - over]
    return InputsReport(len(promised), len(turns), sorted(lost), doubled, renamed, sorted(unfinished))


def acked_in(lines: Iterable[LedgerLine]) -> Iterator[Input]:
    """The inputs that were acknowledged, from a ledger."""
    return ((line.session, line.key, line.turn) for line in lines if line.kind == "ack" and line.name == "send")


def begun_in(session: str, entries: Sequence[Entry]) -> Iterator[Input]:
    """The turns that started, from a log."""
    events = (entry.event for entry in entries)
    return ((session, event.command, event.turn) for event in events if isinstance(event, TurnStarted))


def ended_in(session: str, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """The turns that ended, from a log."""
    events = (entry.event for entry in entries)
    return ((session, e.turn) for e in events if isinstance(e, TurnCompleted | TurnFailed | TurnCancelled))
