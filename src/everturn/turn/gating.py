"""A call → the question that is put to a person about it, bound to everything they are shown; and what follows from a no."""

from __future__ import annotations

from everturn.core.asking import Gate, GateKind, Verdict
from everturn.core.calls import Call
from everturn.core.canonical import digest
from everturn.core.events import CallSettled
from everturn.core.parts import CallState, Output
from everturn.core.policy import Rule
from everturn.turn.contexts import OneStep


def gate_for(
    ctx: OneStep,
    call: Call,
    kind: GateKind,
    tool: str,
    identity: str,
    arguments: str,
    why: str,
    offers: tuple[Rule, ...] = (),
    output: Output | None = None,
    session_only: bool = False,
) -> Gate:
    """A question about a call, bound to everything that is shown."""
    patience = ctx.run.state.options.gate_timeout
    return Gate(
        id=ctx.run.setup.ids.new("gate"),
        turn=ctx.turn,
        call=call.id,
        tool=tool,
        arguments=arguments,
        hash=bound_to(ctx, call, kind, tool, identity, arguments, output),
        expires=ctx.run.now() + patience if patience else 0.0,
        kind=kind,
        session=ctx.session,
        identity=identity,
        why=why,
        offers=offers,
        session_only=session_only,
        output=output,
        mark="" if kind == "result" else call.known_as,
    )


def bound_to(
    ctx: OneStep, call: Call, kind: str, tool: str, identity: str, arguments: str, output: Output | None = None
) -> str:
    """The hash of everything that is executed, or read: what a gate shows, an answer echoes and a start records."""
    return digest(ctx.run.ledger.tenant, ctx.session, ctx.turn, call.id, kind, tool, identity, arguments, output)


def denial_of(verdict: Verdict) -> str:
    """What a model is told of a no."""
    if verdict.by == "everturn":
        return f"This call was not allowed: {verdict.reason}."
    who = f"The plugin {verdict.by[7:]}" if verdict.by.startswith("plugin:") else "The person"
    reason = f" and said why: {verdict.reason}" if verdict.reason else ""
    return f"{who} did not allow this call{reason}."


def settled(ctx: OneStep, call: str, state: CallState, output: Output) -> CallSettled:
    """A call has its result."""
    return CallSettled(turn=ctx.turn, at=ctx.run.now(), call=call, state=state, output=output)
