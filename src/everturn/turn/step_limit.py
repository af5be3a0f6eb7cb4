"""Step limit: asks a person whether a turn that has reached `max_steps` may take as many steps again."""

from __future__ import annotations

from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.decide import AskAtLimit
from everturn.core.events import Event
from everturn.core.gates import Gate
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import open_gate

TOOL = "step_limit"  # the name that stands where a gate of a call names its tool


async def open_limit_gate(run: ActiveTurn, action: AskAtLimit) -> None:
    """Open the gate; its arguments are the step limit that an approval sets."""
    state = run.state
    arguments = encode_canonical({"max_steps": action.max_steps})
    timeout = state.options.gate_timeout
    gate = Gate(
        id=f"{run.turn}.limit{state.max_steps}",
        turn=run.turn,
        call="",
        tool=TOOL,
        arguments=arguments,
        hash=hash_values(run.ledger.tenant, run.ledger.session, run.turn, TOOL, arguments),
        expires=run.now() + timeout if timeout else 0.0,
        kind="limit",
        session=run.ledger.session,
        why=f"the step limit is reached (max_steps={state.max_steps})",
    )
    events: list[Event] = await open_gate(run, gate)
    await run.commit(events)
