"""Log comparison: describes the differences of two recordings in words. Pure.

These do not count (`normal` leaves them out):

- time: times, deadlines, whether a turn or a tool was suspended meanwhile, who had claimed a call, commands to a turn
  that was already over;
- ids: turns, messages, calls and gates are named by their position, and sessions not at all;
- hashes that bind such ids, keys of commands, and the names of blobs with private values, which are salted;
- the order of events that happen concurrently: every call is compared by itself; and the position of the title in its
  turn.

Everything else counts: texts, arguments, results, rules, gate resolutions, usage, trees of files, identities of tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, cast

import msgspec

from everturn.core.events import (
    AnswerStarted,
    CallClaimed,
    CallResumed,
    CallSuspended,
    CommandDropped,
    Event,
    FileUploadChanged,
    GateOpened,
    GateResolved,
    MessageAdded,
    StepRestarted,
    TitleSet,
    TurnCompleted,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from everturn.replay.recording import Recording

Plain = dict[str, Any]
Placed = tuple[int, Plain]  # position in the log, event
Lane = tuple[str, str]  # a turn and one of its calls; "" is the turn itself, or the session

IGNORED: Final = frozenset(
    ("at", "first_chunk_at", "phase", "expires", "until", "hash", "key", "command", "session", "private")
)
# What depends on time, and uploads to a vendor: a replay makes none.
TIMING_EVENTS: Final = (
    *(TurnSuspended, StepRestarted, CallSuspended, CallResumed, CallClaimed, CommandDropped),
    FileUploadChanged,
)
GATE_FIELDS: Final = ("tool", "identity")  # a grant copies them from its gate; logs of old releases do not have them
MOST = 50  # differences that are listed
SHOWN = 120  # characters of a value that a difference shows
_FOREIGN_KEYS: Final = frozenset(("metadata", "params", "schema"))  # objects with keys that are not ours


def normalize_recording(recording: Recording, ignore: Collection[str] = ()) -> bytes:
    """Encode a recording so that two equal ones are byte-equal: one line per event, call by call; then its sub-agents.

    `ignore` names more fields, or keys of metadata, that do not count.
    """
    lanes = _lanes(recording.events, frozenset(ignore))
    lines = (msgspec.json.encode(event, order="sorted") for lane in sorted(lanes) for _, event in lanes[lane])
    children = sorted(recording.below, key=lambda child: child.session)
    return b"".join(line + b"\n" for line in lines) + b"".join(normalize_recording(child, ignore) for child in children)


def differences(recorded: Recording, again: Recording, ignore: Collection[str] = ()) -> list[str]:
    """List the differences of the second recording, in the order of the log; empty if both are the same.

    The list ends where a turn takes another course: the rest follows from that.
    """
    old, new = (_lanes(item.events, frozenset(ignore)) for item in (recorded, again))
    located: list[tuple[float, str]] = []
    diverged_at = inf  # where the two go different ways
    for lane in sorted({*old, *new}):
        lane_differences, lane_diverged_at = _compare(_lane_name(lane, old, new), old.get(lane, []), new.get(lane, []))
        located += lane_differences
        diverged_at = diverged_at if lane[1] else min(diverged_at, lane_diverged_at)
    lines = [line for at, line in sorted(located, key=lambda item: item[0]) if at <= diverged_at]
    return lines if len(lines) <= MOST else [*lines[:MOST], f"and {len(lines) - MOST} more"]


def _compare(name: str, old: Sequence[Placed], new: Sequence[Placed]) -> tuple[list[tuple[float, str]], float]:
    """Compare one lane; return its differences with their positions, and the position where the two diverge."""
    located: list[tuple[float, str]] = []
    for (at, old_event), (_, new_event) in zip(old, new, strict=False):
        if old_event["type"] != new_event["type"]:
            located.append(
                (at, f"{name}: {_describe_event(old_event)} was recorded, and now it is {_describe_event(new_event)}")
            )
            return located, at
        located += [(at, f"{name}, {old_event['type']}: {line}") for line in _fields(old_event, new_event)]
    if len(old) > len(new):
        at, event = old[len(new)]
        return [*located, (at, f"{name}: {_describe_event(event)} was recorded, and does not happen")], at
    if len(new) > len(old):
        at, event = new[len(old)]
        return [*located, (at, f"{name}: {_describe_event(event)} was not recorded, and happens")], at
    return located, inf


def _fields(old: Plain, new: Plain) -> Iterator[str]:
    before, after = dict(_flat("", old)), dict(_flat("", new))
    for path in [*before, *(path for path in after if path not in before)]:
        if path not in after:
            yield f"{path} was {_format_value(before[path])}, and is not there"
        elif path not in before:
            yield f"{path} was not there, and is {_format_value(after[path])}"
        elif before[path] != after[path]:
            start = _first_difference(before[path], after[path])
            yield f"{path} was {_format_value(before[path], start)}, and is {_format_value(after[path], start)}"


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    items: Sequence[tuple[object, Any]] = ()
    if isinstance(value, dict):
        items = list(cast("Plain", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Any]", value), 1))
    if not items:
        yield path, value
    for key, item in items:
        yield from _flat(f"{path}.{key}" if path else str(key), item)


def _first_difference(old: object, new: object) -> int:
    if not isinstance(old, str) or not isinstance(new, str):
        return 0
    same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return 0 if max(len(old), len(new)) <= SHOWN else max(0, same - SHOWN // 4)


def _format_value(value: object, start: int = 0) -> str:
    if not isinstance(value, str):
        return _shorten(msgspec.json.encode(value).decode())
    return repr(("…" if start else "") + _shorten(value[start:]))


def _shorten(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _describe_event(event: Plain) -> str:
    """Describe an event in short, with its text."""
    body: Plain = event.get("problem") or event.get("output") or {}
    gate: Plain = event["gate"] if event["type"] == "GateOpened" else {}
    text: str = event.get("why") or gate.get("why") or body.get("text", "")
    return f"{event['type']} ({_shorten(text, 2 * SHOWN)})" if text else str(event["type"])


def _lane_name(lane: Lane, *logs: Mapping[Lane, Sequence[Placed]]) -> str:
    turn, call = lane
    if not call:
        return turn or "the session"
    tools = [event["tool"] for log in logs for _, event in log.get(lane, ()) if "tool" in event]
    return f"{call} ({tools[0]})" if tools else call


# Normalization---------------------------------------------------------------------------------------------------------


def _lanes(events: Sequence[Event], ignore: frozenset[str]) -> dict[Lane, list[Placed]]:
    rename = _renaming(events)
    lanes: dict[Lane, list[Placed]] = {}
    titles = {event.turn: event for event in events if isinstance(event, TitleSet) and event.model}
    for at, event in enumerate(events):
        if not isinstance(event, TIMING_EVENTS) and event not in titles.values():
            turn = event.turn if isinstance(event, TurnEvent) else ""
            raw = msgspec.to_builtins(event)
            if turn in titles and isinstance(event, TurnCompleted):
                raw["usage"] = _without(raw.get("usage", {}), msgspec.to_builtins(titles[turn].usage))
            if isinstance(event, GateResolved) and event.grant is not None:
                raw["grant"] = {key: field_value for key, field_value in raw["grant"].items() if key not in GATE_FIELDS}
            plain = cast("Plain", _strip(raw, rename, IGNORED | ignore, ignore))
            lane = lanes.setdefault((rename(turn), rename(_call_of(event))), [])
            # Logs of the first release have the title at the end of its turn, later ones behind its beginning.
            lane.insert(1 if isinstance(event, TitleSet) else len(lane), (at, plain))
    return lanes


def _without(usage: Plain, title: Plain) -> Plain:
    """The usage of a turn without that of its title, which a replay does not ask for."""
    left = {key: value - title.get(key, 0) if isinstance(value, int | float) else value for key, value in usage.items()}
    return {key: value for key, value in left.items() if value}


def _call_of(event: Event) -> str:
    return event.gate.call if isinstance(event, GateOpened) else str(getattr(event, "call", ""))


def _renaming(events: Sequence[Event]) -> Callable[[str], str]:
    """Name everything by its position.

    Calls are named after their turns, and gates after the call or turn they belong to.
    """
    names: dict[str, str] = {}
    turns = messages = 0
    for event in events:
        if isinstance(event, TurnStarted):
            turns += 1
            names.setdefault(event.turn, f"turn {turns}")
        message = event.input if isinstance(event, TurnStarted) else None
        if isinstance(event, AnswerStarted | MessageAdded):
            message = event.message
        if message is not None:
            messages += 1
            names.setdefault(message.id, f"message {messages}")
    gates: dict[str, int] = {}
    for event in events:
        if isinstance(event, GateOpened):
            subject = event.gate.call or event.turn
            gates[subject] = gates.get(subject, 0) + 1
            names[event.gate.id] = f"gate {gates[subject]} of {_renamer(names)(subject)}"
    return _renamer(names)


def _renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    if not names:
        return lambda text: text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(re.escape(id) for id in longest_first) + r")(?!\w)")
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def _strip(value: Any, rename: Callable[[str], str], drop: frozenset[str], ignore: frozenset[str]) -> Any:
    if isinstance(value, dict):
        items = cast("Plain", value).items()
        return {
            key: _strip(item, rename, ignore if key in _FOREIGN_KEYS else drop, ignore)
            for key, item in items
            if key not in drop
        }
    if isinstance(value, list | tuple):
        return [_strip(item, rename, drop, ignore) for item in cast("list[Any]", value)]
    return rename(value) if isinstance(value, str) else value
