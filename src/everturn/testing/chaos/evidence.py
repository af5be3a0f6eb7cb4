"""The log of a session and the ledger, side by side and sorted for those who judge them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from everturn.core.events import CallSettled, CallStarted, Entry, TurnEvent
from everturn.testing.chaos.ledger import Kind, Line
from everturn.testing.chaos.transcript import Plain


class Evidence(Struct, frozen=True, dict=True):
    """What there is to judge a session by, once it has come to rest."""

    session: str
    entries: Sequence[Entry]
    ledger: Sequence[Line] = ()  # of any sessions
    kills: int = 0  # how often whoever drove it was killed, or cut off from what it needs
    uninterrupted: Sequence[Plain] | None = None  # `plain` of the same inputs when nobody disturbed them
    clocks_agree: bool = True  # ledger and log were written by the same clock

    def lines(self, kind: Kind) -> list[Line]:
        """What the ledger says of this session."""
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
        found = [entry.event for entry in self.entries if isinstance(entry.event, CallStarted)]
        return {event.call: event for event in reversed(found)}

    @cached_property
    def settled(self) -> list[CallSettled]:
        """Every result."""
        return [entry.event for entry in self.entries if isinstance(entry.event, CallSettled)]

    @cached_property
    def effects(self) -> dict[str, list[Line]]:
        """What was done for every call."""
        effects: dict[str, list[Line]] = {}
        for line in self.lines("effect"):
            effects.setdefault(line.call, []).append(line)
        return effects
