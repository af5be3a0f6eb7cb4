"""Evidence: the log of a session and the ledger, prepared for the checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from everturn.core.events import CallFinished, CallStarted, Entry, TurnEvent
from tools.chaos.ledger import Kind, LedgerLine
from tools.chaos.transcript import NormalizedEvent


class Evidence(Struct, frozen=True, dict=True):
    """The evidence about a session, once it has come to rest."""

    session: str
    entries: Sequence[Entry]
    ledger: Sequence[LedgerLine] = ()  # of any sessions
    kills: int = 0  # how often its driver was killed, or disconnected
    uninterrupted: Sequence[NormalizedEvent] | None = None  # `plain` of the same inputs in an undisturbed run
    clocks_agree: bool = True  # ledger and log were written by the same clock

    def lines(self, kind: Kind) -> list[LedgerLine]:
        """The lines of the ledger about this session."""
        return [line for line in self.ledger if line.kind == kind and line.session == self.session]

    @cached_property
    def turns(self) -> dict[str, list[TurnEvent]]:
        """The events of every turn."""
        turns: dict[str, list[TurnEvent]] = {}
        for entry in self.entries:
            if isinstance(entry.event, TurnEvent):
                turns.setdefault(entry.event.turn, []).append(entry.event)
        return turns

    @cached_property
    def started(self) -> dict[str, CallStarted]:
        """The first start of every call that was started."""
        starts = [entry.event for entry in self.entries if isinstance(entry.event, CallStarted)]
        return {event.call: event for event in reversed(starts)}

    @cached_property
    def settled(self) -> list[CallFinished]:
        """Every result."""
        return [entry.event for entry in self.entries if isinstance(entry.event, CallFinished)]

    @cached_property
    def effects(self) -> dict[str, list[LedgerLine]]:
        """The effects of every call."""
        effects: dict[str, list[LedgerLine]] = {}
        for line in self.lines("effect"):
            effects.setdefault(line.call, []).append(line)
        return effects
