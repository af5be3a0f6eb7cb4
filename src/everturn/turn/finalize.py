"""An outcome → a turn that is over: every call has its one result, plugins are told, clean-ups have run, and the
terminal event is the last.
"""

from __future__ import annotations

from contextlib import suppress

from everturn import faults
from everturn.core.calls import Call
from everturn.core.commands import Cancel, Late, Send, Stir
from everturn.core.events import (
    CallSettled,
    Event,
    Problem,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnStarted,
)
from everturn.core.options import TurnOptions
from everturn.core.parts import CallState, Output
from everturn.errors import KeyConflict, UnknownSession, UnknownTurn
from everturn.turn.contexts import Context
from everturn.turn.descent import may_be_below, sessions_below
from everturn.turn.run import Run
from everturn.turn.supervisor import HandIn, Settlement

NEVER_RAN = "The turn ended before this call ran; it had no effect."
UNREAD = "The turn ended before anybody had read the result of this call. It did run."
NOBODY_READ = "This result came after its turn was over, when nobody was asked whether it may be read. It is withheld."
WAITED = "The turn ended while this call waited for somebody. It may have done a part of what it was to do."
STILL_RUNS = (
    "The turn ended while this call was running. Whether it took effect is not known; its result may come later."
)
LOST = "The turn ended after the process that ran this call had died. Whether it took effect is not known."
STOPPED = "The turn ended and this call was stopped while it was running. Whether it took effect is not known."


async def settle_incomplete(run: Run, reason: str) -> None:
    """Give calls that nobody will run their result."""
    output = Output(f'{{"status":"incomplete","reason":"{reason}"}}', code=reason)
    await run.commit([_settled(run, call, "failed", output) for call in run.state.open_calls])


async def finish(run: Run) -> None:
    """Bring a turn whose outcome is known to its end."""
    ending = run.state.ending
    assert ending is not None
    below = await _begun_below(run)
    if _is_quiet(run, ending):
        run.stage(_settle(run))
    else:
        await run.commit(lambda: _settle(run))
    faults.hit("turn.settled")
    if ending.hard:
        run.setup.supervisor.cancel(run.turn)
    else:
        run.setup.supervisor.detach(run.turn, _hand_in(run))
    run.stirs.ring()  # a tool that is held while it waits for somebody hears that nobody comes any more
    for cancel in below:
        await run.setup.hand_in(cancel)
    if ending.outcome == "error":
        problem = ending.problem or Problem("error", "the turn failed")
        reports = await run.report_hooks("on_error", Context(run), problem)
    else:
        reports = await run.report_hooks("on_turn_end", Context(run))
    faults.hit("turn.told")
    reports += await run.clean_up()
    faults.hit("turn.cleaned")
    await _stir_above(run)
    await run.commit([_terminal(run, ending, tuple(reports))])
    run.is_closed = True


async def _stir_above(run: Run) -> None:
    """Tell the call that waits for this turn, before it is over: told twice or too early does no harm, never does."""
    above = run.state.options.above
    if above is None or not run.state.has_parked or not above.by[0]:
        return
    session, turn, call = above.by
    key, tenant, now = f"stir:{run.turn}", run.ledger.tenant, run.now()
    # It may be gone, and nobody waits then; a store that does not answer stops this turn from ending, too.
    with suppress(UnknownSession, UnknownTurn, KeyConflict):
        await run.setup.admit(Stir(key=key, session=session, tenant=tenant, at=now, turn=turn, call=call))


async def _begun_below(run: Run) -> list[Cancel]:
    """How to end the sub-turns of a turn that ends: they are no tools that cannot be stopped."""
    found: list[Cancel] = []
    if not any(map(may_be_below, run.state.calls.values())):
        return found
    for session in await sessions_below(run.setup.store, run.session, [run.state]):
        asked = [command for command in await run.setup.store.inbox(session) if isinstance(command, Send)]
        options = {command.turn: command.options for command in asked}
        for turn in await run.setup.store.open_turns(session):
            first = (await run.setup.store.events(session, turn=turn))[0].event
            options[turn] = first.options if isinstance(first, TurnStarted) else TurnOptions()
        for turn, decided in options.items():
            if decided.above is not None and decided.above.is_detached:
                continue
            key, tenant, now = f"{run.turn}:ended", run.ledger.tenant, run.now()
            found.append(Cancel(key=f"{key}:{turn}", session=session, tenant=tenant, at=now, turn=turn, hard=True))
    return found


def _is_quiet(run: Run, ending: TurnEnding) -> bool:
    """Whether nobody has to do anything between how it ends and that it is over: then both are written together."""
    told = run.setup.hooks["on_error" if ending.outcome == "error" else "on_turn_end"]
    return not told and not run.cleanups and not run.setup.supervisor.running(run.turn)


def _settle(run: Run) -> list[Event]:
    """The results of calls that have none."""
    events: list[Event] = []
    is_hard = run.state.ending is not None and run.state.ending.hard
    held = run.setup.supervisor.running(run.turn)
    for call in run.state.open_calls:
        text = STOPPED if is_hard else STILL_RUNS
        if call.state != "running":
            text = {"reviewing": UNREAD, "waiting": WAITED}.get(call.state, NEVER_RAN)
        # Only a tool this process holds can bring anything later; what another one held died with it.
        is_out = call.id in held and call.state == "running" and not is_hard and run.state.options.late != "discard"
        if call.state == "running" and call.id not in held:
            text = LOST
        events.append(_settled(run, call, "cancelled", Output(text, code="cancelled"), is_out))
    return events


def _settled(run: Run, call: Call, state: CallState, output: Output, out: bool = False) -> CallSettled:
    return CallSettled(turn=run.turn, at=run.now(), call=call.id, state=state, output=output, out=out)


def _hand_in(run: Run) -> HandIn:
    """How a tool that outlives this turn hands in its result: durably, through the front door."""
    session, turn, setup, tenant = run.session, run.turn, run.setup, run.ledger.tenant

    async def hand_in(call: str, settlement: Settlement) -> None:
        if run.state.options.late != "discard":
            late = Late(
                key=f"late:{call}",
                session=session,
                tenant=tenant,
                at=setup.clock.now(),
                turn=turn,
                call=call,
                output=await _let_through(run, settlement),
            )
            await setup.hand_in(late)

    return hand_in


async def _let_through(run: Run, settlement: Settlement) -> Output:
    """A late result; what a person should have read first no model reads at all."""
    output = settlement.output
    if not settlement.is_for_people:
        return output
    kept = output.blob or await run.setup.store.put_blob(output.text.encode())
    return Output(NOBODY_READ, output.title, "withheld", kept, origin=output.origin)


def _terminal(run: Run, ending: TurnEnding, reports: tuple[Problem, ...]) -> Event:
    turn, at, usage = run.turn, run.now(), run.state.usage
    if ending.outcome == "completed":
        return TurnCompleted(turn=turn, at=at, usage=usage, reports=reports)
    if ending.outcome == "cancelled":
        return TurnCancelled(turn=turn, at=at, usage=usage, reports=reports)
    problem = ending.problem or Problem("error", "the turn failed")
    return TurnFailed(turn=turn, at=at, problem=problem, usage=usage, reports=reports)
