"""Finalization: ends a turn whose outcome is known. It finishes open calls, runs end hooks and clean-ups, and writes
the terminal event last.
"""

from __future__ import annotations

import logging
from contextlib import suppress

import msgspec

from everturn import failpoints
from everturn.core.calls import CallRecord, stop_output
from everturn.core.commands import Cancel, LateResult, NotifyCall, Send
from everturn.core.events import (
    CallFinished,
    Event,
    Problem,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.options import TurnOptions
from everturn.core.parts import CallState, Output
from everturn.core.tool import StoppedCall
from everturn.errors import KeyConflict, UnknownSession, UnknownTurn
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import HookContext
from everturn.running.subagent_index import active_subagent_sessions, may_have_active_subagents
from everturn.running.tool_tasks import LateResultCallback, ToolOutcome

log = logging.getLogger(__name__)

NEVER_RAN = "The turn ended before this call ran; it had no effect."
UNREVIEWED = "The turn ended before a person reviewed the result of this call. It did run."
LATE_UNREVIEWED = "This result arrived after its turn had ended, so no person could review it. It is withheld."
ENDED_WHILE_WAITING = "The turn ended while this call was waiting. It may have done a part of its work."
STILL_RUNS = (
    "The turn ended while this call was running. Whether it took effect is not known; its result may come later."
)
ENDED_PROCESS_DIED = (
    "The turn ended after the process that ran this call had died. Whether it took effect is not known."
)
ENDED_TOOL_STOPPED = (
    "The turn ended and this call was stopped while it was running. Whether it took effect is not known."
)


async def finish_incomplete_calls(run: ActiveTurn, reason: str) -> None:
    """Finish calls that no plugin will run."""
    if reason == "stopped":
        await run.commit([_call_finished(run, call, "denied", stop_output(call)) for call in run.state.open_calls])
        return
    output = Output(f'{{"status":"incomplete","reason":"{reason}"}}', code=reason)
    await run.commit([_call_finished(run, call, "failed", output) for call in run.state.open_calls])


async def finalize_turn(run: ActiveTurn) -> None:
    """End a turn whose outcome is known."""
    ending = run.state.ending
    assert ending is not None
    cancels = await _cancel_subagents(run)
    stopped = _calls_to_stop(run) if ending.hard else []
    if _is_quiet(run, ending):
        run.stage(_finish_open_calls(run))
    else:
        await run.commit(lambda: _finish_open_calls(run))
    failpoints.hit_failpoint("turn.calls_finished")
    if ending.hard:
        run.setup.tool_tasks.cancel(run.turn)
        if stopped:
            run.setup.tool_tasks.run_detached(_stop_calls(run, stopped))
    else:
        run.setup.tool_tasks.detach(run.turn, _late_result_callback(run))
    run.tool_notifier.notify()  # a tool that is held in memory while it waits learns that no answer will come
    for cancel in cancels:
        await run.setup.app.deliver(cancel)
    if ending.outcome == "error":
        problem = ending.problem or Problem("error", "the turn failed")
        reports = await run.report_hooks("on_error", HookContext(run), problem)
    else:
        reports = await run.report_hooks("on_turn_end", HookContext(run))
    failpoints.hit_failpoint("turn.told")
    reports += await run.clean_up()
    failpoints.hit_failpoint("turn.cleaned")
    await _notify_parent(run)
    await run.commit([_terminal_event(run, ending, tuple(reports))])
    run.is_closed = True


async def _notify_parent(run: ActiveTurn) -> None:
    """Notify the call that waits for this sub-agent run, before the run is over.

    A repeated or early notification is harmless; a missing one is not.
    """
    above = run.state.options.lineage
    if above is None or not run.state.has_suspended or not above.by[0]:
        return
    session, turn, call = above.by
    key, tenant, now = f"stir:{run.turn}", run.ledger.tenant, run.now()
    # If the parent is gone, no call waits. If the store is unavailable, this turn cannot end either.
    with suppress(UnknownSession, UnknownTurn, KeyConflict):
        await run.setup.app.command(NotifyCall(key=key, session=session, tenant=tenant, at=now, turn=turn, call=call))


async def _cancel_subagents(run: ActiveTurn) -> list[Cancel]:
    """Cancel commands for the active sub-agent runs of a turn that ends: unlike tools, they can always be stopped."""
    cancels: list[Cancel] = []
    if not any(map(may_have_active_subagents, run.state.calls.values())):
        return cancels
    for session in await active_subagent_sessions(run.setup.store, run.session, [run.state]):
        sends = [command for command in await run.setup.store.inbox(session) if isinstance(command, Send)]
        options = {command.turn: command.options for command in sends}
        for turn in await run.setup.store.open_turns(session):
            first = (await run.setup.store.events(session, turn=turn))[0].event
            options[turn] = first.options if isinstance(first, TurnStarted) else TurnOptions()
        for turn, turn_options in options.items():
            if turn_options.lineage is not None and turn_options.lineage.is_detached:
                continue
            key, tenant, now = f"{run.turn}:ended", run.ledger.tenant, run.now()
            cancels.append(Cancel(key=f"{key}:{turn}", session=session, tenant=tenant, at=now, turn=turn, hard=True))
    return cancels


def _calls_to_stop(run: ActiveTurn) -> list[tuple[str, StoppedCall]]:
    """The open calls whose steps may have started something elsewhere, with the names of their tools."""
    found: list[tuple[str, StoppedCall]] = []
    for call in run.state.open_calls:
        steps = {
            name: msgspec.json.decode(step.value)
            for name, step in call.tool_steps.items()
            if step is not None and not step.failed and step.value
        }
        if call.started is not None and steps:
            stopped = StoppedCall(
                session=run.session,
                turn=run.turn,
                call=call.id,
                tenant=run.ledger.tenant,
                by=run.state.options.by,
                steps=steps,
            )
            found.append((call.started.tool, stopped))
    return found


async def _stop_calls(run: ActiveTurn, stopped: list[tuple[str, StoppedCall]]) -> None:
    """Tell the tools of hard-cancelled calls. It is not repeated after a crash."""
    for name, call in stopped:
        tool = await run.setup.app.wait_for_tool(name)
        stop = getattr(tool, "stop", None)
        if stop is None:
            continue
        try:
            await stop(call)
        except Exception as error:
            log.warning(
                "call %s of %s was cancelled, and could not be stopped where it runs: %s", call.call, name, error
            )


def _is_quiet(run: ActiveTurn, ending: TurnFinishing) -> bool:
    """Whether no hook, clean-up or tool is left: then `TurnFinishing` and the terminal event are written together."""
    end_hooks = run.setup.hooks["on_error" if ending.outcome == "error" else "on_turn_end"]
    return not end_hooks and not run.cleanups and not run.setup.tool_tasks.running_calls(run.turn)


def _finish_open_calls(run: ActiveTurn) -> list[Event]:
    """The events that finish the open calls."""
    events: list[Event] = []
    is_hard = run.state.ending is not None and run.state.ending.hard
    running = run.setup.tool_tasks.running_calls(run.turn)
    for call in run.state.open_calls:
        text = ENDED_TOOL_STOPPED if is_hard else STILL_RUNS
        if call.state != "running":
            text = {"reviewing": UNREVIEWED, "waiting": ENDED_WHILE_WAITING}.get(call.state, NEVER_RAN)
        # Only a tool of this process can deliver a late result; tools of another process died with it.
        is_out = call.id in running and call.state == "running" and not is_hard and run.state.options.late != "discard"
        if call.state == "running" and call.id not in running:
            text = ENDED_PROCESS_DIED
        events.append(_call_finished(run, call, "cancelled", Output(text, code="cancelled"), is_out))
    return events


def _call_finished(
    run: ActiveTurn, call: CallRecord, state: CallState, output: Output, out: bool = False
) -> CallFinished:
    return CallFinished(turn=run.turn, at=run.now(), call=call.id, state=state, output=output, still_running=out)


def _late_result_callback(run: ActiveTurn) -> LateResultCallback:
    """The callback with which a tool that outlives this turn delivers its result: as a durable command."""
    session, turn, setup, tenant = run.session, run.turn, run.setup, run.ledger.tenant

    async def deliver(call: str, outcome: ToolOutcome) -> None:
        if run.state.options.late != "discard":
            late = LateResult(
                key=f"late:{call}",
                session=session,
                tenant=tenant,
                at=setup.clock.now(),
                turn=turn,
                call=call,
                output=await _late_output(run, outcome),
            )
            await setup.app.deliver(late)

    return deliver


async def _late_output(run: ActiveTurn, outcome: ToolOutcome) -> Output:
    """The output of a late result; one that a person should have reviewed is withheld."""
    output = outcome.output
    if not outcome.needs_review:
        return output
    blob = output.blob or await run.setup.store.put_blob(output.text.encode())
    return Output(LATE_UNREVIEWED, output.title, "withheld", blob, origin=output.origin)


def _terminal_event(run: ActiveTurn, ending: TurnFinishing, reports: tuple[Problem, ...]) -> Event:
    turn, at, usage = run.turn, run.now(), run.state.usage
    if ending.outcome == "completed":
        return TurnCompleted(turn=turn, at=at, usage=usage, reports=reports)
    if ending.outcome == "cancelled":
        return TurnCancelled(turn=turn, at=at, usage=usage, reports=reports)
    problem = ending.problem or Problem("error", "the turn failed")
    return TurnFailed(turn=turn, at=at, problem=problem, usage=usage, reports=reports)
