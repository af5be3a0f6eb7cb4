"""Replay script: the next recorded event of each turn, and which recorded events have happened again.

Events are matched by what they are about, because turns, calls and gates keep their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from everturn.core.events import (
    CallFinished,
    CallResumed,
    CallStarted,
    CallSuspended,
    CommandDropped,
    Event,
    FilesChanged,
    GateOpened,
    GateResolved,
    HookFinished,
    LimitReached,
    MessageAdded,
    NestedCallRequested,
    PermissionDecided,
    StepFinished,
    SubagentStarted,
    ToolStepFinished,
    ToolStepStarted,
    TurnFinishing,
    TurnSuspended,
    WaitStarted,
)
from everturn.running.notifier import Notifier

Key = tuple[object, ...]

CALLING: Final = "tool_calling"
UNTRACKED_EVENTS: Final = (TurnSuspended, CommandDropped)  # they depend on timing, and nothing waits for them
_OF_CALLS: Final = (
    NestedCallRequested,
    PermissionDecided,
    CallStarted,
    SubagentStarted,
    ToolStepStarted,
    ToolStepFinished,
    WaitStarted,
    CallSuspended,
    CallResumed,
    CallFinished,
)
_NAMES: Final = ("turn", "call", "step", "plugin", "message", "grant", "root", "gate")


class ReplayScript:
    """The recorded events of a session, and which of them have happened again."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = [event for event in events if not isinstance(event, TurnSuspended)]
        self.notifier = Notifier()  # notified whenever something is written
        self.first_unrecorded: Event | None = None  # the first event that is not in the recording
        self.spoken_steps: set[tuple[str, int]] = set()  # steps whose recorded chunks were all sent
        self._seen: Counter[Key] = Counter()
        self._total: Counter[Key] = Counter()
        self._keys: list[tuple[Key, int]] = []
        self._of_turn: dict[str, list[int]] = {}
        for at, event in enumerate(self.events):
            key = event_key(event)
            self._total[key] += 1
            self._keys.append((key, self._total[key]))
            if turn := getattr(event, "turn", ""):
                self._of_turn.setdefault(turn, []).append(at)
        self._after_suspension = _events_after_suspension(events)

    def note_written(self, events: Iterable[Event]) -> None:
        """Note the events that were written."""
        for event in events:
            if isinstance(event, UNTRACKED_EVENTS):
                continue
            key = event_key(event)
            self._seen[key] += 1
            if self._seen[key] > self._total[key] and self.first_unrecorded is None:
                self.first_unrecorded = event
        self.notifier.notify()

    def has_happened(self, at: int) -> bool:
        """Whether an event was written again."""
        key, number = self._keys[at]
        return self._seen[key] >= number or isinstance(self.events[at], CommandDropped)

    def next_event(self, turn: str) -> Event | None:
        """Return the next recorded event of a turn."""
        remaining = self._of_turn.get(turn, [])
        while remaining and self.has_happened(remaining[0]):
            del remaining[0]
        return self.events[remaining[0]] if remaining else None

    def was_suspended_before(self, event: Event) -> bool:
        """Whether the turn was suspended before an event."""
        return id(event) in self._after_suspension

    def note_step_spoken(self, turn: str, step: int) -> None:
        """Note that the model has sent all recorded chunks of a step that it does not finish."""
        self.spoken_steps.add((turn, step))
        self.notifier.notify()


def event_key(event: Event) -> Key:
    """Return what an event is about; events with equal keys are told apart by their order."""
    if isinstance(event, GateOpened):
        return ("GateOpened", event.turn, event.gate.id)
    ids = [getattr(event, name, None) for name in _NAMES]
    added = event.message.id if isinstance(event, MessageAdded) else ""
    return (type(event).__name__, added, *(value for value in ids if isinstance(value, str | int)))


def find_writer(event: Event | None) -> str:
    """Return the plugin that writes an event after a step; "" is the runtime, or something outside."""
    match event:
        case GateOpened(gate=gate):
            return CALLING if gate.call else "" if gate.kind == "limit" else gate.tool.removeprefix("plugin:")
        case GateResolved(call="", gate=gate) if gate.rpartition(".")[2].startswith("limit"):
            return ""
        case GateResolved(resolution=resolution, call=call, gate=gate) if resolution.by.startswith("plugin:"):
            return CALLING if call else gate.split(".")[1] if gate.count(".") > 1 else CALLING
        case FilesChanged(call=call):
            return CALLING if call else ""
        case LimitReached(limit=limit):
            return CALLING if limit not in ("seconds", "denied") else ""
        case MessageAdded(message=message, command=command):
            return "" if command or message.role == "notice" else message.by
        case HookFinished():
            return ""
        case _:
            return CALLING if isinstance(event, _OF_CALLS) else ""


def plugins_by_turn(events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Return for each turn the plugins that acted after its steps, in order, as far as the log shows them."""
    plugins: dict[str, dict[str, None]] = {}
    deferred: set[str] = set()
    for event in events:
        turn = getattr(event, "turn", "")
        if isinstance(event, HookFinished):
            deferred |= {append.message.id for append in event.deferred}
            plugins.setdefault(turn, {})[event.plugin] = None
        elif isinstance(event, StepFinished):
            plugins.setdefault(turn, {})
        elif isinstance(event, TurnFinishing) and event.outcome == "cancelled" and not plugins.get(turn, True):
            plugins[turn][CALLING] = None  # a plugin was acting when it was cancelled, or the turn would have been over
        elif isinstance(event, MessageAdded) and event.message.id in deferred:
            continue
        elif not isinstance(event, LimitReached) and (name := find_writer(event)):
            plugins.setdefault(turn, {})[name] = None
    return {turn: tuple(names) for turn, names in plugins.items()}


def _events_after_suspension(events: Iterable[Event]) -> set[int]:
    """Return the ids of the events before which their turn was suspended."""
    event_ids: set[int] = set()
    suspended: set[str] = set()
    for event in events:
        turn = getattr(event, "turn", "")
        if isinstance(event, TurnSuspended):
            suspended.add(turn)
        elif turn in suspended:
            event_ids.add(id(event))
            suspended.discard(turn)
    return event_ids
