"""Result review: opens a gate for a result that a person reads before the model, and finishes the call after it."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.calls.gates import build_gate, call_finished
from everturn.core.calls import CallRecord
from everturn.core.events import Event
from everturn.core.parts import CallState, Output
from everturn.running.hook_contexts import StepHookContext, open_gate
from everturn.running.tool_tasks import ToolOutcome


async def open_review_gate(ctx: StepHookContext, call: CallRecord, done: ToolOutcome) -> list[Event]:
    """The events that open a review gate, if a person must review this result."""
    started, decision, succeeded = call.started, call.decision, done.state == "completed"
    if started is None or decision is None or not done.needs_review:
        return []
    why = "its result needs review" if succeeded else "it failed, and the error needs review"
    gate = build_gate(ctx, call, "result", started.tool, decision.identity, started.arguments, why, output=done.output)
    return await open_gate(ctx.run, gate if succeeded else replace(gate, failed=True))


def finish_reviewed_call(ctx: StepHookContext, call: CallRecord) -> list[Event]:
    """The event with the reviewed result; nothing until the gate is resolved."""
    resolution, gate = call.reviewed, call.review
    if resolution is None or gate is None or gate.output is None:
        return []
    # The person has read only the excerpt, so the full text stays with the gate: no reference leads to it.
    shown = replace(gate.output, blob="")
    if not resolution.allowed:
        cause = "Nobody read this result in time" if resolution.by == "everturn" else "The person withheld this result"
        reason = f" and said why: {resolution.reason}" if resolution.reason and resolution.by != "everturn" else ""
        text = f"{cause}{reason}. The call did run."
        return [call_finished(ctx, call.id, "withheld", Output(text, code="withheld", origin=shown.origin))]
    state: CallState = "failed" if gate.failed else "completed"
    if resolution.text is not None and resolution.text != shown.text:
        # Redacted content must not come back through another field.
        shown = Output(
            resolution.text,
            title=shown.title,
            code=shown.code,
            origin=shown.origin,
            untrusted=shown.untrusted,
            private=shown.private,
            sensitive=shown.sensitive,
            redacted=True,
        )
    return [call_finished(ctx, call.id, state, shown)]
