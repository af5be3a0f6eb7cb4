"""Invariants: compare the log of a session with the ledger, and report violations. One pure function per invariant.

The log is what the system says it has done, the ledger is what was done. A check trusts neither alone. Each check is
itself trusted because it has caught a deliberate bug; see tests/testing/test_chaos_checks.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from everturn.core.canonical_json import parse_object
from everturn.core.events import (
    CallFinished,
    CallStarted,
    CommandDropped,
    LateResultReceived,
    MessageAdded,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
    TurnEvent,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.parts import ToolPart
from everturn.core.state import fold
from everturn.errors import InvalidEvent
from tools.chaos.evidence import Evidence
from tools.chaos.scenario import effect_hash, input_hash
from tools.chaos.transcript import difference, normalize_log


class Violation(Struct, frozen=True):
    """A violated invariant."""

    invariant: str
    session: str
    text: str

    def __str__(self) -> str:
        """The violation as a line of a report."""
        return f"{self.invariant} {self.session}: {self.text}"


Check = Callable[[Evidence], Iterator[str]]

CHECKS: dict[str, Check] = {}
"""Every checker by the name of what it checks."""


def _invariant(name: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


def check(evidence: Evidence) -> list[Violation]:
    """All violations of a session that has come to rest."""
    return [
        Violation(name, evidence.session, text) for name, invariant in CHECKS.items() for text in invariant(evidence)
    ]


# Acknowledgements ------------------------------------------------------------------------------------------------


@_invariant("I1")
def acknowledged_means_kept(evidence: Evidence) -> Iterator[str]:
    """An acknowledged input is in the log exactly once, as it was sent; any other acknowledged command was
    processed.
    """
    begun: dict[str, list[TurnStarted | MessageAdded]] = {}
    acted_on: set[str] = set()
    dropped: set[str] = set()
    for entry in evidence.entries:
        if isinstance(entry.event, TurnStarted | MessageAdded) and entry.event.command:
            begun.setdefault(entry.event.command, []).append(entry.event)
        if isinstance(entry.event, CommandDropped):
            dropped.add(entry.event.command)
        acted_on.add(getattr(entry.event, "command", ""))
    for key, starts in begun.items():
        if len(starts) > 1:
            yield f"input {key} began {len(starts)} turns, or joined them"
    cancelled = {line.turn for line in evidence.lines("ack") if line.name == "cancel"}
    for line in evidence.lines("ack"):
        starts = begun.get(line.key, [])
        if line.name != "send":
            if line.key not in acted_on:
                yield f"{line.name} {line.key} was acknowledged, and nothing came of it"
        elif not starts and not (line.key in dropped and line.turn in cancelled):
            yield f"input {line.key} was acknowledged and is lost"
        elif line.hash and any(line.hash != _hash_of(start) for start in starts):
            yield f"input {line.key} is not what was acknowledged"


def _hash_of(start: TurnStarted | MessageAdded) -> str:
    input_text = start.input if isinstance(start, TurnStarted) else start.message
    return "" if input_text is None else input_hash(input_text.text)


@_invariant("I2")
def one_key_is_one_turn(evidence: Evidence) -> Iterator[str]:
    """Every send with the same key gets the same turn, and that is the one which started."""
    begun = {e.command: e.turn for events in evidence.turns.values() for e in events if isinstance(e, TurnStarted)}
    turns_by_key: dict[str, str] = {}
    for line in evidence.lines("ack"):
        if line.name != "send":
            continue
        if turns_by_key.setdefault(line.key, line.turn) != line.turn:
            yield f"input {line.key} was acknowledged as turn {turns_by_key[line.key]} and as turn {line.turn}"
        elif begun.get(line.key, line.turn) != line.turn:
            yield f"input {line.key} was acknowledged as turn {line.turn} and began as {begun[line.key]}"


# The shape of the log ---------------------------------------------------------------------------------------------


@_invariant("I4")
def positions_have_no_gap(evidence: Evidence) -> Iterator[str]:
    """Positions are 1..n, each once, in order."""
    for at, entry in enumerate(evidence.entries, 1):
        if entry.seq != at:
            yield f"position {entry.seq} stands where {at} should"
            return


@_invariant("I6")
def every_turn_ends(evidence: Evidence) -> Iterator[str]:
    """Every turn has reached its end."""
    for turn, events in evidence.turns.items():
        if not any(isinstance(event, Terminal) for event in events):
            yield f"turn {turn} has no end; its last event is {type(events[-1]).__name__}"


@_invariant("I7")
def the_end_is_the_end(evidence: Evidence) -> Iterator[str]:
    """A turn has one terminal event, and after it only late results."""
    for turn, events in evidence.turns.items():
        ends = [at for at, event in enumerate(events) if isinstance(event, Terminal)]
        if len(ends) > 1:
            yield f"turn {turn} ended {len(ends)} times"
        for event in events[ends[0] + 1 :] if ends else ():
            if not isinstance(event, LateResultReceived | Terminal):
                yield f"turn {turn} went on after its end, with {type(event).__name__}"


@_invariant("I8")
def every_change_is_in_the_table(evidence: Evidence) -> Iterator[str]:
    """The events of a turn fold."""
    for turn, events in evidence.turns.items():
        try:
            fold(events)
        except InvalidEvent as error:
            yield f"turn {turn}: {error}"


@_invariant("I13")
def cancelled_means_no_more(evidence: Evidence) -> Iterator[str]:
    """After a cancellation is in the log, no model is called and no tool is started."""
    for turn, events in evidence.turns.items():
        ends = [at for at, e in enumerate(events) if isinstance(e, TurnFinishing) and e.outcome == "cancelled"]
        if not ends:
            continue
        for event in events[ends[0] :]:
            if isinstance(event, StepStarted | StepRestarted | CallStarted):
                yield f"turn {turn} was cancelled, and then came {type(event).__name__}"
        inputs = {_hash_of(event) for event in events if isinstance(event, TurnStarted)}
        for line in evidence.lines("request") if evidence.clocks_agree else ():
            if line.hash in inputs and line.at > events[ends[0]].at:
                yield f"turn {turn} was cancelled, and then a model was asked for step {line.name}"


def _made(events: Sequence[TurnEvent]) -> list[str]:
    """The calls a model made, as often as it made them."""
    steps = [event for event in events if isinstance(event, StepFinished | StepInterrupted)]
    return [part.call for event in steps for part in event.parts if isinstance(part, ToolPart)]


@_invariant("I15")
def one_result_per_call(evidence: Evidence) -> Iterator[str]:
    """Every call of a turn that is over has one result, before the model is asked again; no result is without a call."""
    for turn, events in evidence.turns.items():
        results = Counter(event.call for event in events if isinstance(event, CallFinished))
        calls = set(_made(events))
        is_over = any(isinstance(event, Terminal) for event in events)
        for call in calls:
            if results[call] != 1 and (is_over or results[call] > 1):
                yield f"call {call} of turn {turn} has {results[call]} results"
        for call in results.keys() - calls:
            yield f"there is a result for {call}, which nobody called in turn {turn}"
        is_open: set[str] = set()
        for event in events:
            if isinstance(event, StepFinished | StepInterrupted):
                is_open |= set(_made([event]))
            elif isinstance(event, CallFinished):
                is_open.discard(event.call)
            elif isinstance(event, StepStarted) and is_open:
                yield f"step {event.step} of turn {turn} began before {', '.join(sorted(is_open))} had a result"


@_invariant("I16")
def call_ids_are_unique(evidence: Evidence) -> Iterator[str]:
    """No two calls of a session share an id."""
    calls = Counter(call for events in evidence.turns.values() for call in _made(events))
    for call, count in calls.items():
        if count > 1:
            yield f"{count} calls are called {call}"


# Effects ---------------------------------------------------------------------------------------------------------


@_invariant("I23")
def once_is_at_most_once(evidence: Evidence) -> Iterator[str]:
    """A `once` effect was not repeated."""
    for call, lines in evidence.effects.items():
        start = evidence.started.get(call)
        if len(lines) > 1 and start is not None and start.at_most_once:
            yield f"{start.tool} must be done once, and was done {len(lines)} times for call {call}"


@_invariant("I24")
def a_repeat_carries_the_same_key(evidence: Evidence) -> Iterator[str]:
    """However often a call is tried, the tool gets one key, and no other call's."""
    owners: dict[str, str] = {}
    for call, start in evidence.started.items():
        if owners.setdefault(start.key, call) != call:
            yield f"calls {owners[start.key]} and {call} share the key {start.key}"
    for call, lines in evidence.effects.items():
        keys = {line.key for line in lines}
        if call in evidence.started:
            keys.add(evidence.started[call].key)
        if len(keys) > 1:
            yield f"call {call} was tried under the keys {', '.join(sorted(keys))}"


@_invariant("I25")
def written_down_before_done(evidence: Evidence) -> Iterator[str]:
    """Before every effect there is a start in the log, of that call and with those arguments."""
    for call, lines in evidence.effects.items():
        start = evidence.started.get(call)
        if start is None:
            yield f"{lines[0].name} was done for call {call}, of which the log has no start"
            continue
        expected = effect_hash(start.tool, parse_object(start.arguments))
        for line in lines:
            if line.hash != expected or line.turn != start.turn:
                yield f"{line.name} was done for call {call} with other arguments than its start has"
            elif evidence.clocks_agree and line.at < start.at:
                yield f"{line.name} was done for call {call} before its start was written down"


@_invariant("I26")
def success_is_said_of_what_was_done(evidence: Evidence) -> Iterator[str]:
    """A call is `completed` only if it was done, and of unknown outcome only if a crash can have caused it."""
    for result in evidence.settled:
        start = evidence.started.get(result.call)
        if result.state == "completed" and start is not None and result.call not in evidence.effects:
            yield f"call {result.call} is said to be completed, and {start.tool} was never done"
        if result.state == "outcome_unknown":
            if start is None or not start.at_most_once:
                yield f"the outcome of call {result.call} is said to be unknown, though it may be run again"
            elif not evidence.kills:
                yield f"the outcome of call {result.call} is said to be unknown, though nobody was killed"


@_invariant("requests")
def a_kill_repeats_one_request(evidence: Evidence) -> Iterator[str]:
    """At most one request is repeated per kill, and a repeated one is the same."""
    requests = Counter(line.key for line in evidence.lines("request"))
    repeats = sum(requests.values()) - len(requests)
    if repeats > evidence.kills:
        yield f"{repeats} requests were sent again after {evidence.kills} kills"
    shown: dict[tuple[str, str], str] = {}
    for line in evidence.lines("request"):
        if shown.setdefault((line.hash, line.name), line.key) != line.key:
            yield f"the request of step {line.name} was not the same when it was sent again"


@_invariant("transcript")
def as_if_nothing_had_happened(evidence: Evidence) -> Iterator[str]:
    """The log is that of an uninterrupted run, except for unknown outcomes."""
    if evidence.uninterrupted is not None:
        if difference_text := difference(normalize_log(evidence.entries, evidence.session), evidence.uninterrupted):
            yield difference_text
