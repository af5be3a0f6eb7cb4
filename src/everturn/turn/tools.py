"""Calls → results: find → read → validate → permit → (gate) → start → run → shape → (gate) → settle.

Each stage is a small function. A failure at any of them is a result that tells the model what was wrong and what there is
instead; it is never an exception of the turn. Nothing runs before its `CallStarted` is in the log, and nothing starts
that was not judged in the same append.

These are the functions `plugins/tool_calling.py` stands on; another plugin may stand on them as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn import faults
from everturn.core.calls import Call
from everturn.core.canonical import parse_object
from everturn.core.events import CallResumed, CallSettled, Event, GateOpened, LimitReached
from everturn.core.hooks import PENDING, Pending, StepContext
from everturn.core.parts import Output
from everturn.core.ports import Tool
from everturn.core.tree import called_by
from everturn.turn.aside import paused_event
from everturn.turn.budget import reached
from everturn.turn.contexts import OneStep
from everturn.turn.descent import waits_below
from everturn.turn.gating import settled
from everturn.turn.judging import Start, judge
from everturn.turn.passing import resolve
from everturn.turn.privacy import mask
from everturn.turn.reviewing import after_review, review
from everturn.turn.running import finish_call, run_call
from everturn.turn.shaping import Limits, failure
from everturn.turn.supervisor import Aside, Settlement

OUTCOME_UNKNOWN = (
    "The process that ran this call died before it had a result. Whether it took effect is not known, and it was not "
    "run again. Find out before you try anew."
)
TIME_IS_OVER = (
    "The time of this turn was over while this call was running. Whether it took effect is not known; its result may "
    "come later."
)
UNWANTED = "The tool that wanted this has ended without it. Nothing more is done about it."
NOT_GONE_ON = (
    "This call waited for somebody, and its tool is not any more what it was when it began, or may not go on. Whether it "
    "took effect is not known."
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
        ctx.run.ledger.check()  # a tool may have written, and failed
        await _record_done(ctx)
        faults.hit("calls.recorded")
        if all(call.is_settled for call in ctx.calls):
            return None
        is_limited = ctx.run.state.limit is not None
        plan = await (_stop(ctx, tools) if is_limited else _plan(ctx, tools, limits))
        faults.hit("calls.planned")
        if plan.events:
            await ctx.run.commit(lambda plan=plan: _in_time(ctx, plan))
            _tell_tools(ctx, plan.events)
        for start in plan.starts:
            ctx.spawn(start.call.id, run_call(ctx, start, limits, tools))
        faults.hit("calls.started")
        if not is_limited and ctx.run.state.limit is not None:
            continue  # a tool may wait for a call of its own that does not begin any more
        if not ctx.running().isdisjoint(call.id for call in ctx.calls if not call.is_settled):
            await ctx.stir(heard)
        elif not plan.events:
            return PENDING


def _in_time(ctx: OneStep, plan: _Plan) -> list[Event]:
    """What is planned, unless a limit was reached while that was worked out: then nothing of it starts."""
    is_new = any(start.call.state != "waiting" for start in plan.starts)
    if is_new and ctx.run.state.limit is not None:
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
            if call.id in done and (aside := done[call.id].aside) is not None:
                is_last = False
                events += _paused(ctx, call, aside)
            elif call.id in done:
                asked = await review(ctx, call, done[call.id])
                is_last = is_last and not asked
                events += asked or [_came(ctx, call, done[call.id])]
        # Forgotten only when they are written: if the append fails, another drive finds them still here.
        if is_last:
            await ctx.record_last(events, lambda: ctx.forget(done))
        else:
            await ctx.record(*events)
            ctx.forget(done)
            _tell_tools(ctx, events)


def _paused(ctx: OneStep, call: Call, aside: Aside) -> list[Event]:
    """That a tool was put aside, unless that was written with what it asked."""
    paused = paused_event(ctx.turn, ctx.run.now(), call.id, aside)
    is_known = call.state == "waiting" and call.paused is not None and replace(call.paused, at=paused.at) == paused
    return [] if is_known else [paused]


def _tell_tools(ctx: OneStep, events: Sequence[Event]) -> None:
    """Let tools look that wait for calls of their own."""
    calls = ctx.run.state.calls
    if ctx.run.state.has_made and any(
        isinstance(event, CallSettled | GateOpened) and calls[called_by(event)].parent for event in events
    ):
        ctx.run.stirs.ring()


def _came(ctx: OneStep, call: Call, done: Settlement) -> CallSettled:
    event = settled(ctx, call.id, done.state, done.output)
    return event if done.spent is None else replace(event, spent=done.spent, trail=done.trail)


async def _plan(ctx: OneStep, tools: Mapping[str, Tool], limits: Limits) -> _Plan:
    """As much as the cap allows."""
    plan = _Plan()
    running = ctx.running()
    # A tool whose own calls are not settled does nothing but wait for them: it takes nobody's place.
    busy = running
    if ctx.run.state.has_made:
        busy = running - {call.parent for call in ctx.calls if call.parent and not call.is_settled}
    for call in ctx.calls:
        if call.is_settled or call.id in running:
            continue
        if call.parent and _is_unwanted(ctx, call):
            plan.events.append(settled(ctx, call.id, "cancelled", Output(UNWANTED, code="cancelled")))
        elif call.state == "asking":
            continue
        elif call.state == "reviewing":
            plan.events += after_review(ctx, call)
        elif call.state == "running":
            await _take_over(ctx, call, tools, plan)
        elif call.state == "waiting":
            if await _can_go_on(ctx, call):
                await _go_on(ctx, call, tools, plan)
        elif len(busy) + len(plan.starts) < limits.parallel:
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
    assert call.started is not None
    tool = tools.get(call.started.tool) or await ctx.run.setup.tool_coming(call.started.tool)
    if tool is None or "once" in (call.started.effects, tool.spec.effects):
        plan.events.append(_unknown(ctx, call, OUTCOME_UNKNOWN))
    else:
        await _begin_again(ctx, call, tool, plan, OUTCOME_UNKNOWN)


async def _go_on(ctx: OneStep, call: Call, tools: Mapping[str, Tool], plan: _Plan) -> None:
    """A call whose tool was put aside, and which has what it waited for."""
    assert call.started is not None
    tool = tools.get(call.started.tool) or await ctx.run.setup.tool_coming(call.started.tool)
    if tool is None:
        plan.events.append(_unknown(ctx, call, NOT_GONE_ON))
    elif await _begin_again(ctx, call, tool, plan, NOT_GONE_ON):
        plan.events.append(CallResumed(turn=ctx.turn, at=ctx.run.now(), call=call.id))


async def _begin_again(ctx: OneStep, call: Call, tool: Tool, plan: _Plan, text: str) -> bool:
    """Plan to run a tool with what it was started with, if it is the same and may still do that."""
    started, judged = call.started, call.judged
    assert started is not None
    assert judged is not None
    permits, options = ctx.run.setup.permits, ctx.run.state.options
    arguments = parse_object(started.arguments)
    if arguments is None or permits.identity(tool.spec) != judged.identity or permits.is_denied(tool.spec, options):
        plan.events.append(_unknown(ctx, call, text))
        return False
    try:
        given = await resolve(ctx.run, tool.spec, arguments)
        cases = await permits.read_cases(tool.spec, tool.validate(given) or given, options)
        if permits.judge(tool.spec, cases, options).action == "deny":  # by a rule that was not there before
            plan.events.append(_unknown(ctx, call, text))
            return False
        plan.starts.append(Start(call, tool, given))
    except Exception as error:
        plan.events.append(settled(ctx, call.id, "failed", await mask(ctx.run, failure(error))))
        return False
    return True


def _unknown(ctx: OneStep, call: Call, text: str) -> CallSettled:
    return settled(ctx, call.id, "outcome_unknown", Output(text, code="outcome_unknown"))


_NOT_RUN = ("pending", "asking", "waiting", "reviewing")  # nothing of it runs in any process


def _is_unwanted(ctx: OneStep, call: Call) -> bool:
    """Whether the tool that made a call has ended without it, and it has not begun."""
    return call.state in _NOT_RUN and ctx.run.state.calls[call.parent].is_settled


async def _can_go_on(ctx: OneStep, call: Call) -> bool:
    """Whether what a call waits for has come."""
    state, paused = ctx.run.state, call.paused
    assert paused is not None
    if any(state.gates[gate] is None for gate in paused.gates):
        return False
    if any(not state.calls[name].is_settled for name in paused.calls):
        return False
    return not paused.below or call.is_stirred or not await waits_below(ctx.run.setup.store, call, paused.below)


async def _stop(ctx: OneStep, tools: Mapping[str, Tool]) -> _Plan:
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
        elif call.state == "waiting" and limit.limit == "seconds":
            plan.events.append(settled(ctx, call.id, "cancelled", Output(TIME_IS_OVER, code="cancelled")))
        elif call.state == "waiting" and await _can_go_on(ctx, call):
            await _go_on(ctx, call, tools, plan)
    return plan


def _unread(ctx: OneStep, call: Call, limit: LimitReached) -> list[Event]:
    """A result that nobody has read when the time is over; another limit leaves people their time."""
    if limit.limit != "seconds":
        return []
    return [settled(ctx, call.id, "withheld", Output(NOT_READ_IN_TIME, code="withheld"))]
