"""Calls → results: find → read → validate → permit → (gate) → start → run → shape → (gate) → settle.

Each stage is a small function. A failure at any of them is a result that tells the model what was wrong and what there is
instead; it is never an exception of the turn. Nothing runs before its `CallStarted` is in the log, and nothing starts
that was not judged in the same append.

These are the functions `plugins/tool_calling.py` stands on; another plugin may stand on them as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from everturn import faults
from everturn.core.calls import Call
from everturn.core.canonical import parse_object
from everturn.core.events import CallSettled, Event, LimitReached
from everturn.core.hooks import PENDING, Pending, StepContext
from everturn.core.parts import Output
from everturn.core.ports import Tool
from everturn.turn.budget import reached
from everturn.turn.contexts import OneStep
from everturn.turn.gating import settled
from everturn.turn.judging import Start, judge
from everturn.turn.passing import resolve
from everturn.turn.privacy import mask
from everturn.turn.reviewing import after_review, review
from everturn.turn.running import finish_call, run_call
from everturn.turn.shaping import Limits, failure
from everturn.turn.supervisor import Settlement

OUTCOME_UNKNOWN = (
    "The process that ran this call died before it had a result. Whether it took effect is not known, and it was not "
    "run again. Find out before you try anew."
)
TIME_IS_OVER = (
    "The time of this turn was over while this call was running. Whether it took effect is not known; its result may "
    "come later."
)
NOT_READ_IN_TIME = "The time of this turn was over before anybody had read this result. The call did run."


class _Plan(Struct):
    """What to write down next, and what may then be started."""

    events: list[Event] = []
    starts: list[Start] = []


async def settle_calls(ctx: StepContext, tools: Mapping[str, Tool], limits: Limits) -> Pending | None:
    """Bring every call of a step to its result, or return `PENDING` while a person is asked about one."""
    assert isinstance(ctx, OneStep), "call this with the context the hook was given"
    while True:
        heard = ctx.stirs
        await _record_done(ctx)
        faults.hit("calls.recorded")
        if all(call.is_settled for call in ctx.calls):
            return None
        plan = _stop(ctx) if ctx.run.state.limit is not None else await _plan(ctx, tools, limits)
        faults.hit("calls.planned")
        if plan.events:
            await ctx.run.commit(lambda plan=plan: _in_time(ctx, plan))
        for start in plan.starts:
            ctx.spawn(start.call.id, run_call(ctx, start, limits))
        faults.hit("calls.started")
        if not ctx.running().isdisjoint(call.id for call in ctx.calls if not call.is_settled):
            await ctx.stir(heard)
        elif not plan.events:
            return PENDING


def _in_time(ctx: OneStep, plan: _Plan) -> list[Event]:
    """What is planned, unless a limit was reached while that was worked out: then nothing of it starts."""
    if plan.starts and ctx.run.state.limit is not None:
        plan.starts.clear()
        return []
    return plan.events


async def _record_done(ctx: OneStep) -> None:
    """Write down what has finished, in the order of the calls; a result that a person reads first opens a gate."""
    # What was settled without it is handed in when the turn is over.
    if done := {name: came for name, came in ctx.done().items() if not ctx.run.state.calls[name].is_settled}:
        events: list[Event] = []
        is_last = all(call.is_settled or call.id in done for call in ctx.calls)
        for call in ctx.calls:
            if call.id in done:
                asked = await review(ctx, call, done[call.id])
                is_last = is_last and not asked
                events += asked or [_came(ctx, call, done[call.id])]
        # Forgotten only when they are written: if the append fails, another drive finds them still here.
        if is_last:
            await ctx.record_last(events, lambda: ctx.forget(done))
        else:
            await ctx.record(*events)
            ctx.forget(done)


def _came(ctx: OneStep, call: Call, done: Settlement) -> CallSettled:
    event = settled(ctx, call.id, done.state, done.output)
    return event if done.spent is None else replace(event, spent=done.spent, trail=done.trail)


async def _plan(ctx: OneStep, tools: Mapping[str, Tool], limits: Limits) -> _Plan:
    """As much as the cap allows."""
    plan = _Plan()
    running = ctx.running()
    for call in ctx.calls:
        if call.is_settled or call.state == "asking" or call.id in running:
            continue
        if call.state == "reviewing":
            plan.events += after_review(ctx, call)
        elif call.state == "running":
            await _take_over(ctx, call, tools, plan)
        elif len(running) + len(plan.starts) < limits.parallel:
            if (limit := await reached(ctx.run, len(plan.starts) + 1)) is not None:
                plan.events.append(limit)
                return plan
            await _judge(ctx, call, tools, limits, plan)
    return plan


async def _judge(ctx: OneStep, call: Call, tools: Mapping[str, Tool], limits: Limits, plan: _Plan) -> None:
    try:
        judged = await judge(ctx, call, tools)
        if judged.by_hand is not None:
            assert judged.start is not None
            assert call.verdict is not None
            came = Settlement("failed" if call.verdict.failed else "completed", judged.by_hand)
            plan.events.append(_came(ctx, call, await finish_call(ctx, judged.start, limits, came)))
            return
        plan.events += judged.events
        if judged.start is not None:
            plan.starts.append(judged.start)
    except Exception as error:
        plan.events.append(settled(ctx, call.id, "failed", await mask(ctx.run, failure(error))))


async def _take_over(ctx: OneStep, call: Call, tools: Mapping[str, Tool], plan: _Plan) -> None:
    """A call somebody else had started and never settled: run it again only if a repeat does no harm."""
    started, judged = call.started, call.judged
    assert started is not None
    assert judged is not None
    tool, permits, options = tools.get(started.tool), ctx.run.setup.permits, ctx.run.state.options
    arguments = parse_object(started.arguments)
    if (
        tool is None
        or arguments is None
        or "once" in (started.effects, tool.spec.effects)
        or permits.identity(tool.spec) != judged.identity
        or permits.is_denied(tool.spec, options)
    ):
        unknown = Output(OUTCOME_UNKNOWN, code="outcome_unknown")
        plan.events.append(settled(ctx, call.id, "outcome_unknown", unknown))
        return
    try:
        given = await resolve(ctx.run, tool.spec, arguments)
        cases = permits.cases(tool.spec, tool.validate(given) or given, options)
        if permits.judge(tool.spec, cases, options).action == "deny":  # by a rule that was not there before
            plan.events.append(
                settled(ctx, call.id, "outcome_unknown", Output(OUTCOME_UNKNOWN, code="outcome_unknown"))
            )
        else:
            plan.starts.append(Start(call, tool, given))
    except Exception as error:
        plan.events.append(settled(ctx, call.id, "failed", await mask(ctx.run, failure(error))))


def _stop(ctx: OneStep) -> _Plan:
    """A limit was reached: what has not begun does not begin, and when the time is over nothing is waited for."""
    limit, plan, running = ctx.run.state.limit, _Plan(), ctx.running()
    assert limit is not None
    for call in ctx.calls:
        if call.state in ("pending", "asking"):
            reason = f"{limit.limit}_limit_reached"
            text = f'{{"status":"incomplete","reason":"{reason}"}}'
            plan.events.append(settled(ctx, call.id, "failed", Output(text, code=reason)))
        elif call.state == "reviewing":
            plan.events += after_review(ctx, call) or _unread(ctx, call, limit)
        elif call.state == "running" and call.id not in running:
            unknown = Output(OUTCOME_UNKNOWN, code="outcome_unknown")
            plan.events.append(settled(ctx, call.id, "outcome_unknown", unknown))
        elif call.state == "running" and limit.limit == "seconds":
            gone = settled(ctx, call.id, "cancelled", Output(TIME_IS_OVER, code="cancelled"))
            plan.events.append(replace(gone, out=ctx.run.state.options.late != "discard"))
    return plan


def _unread(ctx: OneStep, call: Call, limit: LimitReached) -> list[Event]:
    """A result that nobody has read when the time is over; another limit leaves people their time."""
    if limit.limit != "seconds":
        return []
    return [settled(ctx, call.id, "withheld", Output(NOT_READ_IN_TIME, code="withheld"))]
