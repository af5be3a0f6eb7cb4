"""The turn loop: the only module that knows the order of the stages.

    prepare → request → stream ⇄ tools → finalize

Recovery after a crash uses the same code: `decide` derives the next action from the log, in any process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec.structs import replace

from everturn import failpoints
from everturn.core.canonical_json import replace_surrogates
from everturn.core.events import (
    Event,
    HookFinished,
    LimitReached,
    Outcome,
    Problem,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnFinishing,
    TurnSuspended,
)
from everturn.core.hooks import SUSPEND
from everturn.core.parts import Finish, StreamedPart, TextPart, ToolPart
from everturn.core.requests import ToolSpec
from everturn.core.state import (
    AfterRequest,
    Finalize,
    FinishIncompleteCalls,
    RequestModel,
    StartAnswer,
    StepState,
    TurnAction,
    TurnDone,
    WaitForInput,
    WriteDeferred,
    decide,
)
from everturn.errors import DriverLost, ModelError, Stale, TurnError
from everturn.running import budget
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import HookContext, StepHookContext, run_append_hooks
from everturn.running.plugin_table import Hook
from everturn.turn import finalize, prepare, request, steering, stream

log = logging.getLogger(__name__)

SHUTDOWN_GRACE = 1.0  # seconds for the work of a turn to end when its process stops
CANCEL_GRACE = 0.05  # seconds for the work of a cancelled turn to end; after that it is abandoned


async def drive_turn(run: ActiveTurn) -> None:
    """Drive a turn until it ends or waits, then release it."""
    supervisor = run.setup.tool_tasks
    supervisor.watch(run.turn, run.tool_notifier.notify)
    supervisor.set_active_turn(run.turn, run)
    try:
        # A turn that only has to end does not run `on_turn_start` again: no plugin could change its outcome.
        if run.state.ending is None:
            await _work(run)
        if run.state.ending is not None and not run.state.phase.is_terminal:
            await finalize.finalize_turn(run)
    finally:
        run.is_closed = True
        run.tool_notifier.notify()  # tools that wait for this turn check which drive has it now
        supervisor.unwatch(run.turn, run.tool_notifier.notify)
        is_last = supervisor.active_turn(run.turn) is run
        if is_last and (run.state.phase.is_terminal or not supervisor.running_calls(run.turn)):
            supervisor.set_active_turn(run.turn, None)
        await run.clean_up()


async def _work(run: ActiveTurn) -> None:
    """Advance in a separate task, so that a cancel stops the running work and nothing else."""
    work = asyncio.get_running_loop().create_task(_advance_and_release(run))
    run.begin(work, CANCEL_GRACE)
    try:
        await run.work_done  # done when the work ends, or when it ignores a cancel
    except asyncio.CancelledError:  # this process stops; the turn continues on another node
        work.cancel()
        await asyncio.wait({work}, timeout=SHUTDOWN_GRACE)
        raise
    if not work.done():
        log.warning("turn %s: something ignores the cancel and is left behind", run.turn)
        work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    error = work.exception() if work.done() and not work.cancelled() else None
    if work.cancelled() and not run.is_cancelled and run.timeout_problem is None:
        error = TurnError("the turn's work was cancelled from within", kind="internal")
    if isinstance(error, Stale | DriverLost) or (error is not None and not isinstance(error, Exception)):
        raise error
    if (cancel := run.cancel_request) is not None:  # then any error counts as that cancellation
        _stage_ending(run, "cancelled", "cancelled", hard=cancel.hard, command=cancel.key)
    elif run.timeout_problem is not None:
        _stage_ending(run, "error", "error", run.timeout_problem)
    elif error is not None:
        run.setup.tool_tasks.keep_error(run.turn, error)
        _stage_ending(run, "error", "error", _problem(error))


def _stage_ending(
    run: ActiveTurn,
    outcome: Outcome,
    finish: Finish,
    problem: Problem | None = None,
    hard: bool = False,
    command: str = "",
) -> None:
    """Stage how the turn ends, and before that the parts of an interrupted step."""
    turn, at, step = run.turn, run.now(), run.state.step
    if run.state.ending is not None:
        return
    ending = TurnFinishing(turn=turn, at=at, outcome=outcome, problem=problem, hard=hard, command=command)
    if step is not None and step.is_open and run.assembly is not None:
        parts = run.assembly.parts()
        if parts or problem is not None:  # not if the turn was cancelled before anything arrived
            usage = run.assembly.usage
            run.stage(
                [
                    StepInterrupted(
                        turn=turn, at=at, step=step.number, parts=parts, finish=finish, problem=problem, usage=usage
                    )
                ]
            )
    run.stage([ending])  # the events that finish its calls are written with it


def _problem(error: BaseException) -> Problem:
    if isinstance(error, TurnError | ModelError):
        log.info("the turn failed", exc_info=error)
        return Problem(error.kind, replace_surrogates(str(error)))
    log.error("the turn failed", exc_info=error)
    return Problem("internal", replace_surrogates(f"{type(error).__name__}: {error}"))


async def _advance_and_release(run: ActiveTurn) -> None:
    try:
        await _advance(run)
    finally:
        run.release_waiter()  # at once, and not in a done callback: that would run one iteration of the event loop later


async def _advance(run: ActiveTurn) -> None:
    """Carry out the actions of `decide`, until there is nothing to do."""
    await _start(run)
    while True:
        match action := await _next_action(run):
            case StartAnswer():
                await prepare.start_answer(run)
            case RequestModel():
                if run.is_releasing and not action.again:
                    await run.commit([])
                    return
                await _step_unless_limited(run, action)
            case FinishIncompleteCalls(reason=reason):
                await finalize.finish_incomplete_calls(run, reason)
            case AfterRequest(plugins=plugins):
                await _after_request(run, plugins)
            case WriteDeferred(appends=appends):
                for append in appends:
                    await run.add_message(append, lambda message: run_append_hooks(run, message))
            case Finalize(outcome=outcome, problem=problem):
                _stage_ending(run, outcome, "error", problem)
                return
            case WaitForInput() | TurnDone():
                await run.commit([])  # staged events may be all there is
                return


async def _next_action(run: ActiveTurn) -> TurnAction:
    """The next action, after steering messages have joined if they may."""
    while True:
        action = decide(run.state, run.setup.hooks.after_request)
        if failpoints.is_active():
            failpoints.hit_failpoint(f"decide.{type(action).__name__}")
        if not run.steering_messages or not await steering.join_steering_messages(run, action):
            return action


async def _step_unless_limited(run: ActiveTurn, action: RequestModel) -> None:
    limit = None if action.again or action.closing else await budget.find_reached_limit(run)
    if limit is not None:
        run.stage([limit])
    else:
        await _step(run, action)


async def _start(run: ActiveTurn) -> None:
    """Run `on_turn_start`, whenever a process takes over the turn; the clean-ups it returns run when it releases it."""
    ctx = HookContext(run)
    for plugin, method in run.setup.hooks["on_turn_start"]:
        cleanup = await run.call_hook(plugin, "on_turn_start", method, ctx)
        if cleanup is not None:
            run.cleanups.append((plugin, cleanup))


async def _step(run: ActiveTurn, action: RequestModel) -> None:
    """Run one step: a model request, from `StepStarted` to its parts in the log."""
    if not action.again and action.step > 1 and await prepare.report_late_results(run):
        return  # the notice follows the answer so far: `decide` starts the next answer
    turn, now = run.turn, run.now()
    started = (
        StepRestarted(turn=turn, at=now, step=action.step)
        if action.again
        else StepStarted(turn=turn, at=now, step=action.step, closing=action.closing)
    )
    seq = await run.commit([started])
    # If the limit is not the turn's own, no request may be spent on a closing answer: the runtime writes it.
    if action.closing and (limit := run.state.limit) is not None and (action.step == 1 or limit.scope != "turn"):
        _answer_with_limit(run, limit, action.step)
        return
    history = await run.read_history()
    failpoints.hit_failpoint("history.read")
    body = await request.build_request(run, history, await prepare.load_user_message(run), action.step, action.closing)
    failpoints.hit_failpoint("request.built")
    assembly = run.assembly = stream.StepAssembly(turn, action.step, seq)
    await stream.stream_step(run, body, assembly)
    finished = StepFinished(
        turn=turn,
        at=run.now(),
        step=action.step,
        parts=_with_identities(run, assembly.parts(), body.tools),
        finish=assembly.finish or "other",
        usage=assembly.usage,
    )
    run.stage([finished])  # the next action begins with a commit
    run.assembly = None


def _answer_with_limit(run: ActiveTurn, limit: LimitReached, step: int) -> None:
    """Finish a step without a model request: its text is the limit that was reached."""
    how_far = "nothing was done" if step == 1 else "this is as far as it got"
    parts = (TextPart(f"{limit.text[0].upper()}{limit.text[1:]}; {how_far}."),)
    run.stage([StepFinished(turn=run.turn, at=run.now(), step=step, parts=parts, finish="stop")])


def _with_identities(
    run: ActiveTurn, parts: tuple[StreamedPart, ...], offered: Sequence[ToolSpec]
) -> tuple[StreamedPart, ...]:
    """Set in each call part the identity of the tool that was offered under its name."""
    if not any(type(part) is ToolPart for part in parts):
        return parts
    identities = {spec.name: run.setup.permissions.identity(spec) for spec in offered}
    return tuple(
        replace(part, identity=identities[part.name]) if type(part) is ToolPart and part.name in identities else part
        for part in parts
    )


async def _after_request(run: ActiveTurn, plugins: Sequence[str]) -> None:
    """Call `on_after_request` of these plugins concurrently; suspend the turn when all that are not done wait."""
    step = run.state.step
    assert step is not None
    methods = {name: method for name, method in run.setup.hooks["on_after_request"] if name in plugins}
    if len(methods) == 1:
        await _call_alone(run, step, *methods.popitem())
        return
    await run.commit([])  # plugins act on events that are written
    heard: dict[str, int] = {}  # plugin that is not done -> number of arrivals at its last call
    tasks: dict[str, tuple[StepHookContext, asyncio.Task[object]]] = {}
    seen = run.hook_notifier.count
    try:
        while True:
            for name, method in methods.items():
                if name not in tasks and heard.get(name, -1) < run.arrivals:
                    heard[name] = run.arrivals
                    ctx = StepHookContext(run, step, name)
                    work = run.call_hook(name, "on_after_request", method, ctx)
                    tasks[name] = ctx, asyncio.get_running_loop().create_task(work)
                    tasks[name][1].add_done_callback(lambda _: run.hook_notifier.notify())
            if not tasks:
                break
            await run.hook_notifier.wait_beyond(seen)
            # Before the check, or a plugin that ends during the commit would be missed.
            seen = run.hook_notifier.count
            done = [name for name in methods if name in tasks and tasks[name][1].done()]
            ended = [ctx for name in done for ctx, task in [tasks.pop(name)] if task.result() is not SUSPEND]
            await run.commit([_hook_finished(run, step.number, ctx) for ctx in ended])
            for ctx in ended:
                del methods[ctx.plugin]
    finally:
        await _stop(run, [task for _, task in tasks.values()])
    if methods:
        await _suspend(run, step.number, min(heard[name] for name in methods))


async def _call_alone(run: ActiveTurn, step: StepState, name: str, method: Hook) -> None:
    """The same for a single plugin, the usual case: without a task, a step costs a fifth less."""
    writes_first = name in run.setup.hooks.writes_first
    if not writes_first:
        await run.commit([])  # it may have effects based on what it reads
    while True:
        heard = run.arrivals
        ctx = StepHookContext(run, step, name, is_followed=writes_first)
        if await run.call_hook(name, "on_after_request", method, ctx) is not SUSPEND:
            run.stage([_hook_finished(run, step.number, ctx)])
            return
        if run.arrivals == heard:
            await _suspend(run, step.number, heard)
            return


async def _stop(run: ActiveTurn, tasks: Sequence[asyncio.Task[object]]) -> None:
    if tasks:
        async with run.ledger.write_lock:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _hook_finished(run: ActiveTurn, step: int, ctx: StepHookContext) -> HookFinished:
    return HookFinished(turn=run.turn, at=run.now(), step=step, plugin=ctx.plugin, deferred=tuple(ctx.deferred))


async def _suspend(run: ActiveTurn, step: int, heard: int) -> None:
    """Suspend the turn, unless something arrived in the meantime."""

    def events() -> Sequence[Event]:
        return [] if run.arrivals > heard else [TurnSuspended(turn=run.turn, at=run.now(), step=step)]

    await run.commit(events)
