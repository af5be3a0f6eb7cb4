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
from everturn.core.decide import (
    AfterRequest,
    AskAtLimit,
    Compact,
    Finalize,
    FinishIncompleteCalls,
    RequestModel,
    StartAnswer,
    TurnAction,
    TurnDone,
    WaitForInput,
    WriteDeferred,
    decide,
)
from everturn.core.events import (
    CompactionStarted,
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
from everturn.core.requests import ModelRequest, ToolSpec
from everturn.core.state import StepState
from everturn.errors import DriverLost, ModelError, Stale, TurnError
from everturn.running import budget
from everturn.running.active_turn import ActiveTurn
from everturn.running.guardrail_contexts import StartHookContext, resolve_overflow
from everturn.running.hook_contexts import StepHookContext, run_append_hooks
from everturn.running.plugin_table import Hook
from everturn.turn import (
    compaction,
    finalize,
    input_check,
    output_check,
    prepare,
    request,
    steering,
    step_limit,
    stream,
    title,
    typed_output,
)
from everturn.turn.cache_collapse import find_cache_collapse
from everturn.turn.continuation import judge_cut
from everturn.turn.provider_wait import LimitDuringWait
from everturn.turn.text_loop import find_text_loop

log = logging.getLogger(__name__)

SHUTDOWN_GRACE = 1.0  # seconds for the work of a turn to end when its process stops
OVERFLOW_RETRIES = 3  # requests of a step, in one process, that are sent again after `on_overflow`
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
            if run.state.ending.outcome == "completed":
                await title.write_title(run)
            await finalize.finalize_turn(run)
    finally:
        run.is_closed = True
        run.tool_notifier.notify()  # tools that wait for this turn check which drive has it now
        supervisor.unwatch(run.turn, run.tool_notifier.notify)
        is_last = supervisor.active_turn(run.turn) is run
        if is_last and (run.state.phase.is_terminal or not supervisor.running_calls(run.turn)):
            supervisor.set_active_turn(run.turn, None)
        await run.clean_up()
        await run.release_dependencies()


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
    if problem is not None and not problem.phase:
        problem = replace(problem, phase=run.work_phase)
    ending = TurnFinishing(turn=turn, at=at, outcome=outcome, problem=problem, hard=hard, command=command)
    if step is not None and step.is_open and run.assembly is not None:
        parts = run.assembly.parts()
        if run.assembly.shows_unchecked:  # readers drop what no plugin has passed
            run.stage([StepRestarted(turn=turn, at=at, step=step.number)])
        if parts or problem is not None:  # not if the turn was cancelled before anything arrived
            run.stage(
                [
                    StepInterrupted(
                        turn=turn,
                        at=at,
                        step=step.number,
                        parts=parts,
                        finish=finish,
                        problem=problem,
                        usage=run.assembly.usage,
                        model=run.assembly.model,
                        first_chunk_at=run.assembly.first_chunk_at,
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


async def _advance(run: ActiveTurn) -> None:  # noqa: C901 - one branch for each action
    """Carry out the actions of `decide`, until there is nothing to do."""
    await _begin(run)
    if run.setup.client_hooks is not None and run.state.calls:  # taken over: are they calls of `read_document`?
        await run.read_history()
    while True:
        match action := await _next_action(run):
            case StartAnswer():
                run.work_phase = "prepare"
                await prepare.start_answer(run)
            case RequestModel():
                if run.is_releasing and not action.again:
                    await run.commit([])
                    return
                await _step_unless_limited(run, action)
            case Compact(started=started):
                if not await _compact(run, started):
                    return
            case FinishIncompleteCalls(reason=reason):
                run.work_phase = "tools"
                await finalize.finish_incomplete_calls(run, reason)
            case AskAtLimit():
                run.work_phase = "tools"
                await _ask_at_limit(run, action)
            case AfterRequest(plugins=plugins):
                run.work_phase = "tools"
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


async def _ask_at_limit(run: ActiveTurn, action: AskAtLimit) -> None:
    """Ask whether to continue at the step limit; suspend the turn when that was asked."""
    arrivals, step = run.arrivals, run.state.step
    assert step is not None
    if action.gate:
        await _suspend(run, step.number, arrivals)
    else:
        await step_limit.open_limit_gate(run, action)


async def _begin(run: ActiveTurn) -> None:
    """Let plugins check the input and start; a turn that only compacts its branch has no input, and answers nothing."""
    if run.state.options.compact is None:
        if run.setup.hooks["on_input"]:
            await run.commit([])  # the turn itself may be staged
        await input_check.check_turn_input(run)
        if run.state.refusal is None:
            await _start(run)


async def _compact(run: ActiveTurn, started: CompactionStarted | None) -> bool:
    """Write the summary that was started, or start the one that the turn is for; False if the turn has nothing to do."""
    run.work_phase = "request"
    if started is not None:
        await compaction.run_compaction(run, started)
    elif not await compaction.compact_on_command(run):
        _stage_ending(run, "completed", "stop")
        return False
    return True


async def _next_action(run: ActiveTurn) -> TurnAction:
    """The next action, after steering messages have joined if they may."""
    while True:
        if run.agent != run.state.options.agent:
            await run.commit([])  # the next agent acts on events that are written
            await run.follow_agent()
        action = decide(run.state, run.setup.hooks.after_request)
        if failpoints.is_active():
            failpoints.hit_failpoint(f"decide.{type(action).__name__}")
        if run.steering_messages and await steering.join_steering_messages(run, action):
            continue
        if not isinstance(action, StartAnswer | RequestModel) or not await compaction.fit_context(run, action):
            return action


async def _step_unless_limited(run: ActiveTurn, action: RequestModel) -> None:
    has_no_request = action.again or action.closing or run.state.refusal is not None
    limit = None if has_no_request or not budget.has_limits(run) else await budget.find_reached_limit(run)
    if limit is not None:
        run.stage([limit])
    else:
        await _step(run, action)


async def _start(run: ActiveTurn) -> None:
    """Run `on_turn_start`, whenever a process takes over the turn; the clean-ups it returns run when it releases it."""
    if run.setup.hooks["on_turn_start"]:
        await run.commit([])
    await run.open_dependencies()
    for plugin, method in run.setup.hooks["on_turn_start"]:
        ctx = StartHookContext(run, plugin)
        try:
            cleanup = await run.call_hook(plugin, "on_turn_start", method, ctx)
        finally:
            ctx.close()
        if cleanup is not None:
            run.cleanups.append((plugin, cleanup))


async def _step(run: ActiveTurn, action: RequestModel) -> None:
    """Run one step: a model request, from `StepStarted` to its parts in the log."""
    may_report = not action.again and action.step > 1 and not (run.state.step and run.state.step.awaits_provider)
    if may_report and await prepare.report_late_results(run):
        return  # the notice follows the answer so far: `decide` starts the next answer
    if not action.again:
        await prepare.render_instructions(run)  # of an agent that was handed the turn
    turn, now, run.work_phase = run.turn, run.now(), "request"
    started = (
        StepRestarted(turn=turn, at=now, step=action.step)
        if action.again
        else StepStarted(
            turn=turn,
            at=now,
            step=action.step,
            closing=action.closing,
            instructions=await prepare.render_step_instructions(run),
        )
    )
    seq = await run.commit([started])
    # If the limit is not the turn's own, no request may be spent on a closing answer: the runtime writes it.
    if action.closing and (limit := run.state.limit) is not None and (action.step == 1 or limit.scope != "turn"):
        _answer_with_limit(run, limit, action.step)
        return
    if (refusal := run.state.refusal) is not None:
        parts = (TextPart(refusal.text),)
        run.stage([StepFinished(turn=turn, at=run.now(), step=action.step, parts=parts, finish="stop")])
        return
    body = await _build_request(run, action)
    if run.is_over_window and run.context_limits is not None:
        raise compaction.overflow_error(body, None, run.context_limits.window)
    run.work_phase = "stream"
    try:
        assembly, check, body = await _stream(run, body, action, seq)
    except LimitDuringWait as reached:
        run.stage([reached.limit])
        _answer_with_limit(run, reached.limit, action.step)
        run.assembly = None
        return
    parts, refused = assembly.parts(), ""
    if check is not None:
        parts, drops_shown = await check.conclude()
        refused = check.refusal[1] if check.refusal is not None else ""
        if drops_shown:
            run.stage([StepRestarted(turn=turn, at=run.now(), step=action.step)])
    continues, cut_off = (False, "") if refused else judge_cut(run, body, parts, assembly.finish)
    loop = await find_text_loop(run, parts)
    finished = StepFinished(
        turn=turn,
        at=run.now(),
        step=action.step,
        parts=_with_identities(run, parts, body.tools),
        finish="stop" if refused else assembly.finish or "other",
        usage=assembly.usage,
        model=assembly.model,
        first_chunk_at=assembly.first_chunk_at,
        refused=refused,
        warning="; ".join(filter(None, (run.warning, cut_off, loop))),
        continues=continues,
        loops=bool(loop),
    )
    if (collapse := await find_cache_collapse(run, finished)) is not None:
        finished = replace(finished, cache=collapse)
    agent = run.setup.agent
    if agent is not None and agent.output is not None and not action.closing and not refused:
        run.stage(await typed_output.check_step(run, agent.output, finished))
    else:
        run.stage([finished])  # the next action begins with a commit
    run.assembly = None


async def _build_request(run: ActiveTurn, action: RequestModel) -> ModelRequest:
    history, run.warning = await run.read_history(), ""
    failpoints.hit_failpoint("history.read")
    body = await request.build_request(run, history, await run.user_message(), action.step, action.closing)
    failpoints.hit_failpoint("request.built")
    return body


async def _stream(
    run: ActiveTurn, body: ModelRequest, action: RequestModel, seq: int
) -> tuple[stream.StepAssembly, output_check.OutputCheck | None, ModelRequest]:
    """Send the request and read its stream.

    A request that is too long is sent again: as often as a plugin shortens it, or once with a compacted conversation.
    """
    hooks, overflows = run.setup.hooks, 0
    while True:
        assembly = run.assembly = stream.StepAssembly(run.turn, action.step, seq)
        check = None
        if hooks["on_output"]:
            check = run.assembly = output_check.OutputCheck(run, action.step, assembly)
        try:
            await stream.stream_step(run, body, assembly, check)
            return assembly, check, body
        except ModelError as error:
            overflows += 1
            if error.kind != "context" or overflows > OVERFLOW_RETRIES:
                raise
            shorter = await resolve_overflow(run, body, action.step, action.closing, error, overflows)
            if shorter is None:
                if not await compaction.recover_overflow(run, body, error):
                    if run.state.options.context != "auto":
                        raise
                    window = run.context_limits.window if run.context_limits is not None else 0
                    raise compaction.overflow_error(body, error, window) from error
                shorter = await _build_request(run, action)
        body = shorter
        seq = await run.commit([StepRestarted(turn=run.turn, at=run.now(), step=action.step)])


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
    seen_arrivals: dict[str, int] = {}  # plugin that is not done -> number of arrivals at its last call
    tasks: dict[str, tuple[StepHookContext, asyncio.Task[object]]] = {}
    seen = run.hook_notifier.count
    try:
        while True:
            for name, method in methods.items():
                if name not in tasks and seen_arrivals.get(name, -1) < run.arrivals:
                    seen_arrivals[name] = run.arrivals
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
        await _suspend(run, step.number, min(seen_arrivals[name] for name in methods))


async def _call_alone(run: ActiveTurn, step: StepState, name: str, method: Hook) -> None:
    """The same for a single plugin, the usual case: without a task, a step costs a fifth less."""
    writes_first = name in run.setup.hooks.writes_first
    if not writes_first:
        await run.commit([])  # it may have effects based on what it reads
    while True:
        arrivals = run.arrivals
        ctx = StepHookContext(run, step, name, is_followed=writes_first)
        if await run.call_hook(name, "on_after_request", method, ctx) is not SUSPEND:
            run.stage([_hook_finished(run, step.number, ctx)])
            return
        if run.arrivals == arrivals:
            await _suspend(run, step.number, arrivals)
            return


async def _stop(run: ActiveTurn, tasks: Sequence[asyncio.Task[object]]) -> None:
    if tasks:
        async with run.ledger.write_lock:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _hook_finished(run: ActiveTurn, step: int, ctx: StepHookContext) -> HookFinished:
    return HookFinished(turn=run.turn, at=run.now(), step=step, plugin=ctx.plugin, deferred=tuple(ctx.deferred))


async def _suspend(run: ActiveTurn, step: int, seen_arrivals: int) -> None:
    """Suspend the turn, unless something arrived in the meantime."""

    def events() -> Sequence[Event]:
        return [] if run.arrivals > seen_arrivals else [TurnSuspended(turn=run.turn, at=run.now(), step=step)]

    await run.commit(events)
