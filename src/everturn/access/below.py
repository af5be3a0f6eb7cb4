"""The log of a turn → whether everybody may read the session of a sub-turn that it had run. Pure.

What a sub-turn said is the result of the call that asked for it. Where a person reads results first, that is for
approvers until it was let through, and as a whole: whoever could read the session below would have read the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from everturn.core.asking import Gate, Verdict
from everturn.core.events import CallBelow, CallSettled, CallStarted, Event, GateAnswered, GateOpened, TurnStarted


def is_for_all(log: Iterable[Event], session: str, reviewed: Collection[str]) -> bool:
    """Whether the session of a sub-turn is for everybody; `reviewed` are the tools whose results a person reads first."""
    events = list(log)
    calls = {event.call for event in events if isinstance(event, CallBelow) and event.session == session}
    return bool(calls) and all(_is_through(events, call, reviewed) for call in calls)


def _is_through(events: list[Event], call: str, reviewed: Collection[str]) -> bool:
    """Whether the result of a call was let through whole, or nobody is asked about it."""
    asked: Gate | None = None
    said: Verdict | None = None
    tool, is_settled, is_reviewed = "", False, False
    for event in events:
        match event:
            case TurnStarted(options=options):
                is_reviewed = is_reviewed or options.result != "auto"
            case CallStarted(call=name, tool=tool_name) if name == call:
                tool = tool_name
            case GateOpened(gate=gate) if gate.call == call and gate.kind == "result":
                asked, said = gate, None
            case GateAnswered(gate=gate_name, verdict=verdict) if asked is not None and gate_name == asked.id:
                said = verdict
            case CallSettled(call=name) if name == call:
                is_settled = True
            case _:
                pass
    if asked is not None:
        whole = asked.output.text if asked.output is not None else ""
        return said is not None and said.allowed and said.text in (None, whole)
    return is_settled or not (is_reviewed or tool in reviewed)
