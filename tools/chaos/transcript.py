"""Normalized logs: what two runs of the same inputs must have in common: no ids, no times, no order among parallel
events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import msgspec

from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    CallStarted,
    Entry,
    Event,
    GateOpened,
    GateResolved,
    LateResultReceived,
    MessageAdded,
    RequestRetried,
    StepRestarted,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)

NormalizedEvent = dict[str, Any]

_WHEN_AND_WHO = frozenset(
    ("at", "first_chunk_at", "hash", "command")
)  # a hash covers ids; the key of a command is the client's choice
_SHOWN = 240  # characters of an event in a difference


def normalize_log(entries: Sequence[Entry], session: str) -> list[NormalizedEvent]:
    """A log without ids, times, hashes, announced restarts and suspensions.

    Parallel events may be written in any order, so turns and parallel calls are put one after the other. Whether a turn
    was suspended before an answer came depends on timing.
    """
    rename = _renaming(entries, session)
    turns: dict[str, list[tuple[str, int, NormalizedEvent]]] = {}
    for entry in entries:
        if not isinstance(entry.event, StepRestarted | RequestRetried | TurnSuspended):
            turn = entry.event.turn if isinstance(entry.event, TurnEvent) else ""
            bare = _strip(msgspec.to_builtins(entry.event), rename)
            turns.setdefault(turn, []).append((rename(_call_of(entry.event)), entry.seq, bare))
    return [bare for events in turns.values() for _, _, bare in sorted(events, key=lambda event: event[:2])]


def _call_of(event: Event) -> str:
    if isinstance(event, GateOpened):
        return event.gate.call
    return event.call if isinstance(event, CallStarted | CallFinished | GateResolved | LateResultReceived) else ""


def _renaming(entries: Sequence[Entry], session: str) -> Callable[[str], str]:
    """Give every id of a log a name by its position."""
    names: dict[str, str] = {session: "session"}
    for id in (id for entry in entries for id in _ids_of(entry.event)):
        names.setdefault(id, f"id{len(names)}")
    pattern = re.compile("|".join(re.escape(id) for id in sorted(names, key=len, reverse=True)))
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def _ids_of(event: Event) -> Iterator[str]:
    if isinstance(event, TurnStarted):
        yield event.turn
        if event.input is not None:
            yield event.input.id
    elif isinstance(event, AnswerStarted | MessageAdded):
        yield event.message.id
    elif isinstance(event, GateOpened):
        yield event.gate.id


def _strip(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        items = cast("NormalizedEvent", value).items()
        return {key: _strip(item, rename) for key, item in items if key not in _WHEN_AND_WHO}
    if isinstance(value, list | tuple):
        return [_strip(item, rename) for item in cast("list[Any]", value)]
    return rename(value) if isinstance(value, str) else value


def unknown_calls(log: Sequence[NormalizedEvent]) -> set[str]:
    """The calls that a crash may have left with an unknown outcome, and did: only `once` calls."""
    once = {
        event["call"]
        for event in log
        if event["type"] == "CallStarted" and not (event.get("read_only") or event.get("idempotent"))
    }
    unknown = {
        event["call"] for event in log if event["type"] == "CallFinished" and event["state"] == "outcome_unknown"
    }
    return once & unknown


def without_results(log: Sequence[NormalizedEvent], calls: set[str]) -> list[NormalizedEvent]:
    """The log without the results of these calls, to compare the rest."""
    return [event for event in log if not (event["type"] == "CallFinished" and event["call"] in calls)]


def difference(log: Sequence[NormalizedEvent], expected: Sequence[NormalizedEvent]) -> str:
    """The first difference between two logs, as text; "" if there is none, except for unknown outcomes."""
    unknown = unknown_calls(log)
    found, wanted = without_results(log, unknown), without_results(expected, unknown)
    for at, (event, other) in enumerate(zip(found, wanted, strict=False)):
        if event != other:
            return f"event {at + 1} is {_show(event)}, and would have been {_show(other)}"
    if len(found) < len(wanted):
        return f"it ends before {_show(wanted[len(found)])}"
    return f"it goes on with {_show(found[len(wanted)])}" if len(found) > len(wanted) else ""


def _show(event: NormalizedEvent) -> str:
    text = msgspec.json.encode(event).decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
