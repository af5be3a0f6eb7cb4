"""A result that a person reads before the model does: it waits at a gate, and nothing of it goes anywhere until then."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.calls import Call
from everturn.core.events import Event
from everturn.core.parts import CallState, Output
from everturn.turn.contexts import OneStep, open_gate
from everturn.turn.gating import gate_for, settled
from everturn.turn.supervisor import Settlement


async def review(ctx: OneStep, call: Call, done: Settlement) -> list[Event]:
    """Open a gate for a result, where somebody is to read it first."""
    started, judged, worked = call.started, call.judged, done.state == "completed"
    if started is None or judged is None or not done.is_for_people:
        return []
    why = "its result is read by a person first" if worked else "it failed, and that is read by a person first"
    gate = gate_for(ctx, call, "result", started.tool, judged.identity, started.arguments, why, output=done.output)
    return await open_gate(ctx.run, gate if worked else replace(gate, failed=True))


def after_review(ctx: OneStep, call: Call) -> list[Event]:
    """The result as the person let it through; nothing while they have not."""
    verdict, gate = call.reviewed, call.review
    if verdict is None or gate is None or gate.output is None:
        return []
    # What was left out of the excerpt nobody has read, so it stays with the gate: no reference leads to it.
    shown = replace(gate.output, blob="")
    if not verdict.allowed:
        who = "Nobody read this result in time" if verdict.by == "everturn" else "The person withheld this result"
        reason = f" and said why: {verdict.reason}" if verdict.reason and verdict.by != "everturn" else ""
        text = f"{who}{reason}. The call did run."
        return [settled(ctx, call.id, "withheld", Output(text, code="withheld", origin=shown.origin))]
    state: CallState = "failed" if gate.failed else "completed"
    if verdict.text is not None and verdict.text != shown.text:
        # What was taken out must not come back by another way.
        shown = Output(
            verdict.text,
            title=shown.title,
            code=shown.code,
            origin=shown.origin,
            untrusted=shown.untrusted,
            private=shown.private,
            sensitive=shown.sensitive,
            redacted=True,
        )
    return [settled(ctx, call.id, state, shown)]
