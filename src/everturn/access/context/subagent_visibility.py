"""Visibility of sub-agent sessions: decides from the parent's log whether all roles may read a sub-agent's session. Pure.

A sub-agent's answer is the result of the call that started it. Where results are reviewed, only approvers may read it until
it was approved unchanged, and with it the whole session, which contains the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    GateOpened,
    GateResolved,
    SubagentStarted,
    TurnStarted,
)
from everturn.core.gates import Gate, GateResolution


def is_visible_to_all(log: Iterable[Event], session: str, reviewed: Collection[str]) -> bool:
    """Whether all roles may read a sub-agent's session; `reviewed` are the tools whose results are always reviewed."""
    events = list(log)
    calls = {event.call for event in events if isinstance(event, SubagentStarted) and event.session == session}
    return bool(calls) and all(_is_released(events, call, reviewed) for call in calls)


def _is_released(events: list[Event], call: str, reviewed: Collection[str]) -> bool:
    """Whether the result of a call was approved unchanged, or is not reviewed."""
    review_gate: Gate | None = None
    resolution: GateResolution | None = None
    tool, is_finished, is_reviewed = "", False, False
    for event in events:
        match event:
            case TurnStarted(options=options):
                is_reviewed = is_reviewed or options.review != "never"
            case CallStarted(call=name, tool=tool_name) if name == call:
                tool = tool_name
            case GateOpened(gate=gate) if gate.call == call and gate.kind == "result":
                review_gate, resolution = gate, None
            case GateResolved(gate=gate_name, resolution=resolution) if (
                review_gate is not None and gate_name == review_gate.id
            ):
                resolution = resolution
            case CallFinished(call=name) if name == call:
                is_finished = True
            case _:
                pass
    if review_gate is not None:
        whole = review_gate.output.text if review_gate.output is not None else ""
        return resolution is not None and resolution.allowed and resolution.text in (None, whole)
    return is_finished or not (is_reviewed or tool in reviewed)
