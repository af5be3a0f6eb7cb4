"""Two logs → what differs, in words. Pure.

What does not count (`normal` leaves it out):

- when: times, deadlines, whether a turn rested or a tool was put aside meanwhile, who had claimed a call, what was asked
  of a turn when it was over already;
- what anybody was called: turns, messages, calls and gates are named by their place, and sessions not at all;
- hashes that bind such names, keys of commands, and the names of blobs with private values, which are salted;
- in which order things were written that happen at the same time: every call is read by itself; and where in its turn the
  title was written.

Everything else does: texts, arguments, results, rules, verdicts, usage, trees of files, identities of tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, cast

import msgspec

from everturn.core.events import (
    AnswerOpened,
    CallPaused,
    CallResumed,
    CommandDropped,
    Event,
    GateAnswered,
    GateClaimed,
    GateOpened,
    MessageAdded,
    StepRestarted,
    TitleSet,
    TurnEvent,
    TurnParked,
    TurnStarted,
)
from everturn.testing.replay.recording import Recording

Plain = dict[str, Any]
Placed = tuple[int, Plain]  # in the log
Lane = tuple[str, str]  # a turn, and a call of it; "" is the turn itself, or the session

IGNORED: Final = frozenset(("at", "expires", "until", "hash", "key", "command", "session", "private"))
MOMENTS: Final = (TurnParked, StepRestarted, CallPaused, CallResumed, GateClaimed, CommandDropped)
OF_THE_GATE: Final = ("tool", "identity")  # a grant has them from its gate, and those of old releases did not say so
MOST = 50  # differences that are told
SHOWN = 120  # characters of a value that a difference shows
_OPEN: Final = frozenset(("metadata", "params", "schema"))  # whose keys are somebody else's


def normal(recording: Recording, ignore: Collection[str] = ()) -> bytes:
    """A recording as two of the same are byte-equal: a line for each event, call by call; then its sub-turns.

    `ignore` names more fields, or keys of metadata, that do not count.
    """
    lanes = _lanes(recording.events, frozenset(ignore))
    lines = (msgspec.json.encode(event, order="sorted") for lane in sorted(lanes) for _, event in lanes[lane])
    below = sorted(recording.below, key=lambda one: one.session)
    return b"".join(line + b"\n" for line in lines) + b"".join(normal(one, ignore) for one in below)


def differences(recorded: Recording, again: Recording, ignore: Collection[str] = ()) -> list[str]:
    """What is different the second time, in the order of the log; nothing where both are the same.

    Where a turn goes another way this ends: the rest follows from it.
    """
    old, new = (_lanes(one.events, frozenset(ignore)) for one in (recorded, again))
    found: list[tuple[float, str]] = []
    parted = inf  # where the two go different ways
    for lane in sorted({*old, *new}):
        told, way = _compare(_named(lane, old, new), old.get(lane, []), new.get(lane, []))
        found += told
        parted = parted if lane[1] else min(parted, way)
    lines = [line for at, line in sorted(found, key=lambda one: one[0]) if at <= parted]
    return lines if len(lines) <= MOST else [*lines[:MOST], f"and {len(lines) - MOST} more"]


def _compare(name: str, old: Sequence[Placed], new: Sequence[Placed]) -> tuple[list[tuple[float, str]], float]:
    """What differs in one lane, each at its place in the log, and where the two part."""
    found: list[tuple[float, str]] = []
    for (at, one), (_, other) in zip(old, new, strict=False):
        if one["type"] != other["type"]:
            found.append((at, f"{name}: {_event(one)} was recorded, and now it is {_event(other)}"))
            return found, at
        found += [(at, f"{name}, {one['type']}: {line}") for line in _fields(one, other)]
    if len(old) > len(new):
        at, event = old[len(new)]
        return [*found, (at, f"{name}: {_event(event)} was recorded, and does not happen")], at
    if len(new) > len(old):
        at, event = new[len(old)]
        return [*found, (at, f"{name}: {_event(event)} was not recorded, and happens")], at
    return found, inf


def _fields(old: Plain, new: Plain) -> Iterator[str]:
    before, after = dict(_flat("", old)), dict(_flat("", new))
    for path in [*before, *(path for path in after if path not in before)]:
        if path not in after:
            yield f"{path} was {_show(before[path])}, and is not there"
        elif path not in before:
            yield f"{path} was not there, and is {_show(after[path])}"
        elif before[path] != after[path]:
            start = _first_difference(before[path], after[path])
            yield f"{path} was {_show(before[path], start)}, and is {_show(after[path], start)}"


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


def _show(value: object, start: int = 0) -> str:
    if not isinstance(value, str):
        return _cut(msgspec.json.encode(value).decode())
    return repr(("…" if start else "") + _cut(value[start:]))


def _cut(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _event(event: Plain) -> str:
    """An event in short, with what it says."""
    told: Plain = event.get("problem") or event.get("output") or {}
    asks: Plain = event["gate"] if event["type"] == "GateOpened" else {}
    said: str = event.get("why") or asks.get("why") or told.get("text", "")
    return f"{event['type']} ({_cut(said, 2 * SHOWN)})" if said else str(event["type"])


def _named(lane: Lane, *logs: Mapping[Lane, Sequence[Placed]]) -> str:
    turn, call = lane
    if not call:
        return turn or "the session"
    tools = [event["tool"] for log in logs for _, event in log.get(lane, ()) if "tool" in event]
    return f"{call} ({tools[0]})" if tools else call


# Normal ----------------------------------------------------------------------------------------------------------------


def _lanes(events: Sequence[Event], ignore: frozenset[str]) -> dict[Lane, list[Placed]]:
    rename = _renaming(events)
    lanes: dict[Lane, list[Placed]] = {}
    for at, event in enumerate(events):
        if not isinstance(event, MOMENTS):
            turn = event.turn if isinstance(event, TurnEvent) else ""
            raw = msgspec.to_builtins(event)
            if isinstance(event, GateAnswered) and event.grant is not None:
                raw["grant"] = {key: one for key, one in raw["grant"].items() if key not in OF_THE_GATE}
            plain = cast("Plain", _strip(raw, rename, IGNORED | ignore, ignore))
            lane = lanes.setdefault((rename(turn), rename(_call_of(event))), [])
            # Logs of the first release have the title at the end of its turn, later ones behind its beginning.
            lane.insert(1 if isinstance(event, TitleSet) else len(lane), (at, plain))
    return lanes


def _call_of(event: Event) -> str:
    return event.gate.call if isinstance(event, GateOpened) else str(getattr(event, "call", ""))


def _renaming(events: Sequence[Event]) -> Callable[[str], str]:
    """Name everything by its place. Calls are named after their turns, and gates after what asks."""
    names: dict[str, str] = {}
    turns = messages = 0
    for event in events:
        if isinstance(event, TurnStarted):
            turns += 1
            names.setdefault(event.turn, f"turn {turns}")
        message = event.input if isinstance(event, TurnStarted) else None
        if isinstance(event, AnswerOpened | MessageAdded):
            message = event.message
        if message is not None:
            messages += 1
            names.setdefault(message.id, f"message {messages}")
    gates: dict[str, int] = {}
    for event in events:
        if isinstance(event, GateOpened):
            asks = event.gate.call or event.turn
            gates[asks] = gates.get(asks, 0) + 1
            names[event.gate.id] = f"gate {gates[asks]} of {_renamer(names)(asks)}"
    return _renamer(names)


def _renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    if not names:
        return lambda text: text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(re.escape(id) for id in longest_first) + r")(?!\w)")
    return lambda text: pattern.sub(lambda found: names[found[0]], text)


def _strip(value: Any, rename: Callable[[str], str], drop: frozenset[str], ignore: frozenset[str]) -> Any:
    if isinstance(value, dict):
        items = cast("Plain", value).items()
        return {
            key: _strip(item, rename, ignore if key in _OPEN else drop, ignore)
            for key, item in items
            if key not in drop
        }
    if isinstance(value, list | tuple):
        return [_strip(item, rename, drop, ignore) for item in cast("list[Any]", value)]
    return rename(value) if isinstance(value, str) else value
