"""Gates of calls: builds the gate for a call, bound by hash to everything it shows, and the denial that the model
reads.
"""

from __future__ import annotations

from everturn.core.calls import CallRecord
from everturn.core.canonical_json import hash_values
from everturn.core.events import CallFinished
from everturn.core.gates import Gate, GateKind, GateResolution
from everturn.core.parts import CallState, Output
from everturn.core.rules.policy import Rule
from everturn.running.hook_contexts import StepHookContext


def build_gate(
    ctx: StepHookContext,
    call: CallRecord,
    kind: GateKind,
    tool: str,
    identity: str,
    arguments: str,
    why: str,
    offers: tuple[Rule, ...] = (),
    output: Output | None = None,
    session_only: bool = False,
) -> Gate:
    """The gate for a call, bound by its hash to everything it shows."""
    timeout = ctx.run.state.options.gate_timeout
    return Gate(
        id=ctx.run.setup.ids.new("gate"),
        turn=ctx.turn,
        call=call.id,
        tool=tool,
        arguments=arguments,
        hash=hash_call(ctx, call, kind, tool, identity, arguments, output),
        expires=ctx.run.now() + timeout if timeout else 0.0,
        kind=kind,
        session=ctx.session,
        identity=identity,
        why=why,
        offers=offers,
        session_only=session_only,
        folder=ctx.run.state.options.folder if offers and not session_only else "",
        output=output,
        fingerprint="" if kind == "result" else call.fingerprint,
    )


def hash_call(
    ctx: StepHookContext,
    call: CallRecord,
    kind: str,
    tool: str,
    identity: str,
    arguments: str,
    output: Output | None = None,
) -> str:
    """The hash of everything that is executed or read: a gate shows it, an answer repeats it, a start records it."""
    return hash_values(ctx.run.ledger.tenant, ctx.session, ctx.turn, call.id, kind, tool, identity, arguments, output)


def denial_text(resolution: GateResolution) -> str:
    """The text that the model reads for a denial."""
    if resolution.by == "everturn":
        return f"This call was not allowed: {resolution.reason}."
    actor = f"The plugin {resolution.by[7:]}" if resolution.by.startswith("plugin:") else "The person"
    reason = f" and said why: {resolution.reason}" if resolution.reason else ""
    return f"{actor} did not allow this call{reason}."


def call_finished(ctx: StepHookContext, call: str, state: CallState, output: Output) -> CallFinished:
    """The event that finishes a call."""
    return CallFinished(turn=ctx.turn, at=ctx.run.now(), call=call, state=state, output=output)
