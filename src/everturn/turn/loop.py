"""The loop: the only module that knows the order of a turn.

    prepare → request → stream ⇄ tools → finalize

Going on after a crash is the same code: `decide` looks at the log and says what is next, whoever asks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec.structs import replace

from everturn import faults
from everturn.core.canonical import clean
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
    TurnEnding,
    TurnParked,
)
from everturn.core.hooks import PENDING
from everturn.core.parts import Finish, StreamedPart, TextPart, ToolPart
from everturn.core.requests import ToolSpec
from everturn.core.state import (
    Action,
    AfterRequest,
    Done,
    Finalize,
    OpenAnswer,
    Request,
    SettleIncomplete,
    Step,
    Wait,
    WriteDeferred,
    decide,
)
from everturn.errors import DriverLost, ModelError, Stale, TurnError
from everturn.turn import budget, finalize, prepare, request, steering, stream
from everturn.turn.contexts import Context, OneStep, change_append
from everturn.turn.hookup import Hook
from everturn.turn.run import Run

log = logging.getLogger(__name__)

SHUTDOWN_GRACE = 1.0  # seconds the work of a turn has to end when its process does
CANCEL_GRACE = 0.05  # seconds the work of a cancelled turn has to end; one that takes longer is left behind


async def drive_turn(run: Run) -> None:
    """Move a turn on until it is over or waits, then let go of it."""
    supervisor = run.setup.supervisor
    supervisor.watch(run.turn, run.stirs.ring)
    supervisor.drive(run.turn, run)
    try:
        # A turn that only has to end is not started again: nothing a plugin does could change its outcome.
        if run.state.ending is None:
            await _work(run)
        if run.state.ending is not None and not run.state.phase.is_terminal:
            await finalize.finish(run)
    finally:
        run.is_closed = True
        run.stirs.ring()  # tools that wait for something of this turn look who drives it now
        supervisor.unwatch(run.turn, run.stirs.ring)
        is_last = supervisor.driven(run.turn) is run
        if is_last and (run.state.phase.is_terminal or not supervisor.running(run.turn)):
            supervisor.drive(run.turn, None)
        await run.clean_up()


async def _work(run: Run) -> None:
    """Advance in a task of its own, so that a cancel can stop whatever is under way and nothing else."""
    work = asyncio.get_running_loop().create_task(_advance_to_an_end(run))
    run.begin(work, CANCEL_GRACE)
    try:
        await run.patience  # it ends with the work, or before
    except asyncio.CancelledError:  # this process lets go; the turn goes on elsewhere
        work.cancel()
        await asyncio.wait({work}, timeout=SHUTDOWN_GRACE)
        raise
    if not work.done():
        log.warning("turn %s: something ignores the cancel and is left behind", run.turn)
        work.add_done_callback(lambda left: left.cancelled() or left.exception())
    error = work.exception() if work.done() and not work.cancelled() else None
    if work.cancelled() and not run.is_cancelled and run.overrun is None:
        error = TurnError("the turn's work was cancelled from within", kind="internal")
    if isinstance(error, Stale | DriverLost) or (error is not None and not isinstance(error, Exception)):
        raise error
    if (asked := run.cancel_request) is not None:  # then any error is that cancellation, whoever raised it
        _end(run, "cancelled", "cancelled", hard=asked.hard, command=asked.key)
    elif run.overrun is not None:
        _end(run, "error", "error", run.overrun)
    elif error is not None:
        run.setup.supervisor.keep_error(run.turn, error)
        _end(run, "error", "error", _problem(error))


def _end(
    run: Run, outcome: Outcome, finish: Finish, problem: Problem | None = None, hard: bool = False, command: str = ""
) -> None:
    """Write down how it ends, and before that what had arrived of a step that broke off."""
    turn, at, step = run.turn, run.now(), run.state.step
    if run.state.ending is not None:
        return
    ending = TurnEnding(turn=turn, at=at, outcome=outcome, problem=problem, hard=hard, command=command)
    if step is not None and step.is_open and run.assembly is not None:
        parts = run.assembly.parts()
        if parts or problem is not None:  # not where it was cancelled before a word was said
            usage = run.assembly.usage
            run.stage(
                [
                    StepInterrupted(
                        turn=turn, at=at, step=step.number, parts=parts, finish=finish, problem=problem, usage=usage
                    )
                ]
            )
    run.stage([ending])  # what settles its calls is written with it


def _problem(error: BaseException) -> Problem:
    if isinstance(error, TurnError | ModelError):
        log.info("the turn failed", exc_info=error)
        return Problem(error.kind, clean(str(error)))
    log.error("the turn failed", exc_info=error)
    return Problem("internal", clean(f"{type(error).__name__}: {error}"))


async def _advance_to_an_end(run: Run) -> None:
    try:
        await _advance(run)
    finally:
        run.lose_patience()  # at once, and not when the task is seen to be done: a turn of the event loop later


async def _advance(run: Run) -> None:
    """Do what `decide` says, until there is nothing to do."""
    await _start(run)
    while True:
        match action := await _next(run):
            case OpenAnswer():
                await prepare.open_answer(run)
            case Request():
                if run.is_leaving and not action.again:
                    await run.commit([])
                    return
                await _step_unless_limited(run, action)
            case SettleIncomplete(reason=reason):
                await finalize.settle_incomplete(run, reason)
            case AfterRequest(plugins=plugins):
                await _after_request(run, plugins)
            case WriteDeferred(appends=appends):
                for append in appends:
                    await run.join(append, lambda made: change_append(run, made))
            case Finalize(outcome=outcome, problem=problem):
                _end(run, outcome, "error", problem)
                return
            case Wait() | Done():
                await run.commit([])  # what was staged may be all there is
                return


async def _next(run: Run) -> Action:
    """What is to be done now; what a person said meanwhile joins before that, where it may."""
    while True:
        action = decide(run.state, run.setup.hooks.after_request)
        if faults.is_on():
            faults.hit(f"decide.{type(action).__name__}")
        if not run.steers or not await steering.join(run, action):
            return action


async def _step_unless_limited(run: Run, action: Request) -> None:
    limit = None if action.again or action.closing else await budget.reached(run)
    if limit is not None:
        run.stage([limit])
    else:
        await _step(run, action)


async def _start(run: Run) -> None:
    """`on_turn_start`, whenever a process takes the turn; what it returns is owed a call when that process lets go."""
    ctx = Context(run)
    for plugin, method in run.setup.hooks["on_turn_start"]:
        cleanup = await run.call_hook(plugin, "on_turn_start", method, ctx)
        if cleanup is not None:
            run.cleanups.append((plugin, cleanup))


async def _step(run: Run, action: Request) -> None:
    """One model request, from its announcement to its parts in the log."""
    if not action.again and action.step > 1 and await prepare.offer_late(run):
        return  # the notice stands after the answer so far: `decide` opens the next one
    turn, now = run.turn, run.now()
    started = (
        StepRestarted(turn=turn, at=now, step=action.step)
        if action.again
        else StepStarted(turn=turn, at=now, step=action.step, closing=action.closing)
    )
    seq = await run.commit([started])
    # Nobody asks a model with what is not theirs: where the limit is not the turn's own, the answer is ours.
    if action.closing and (limit := run.state.limit) is not None and (action.step == 1 or limit.scope != "turn"):
        _say_why(run, limit, action.step)
        return
    history = await run.read_history()
    faults.hit("history.read")
    body = await request.build(run, history, await prepare.said_last(run), action.step, action.closing)
    faults.hit("request.built")
    assembly = run.assembly = stream.Assembly(turn, action.step, seq)
    await stream.stream(run, body, assembly)
    finished = StepFinished(
        turn=turn,
        at=run.now(),
        step=action.step,
        parts=_identified(run, assembly.parts(), body.tools),
        finish=assembly.finish or "other",
        usage=assembly.usage,
    )
    run.stage([finished])  # whatever is done next begins with a commit
    run.assembly = None


def _say_why(run: Run, limit: LimitReached, step: int) -> None:
    """Nothing is left to ask a model with: the answer is why."""
    how_far = "nothing was done" if step == 1 else "this is as far as it got"
    said = (TextPart(f"{limit.text[0].upper()}{limit.text[1:]}; {how_far}."),)
    run.stage([StepFinished(turn=run.turn, at=run.now(), step=step, parts=said, finish="stop")])


def _identified(run: Run, parts: tuple[StreamedPart, ...], offered: Sequence[ToolSpec]) -> tuple[StreamedPart, ...]:
    """Parts whose calls say which tool it was that the model was offered under the name it wrote."""
    if not any(type(part) is ToolPart for part in parts):
        return parts
    known = {spec.name: run.setup.permits.identity(spec) for spec in offered}
    return tuple(
        replace(part, identity=known[part.name]) if type(part) is ToolPart and part.name in known else part
        for part in parts
    )


async def _after_request(run: Run, plugins: Sequence[str]) -> None:
    """Call `on_after_request` of these plugins, all at once; park the turn when all that are not done wait."""
    step = run.state.step
    assert step is not None
    methods = {name: method for name, method in run.setup.hooks["on_after_request"] if name in plugins}
    if len(methods) == 1:
        await _call_alone(run, step, *methods.popitem())
        return
    await run.commit([])  # plugins act on what is written
    heard: dict[str, int] = {}  # plugin that is not done -> how much had arrived when it was last called
    tasks: dict[str, tuple[OneStep, asyncio.Task[object]]] = {}
    strokes = run.news.strokes
    try:
        while True:
            for name, method in methods.items():
                if name not in tasks and heard.get(name, -1) < run.arrived:
                    heard[name] = run.arrived
                    ctx = OneStep(run, step, name)
                    work = run.call_hook(name, "on_after_request", method, ctx)
                    tasks[name] = ctx, asyncio.get_running_loop().create_task(work)
                    tasks[name][1].add_done_callback(lambda _: run.news.ring())
            if not tasks:
                break
            await run.news.after(strokes)
            strokes = run.news.strokes  # before looking, or one that ends while we write is never looked at
            done = [name for name in methods if name in tasks and tasks[name][1].done()]
            ended = [ctx for name in done for ctx, task in [tasks.pop(name)] if task.result() is not PENDING]
            await run.commit([_finished(run, step.number, ctx) for ctx in ended])
            for ctx in ended:
                del methods[ctx.plugin]
    finally:
        await _stop(run, [task for _, task in tasks.values()])
    if methods:
        await _park(run, step.number, min(heard[name] for name in methods))


async def _call_alone(run: Run, step: Step, name: str, method: Hook) -> None:
    """The same for the usual case, one plugin: it needs no task, and a step costs a fifth less."""
    writes_first = name in run.setup.hooks.writes_first
    if not writes_first:
        await run.commit([])  # it may do anything with what it sees
    while True:
        heard = run.arrived
        ctx = OneStep(run, step, name, is_followed=writes_first)
        if await run.call_hook(name, "on_after_request", method, ctx) is not PENDING:
            run.stage([_finished(run, step.number, ctx)])
            return
        if run.arrived == heard:
            await _park(run, step.number, heard)
            return


async def _stop(run: Run, tasks: Sequence[asyncio.Task[object]]) -> None:
    if tasks:
        async with run.ledger.at_rest:
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _finished(run: Run, step: int, ctx: OneStep) -> HookFinished:
    return HookFinished(turn=run.turn, at=run.now(), step=step, plugin=ctx.plugin, deferred=tuple(ctx.deferred))


async def _park(run: Run, step: int, heard: int) -> None:
    """Let the turn wait, unless something arrived while that was being decided."""

    def events() -> Sequence[Event]:
        return [] if run.arrived > heard else [TurnParked(turn=run.turn, at=run.now(), step=step)]

    await run.commit(events)
