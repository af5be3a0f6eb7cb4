"""A recorded log → what comes next in each of its turns, and what of it has happened again.

Events are known again by what they are about, for turns, calls and gates have the names they had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from everturn.core.events import (
    CallBelow,
    CallJudged,
    CallMade,
    CallPaused,
    CallResumed,
    CallSettled,
    CallStarted,
    CommandDropped,
    Event,
    FilesChanged,
    GateAnswered,
    GateOpened,
    HookFinished,
    LimitReached,
    MessageAdded,
    StepFinished,
    TurnEnding,
    TurnParked,
)
from everturn.turn.bell import Bell

Key = tuple[object, ...]

CALLING: Final = "tool_calling"
UNTOLD: Final = (TurnParked, CommandDropped)  # they depend on the moment, and nobody waits for them
_OF_CALLS: Final = (CallMade, CallJudged, CallStarted, CallBelow, CallPaused, CallResumed, CallSettled)
_NAMES: Final = ("turn", "call", "step", "plugin", "message", "grant", "root", "gate")


class Script:
    """What is to happen in a session, and what has."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = [event for event in events if not isinstance(event, TurnParked)]
        self.bell = Bell()  # rung whenever something is written
        self.strayed: Event | None = None  # the first that was never recorded
        self.said: set[tuple[str, int]] = set()  # steps of which the model has said all there is
        self._seen: Counter[Key] = Counter()
        self._total: Counter[Key] = Counter()
        self._keys: list[tuple[Key, int]] = []
        self._of_turn: dict[str, list[int]] = {}
        for at, event in enumerate(self.events):
            key = key_of(event)
            self._total[key] += 1
            self._keys.append((key, self._total[key]))
            if turn := getattr(event, "turn", ""):
                self._of_turn.setdefault(turn, []).append(at)
        self._parked = _parked(events)

    def hear(self, events: Iterable[Event]) -> None:
        """These were written."""
        for event in events:
            if isinstance(event, UNTOLD):
                continue
            key = key_of(event)
            self._seen[key] += 1
            if self._seen[key] > self._total[key] and self.strayed is None:
                self.strayed = event
        self.bell.ring()

    def has_happened(self, at: int) -> bool:
        """Whether an event was written again."""
        key, number = self._keys[at]
        return self._seen[key] >= number or isinstance(self.events[at], CommandDropped)

    def next_of(self, turn: str) -> Event | None:
        """What comes next in a turn."""
        left = self._of_turn.get(turn, [])
        while left and self.has_happened(left[0]):
            del left[0]
        return self.events[left[0]] if left else None

    def rests_before(self, event: Event) -> bool:
        """Whether the turn was parked when an event came."""
        return id(event) in self._parked

    def is_known(self, turn: str) -> bool:
        """Whether there is such a turn."""
        return turn in self._of_turn

    def say(self, turn: str, step: int) -> None:
        """The model has no more to say in a step, and does not end it either."""
        self.said.add((turn, step))
        self.bell.ring()


def key_of(event: Event) -> Key:
    """What an event is about; two of the same are told apart by their order."""
    if isinstance(event, GateOpened):
        return ("GateOpened", event.turn, event.gate.id)
    about = [getattr(event, name, None) for name in _NAMES]
    added = event.message.id if isinstance(event, MessageAdded) else ""
    return (type(event).__name__, added, *(one for one in about if isinstance(one, str | int)))


def owner_of(event: Event | None) -> str:
    """The plugin that writes an event behind a step; "" is the runtime, or somebody outside."""
    match event:
        case GateOpened(gate=gate):
            return CALLING if gate.call else gate.tool.removeprefix("plugin:")
        case GateAnswered(verdict=verdict, call=call, gate=gate) if verdict.by.startswith("plugin:"):
            return CALLING if call else gate.split(".")[1] if gate.count(".") > 1 else CALLING
        case FilesChanged(call=call):
            return CALLING if call else ""
        case LimitReached(limit=limit):
            return CALLING if limit != "seconds" else ""
        case MessageAdded(message=message, command=command):
            return "" if command or message.role == "notice" else message.by
        case HookFinished():
            return ""
        case _:
            return CALLING if isinstance(event, _OF_CALLS) else ""


def plugins_of(events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Turn → the plugins that had a word behind its steps, in the order in which they spoke; of some nobody knows."""
    found: dict[str, dict[str, None]] = {}
    deferred: set[str] = set()
    for event in events:
        turn = getattr(event, "turn", "")
        if isinstance(event, HookFinished):
            deferred |= {append.message.id for append in event.deferred}
            found.setdefault(turn, {})[event.plugin] = None
        elif isinstance(event, StepFinished):
            found.setdefault(turn, {})
        elif isinstance(event, TurnEnding) and event.outcome == "cancelled" and not found.get(turn, True):
            found[turn][CALLING] = None  # somebody had a word when it was cancelled, or it would have been over
        elif isinstance(event, MessageAdded) and event.message.id in deferred:
            continue
        elif not isinstance(event, LimitReached) and (name := owner_of(event)):
            found.setdefault(turn, {})[name] = None
    return {turn: tuple(names) for turn, names in found.items()}


def _parked(events: Iterable[Event]) -> set[int]:
    """The events before which their turn was parked."""
    found: set[int] = set()
    resting: set[str] = set()
    for event in events:
        turn = getattr(event, "turn", "")
        if isinstance(event, TurnParked):
            resting.add(turn)
        elif turn in resting:
            found.add(id(event))
            resting.discard(turn)
    return found
