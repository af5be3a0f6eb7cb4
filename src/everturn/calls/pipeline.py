"""Call pipeline: takes every call of a step to its result.

    lookup → parse → validate → permit → (gate) → start → run → truncate → (review) → finish

Each stage is a small function. A failure at any of them is a result that tells the model what was wrong and what is
available instead; it never fails the turn. Nothing runs before its `CallStarted` is in the log, and nothing starts
without a `PermissionDecided` in the same append.

`plugins/tool_calling.py` is built on these functions; another plugin may use them as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn import failpoints
from everturn.calls.admit import StartCall, admit_call
from everturn.calls.execute import HANDED_OVER, finish_outcome, handoff_options, run_call
from everturn.calls.gates import call_finished
from everturn.calls.output import OutputLimits, failure_output
from everturn.calls.private_values import mask_private_values
from everturn.calls.references import resolve_references
from everturn.calls.review import finish_reviewed_call, open_review_gate
from everturn.calls.suspend import suspended_event
from everturn.core.calls import CallRecord, stop_output
from everturn.core.canonical_json import parse_object
from everturn.core.events import AgentSwitched, CallFinished, CallResumed, Event, GateOpened, LimitReached
from everturn.core.hooks import SUSPEND, StepContext, Suspend
from everturn.core.parts import Output
from everturn.core.ports import Tool
from everturn.core.tree import call_of_event
from everturn.running.budget import find_reached_limit, has_limits
from everturn.running.hook_contexts import StepHookContext
from everturn.running.subagent_index import is_subagent_suspended
from everturn.running.tool_tasks import Suspension, ToolOutcome

OUTCOME_UNKNOWN = (
    "The process that ran this call died before it had a result. Whether it took effect is not known, and it was not "
    "run again. Check whether it took effect before you call the tool again."
)
OUT_OF_TIME = (
    "The time limit of this turn was reached while this call was running. Whether it took effect is not known; its "
    "result may come later."
)
ALREADY_HANDED_OVER = "Another call of this step has already handed the conversation over, so this call did nothing."
PARENT_ENDED = "The tool that made this nested call has ended, so the call was cancelled."
NOT_RESUMED = (
    "This call was suspended and cannot be resumed: its tool is gone, has changed since the call started, or is no longer "
    "permitted. Whether it took effect is not known."
)
UNREVIEWED_OUT_OF_TIME = (
    "The time limit of this turn was reached before a person reviewed this result. The call did run."
)


class _CallPlan(Struct):
    """The events to write next, and the calls to start after that."""

    events: list[Event] = []
    starts: list[StartCall] = []


async def run_calls(ctx: StepContext, tools: Mapping[str, Tool], limits: OutputLimits) -> Suspend | None:
    """Take every call of a step to its result, or return `SUSPEND` while one of them waits for a person."""
    assert isinstance(ctx, StepHookContext), "call this with the context the hook was given"
    while True:
        seen = ctx.notifications
        ctx.run.ledger.raise_if_broken()  # a write of a tool may have failed
        await _record_done(ctx)
        failpoints.hit_failpoint("calls.recorded")
        if all(call.is_finished for call in ctx.calls):
            await _complete_handoff(ctx)
            return None
        is_limited = ctx.run.state.limit is not None
        plan = await (_plan_after_limit(ctx, tools) if is_limited else _plan(ctx, tools, limits))
        failpoints.hit_failpoint("calls.planned")
        if plan.events:
            await ctx.run.commit(lambda plan=plan: _unless_limited(ctx, plan))
            _wake_tools(ctx, plan.events)
        for start in plan.starts:
            ctx.spawn(start.call.id, run_call(ctx, start, limits, tools))
        failpoints.hit_failpoint("calls.started")
        if not is_limited and ctx.run.state.limit is not None:
            continue  # a tool may wait for a nested call that does not start any more
        if not ctx.running_calls().isdisjoint(call.id for call in ctx.calls if not call.is_finished):
            await ctx.wait_for_notification(seen)
        elif not plan.events:
            return SUSPEND


def _unless_limited(ctx: StepHookContext, plan: _CallPlan) -> list[Event]:
    """The planned events, or none if a limit was reached in the meantime: then nothing starts."""
    is_new = any(start.call.state != "waiting" for start in plan.starts)
    if is_new and ctx.run.state.limit is not None:
        plan.starts.clear()
        return []
    return plan.events


async def _record_done(ctx: StepHookContext) -> None:
    """Write the outcomes of finished tools, in the order of the calls; a result to be reviewed opens a gate."""
    # The outcome of a call that was finished without it is delivered as a late result when the turn is over.
    if done := _finished_outcomes(ctx):
        events: list[Event] = []
        is_last = all(call.is_finished or call.id in done for call in ctx.calls)
        for call in ctx.calls:
            if call.id in done and (suspension := done[call.id].suspension) is not None:
                is_last = False
                events += _suspension_events(ctx, call, suspension)
            elif call.id in done:
                gate_events = await open_review_gate(ctx, call, done[call.id]) if done[call.id].needs_review else []
                if gate_events and call.state == "waiting":  # its tool ended although one of its tasks still waited
                    gate_events = [CallResumed(turn=ctx.turn, at=ctx.run.now(), call=call.id), *gate_events]
                is_last = is_last and not gate_events
                events += gate_events or _outcome_events(ctx, call, done[call.id], events)
        if any(outcome.switch is not None for outcome in done.values()):
            events.sort(key=lambda event: isinstance(event, AgentSwitched))  # last: then every call is finished
        # Dropped only after they are written: if the append fails, the next drive in this process still has them.
        if is_last:
            await ctx.record_last(events, lambda: ctx.forget(done))
        else:
            await ctx.record(*events)
            ctx.forget(done)
            _wake_tools(ctx, events)


def _finished_outcomes(ctx: StepHookContext) -> dict[str, ToolOutcome]:
    """The outcomes to write now. A handoff waits for every other call: those belong to the agent that made them."""
    calls = ctx.run.state.calls
    done = {name: outcome for name, outcome in ctx.outcomes().items() if not calls[name].is_finished}
    if any(outcome.switch is not None for outcome in done.values()):
        if not all(call.is_finished or call.id in done for call in ctx.calls) or any(
            outcome.suspension is not None or outcome.needs_review for outcome in done.values()
        ):
            return {name: outcome for name, outcome in done.items() if outcome.switch is None}
    return done


async def _complete_handoff(ctx: StepHookContext) -> None:
    """Switch to the agent that a call handed over to, if the process died between the result and the switch."""
    run = ctx.run
    assert run.state.step is not None
    if run.state.step.is_handed_over:
        return
    for call in ctx.calls:
        if call.output is not None and call.output.code == HANDED_OVER and call.state == "completed":
            agent = str((call.output.metadata or {})["agent"])
            options = handoff_options(run, agent)
            await ctx.record(AgentSwitched(turn=ctx.turn, at=run.now(), agent=agent, options=options, call=call.id))
            return


def _outcome_events(ctx: StepHookContext, call: CallRecord, done: ToolOutcome, before: list[Event]) -> list[Event]:
    """The result of a call, and the switch to another agent: the first call that hands over wins."""
    if done.switch is None:
        return [_outcome_event(ctx, call, done)]
    if any(isinstance(event, AgentSwitched) for event in before):
        return [call_finished(ctx, call.id, "failed", Output(ALREADY_HANDED_OVER, code="failed"))]
    return [_outcome_event(ctx, call, done), replace(done.switch, at=ctx.run.now())]


def _suspension_events(ctx: StepHookContext, call: CallRecord, suspension: Suspension) -> list[Event]:
    """The suspension event of a tool, unless it was written with the gate it opened."""
    event = suspended_event(ctx.turn, ctx.run.now(), call.id, suspension)
    is_known = call.state == "waiting" and call.suspended is not None and replace(call.suspended, at=event.at) == event
    return [] if is_known else [event]


def _wake_tools(ctx: StepHookContext, events: Sequence[Event]) -> None:
    """Wake tools that wait for nested calls."""
    calls = ctx.run.state.calls
    if ctx.run.state.has_nested_calls and any(
        isinstance(event, CallFinished | GateOpened) and calls[call_of_event(event)].parent for event in events
    ):
        ctx.run.tool_notifier.notify()


def _outcome_event(ctx: StepHookContext, call: CallRecord, done: ToolOutcome) -> CallFinished:
    event = call_finished(ctx, call.id, done.state, done.output)
    return event if done.spent is None else replace(event, spent=done.spent, recent_calls=done.recent_calls)


async def _plan(ctx: StepHookContext, tools: Mapping[str, Tool], limits: OutputLimits) -> _CallPlan:
    """Plan the next events and starts, up to the limit of parallel calls."""
    plan = _CallPlan()
    running = ctx.running_calls().union(ctx.outcomes())  # a handoff waits for the other calls
    # A tool with unfinished nested calls only waits for them, so it does not count towards the limit.
    busy = running
    if ctx.run.state.has_nested_calls:
        busy = running - {call.parent for call in ctx.calls if call.parent and not call.is_finished}
    for call in ctx.calls:
        if call.is_finished or call.id in running:
            continue
        if call.parent and _is_unwanted(ctx, call):
            plan.events.append(call_finished(ctx, call.id, "cancelled", Output(PARENT_ENDED, code="cancelled")))
        elif call.state == "asking":
            continue
        elif call.state == "reviewing":
            plan.events += finish_reviewed_call(ctx, call)
        elif call.state == "running":
            await _take_over(ctx, call, tools, plan)
        elif call.state == "waiting":
            if await _can_resume(ctx, call):
                await _resume(ctx, call, tools, plan)
        elif len(busy) + len(plan.starts) < limits.parallel:
            if has_limits(ctx.run) and (limit := await find_reached_limit(ctx.run, len(plan.starts) + 1)) is not None:
                plan.events.append(limit)
                return plan
            await _admit(ctx, call, tools, limits, plan)
    return plan


async def _admit(
    ctx: StepHookContext, call: CallRecord, tools: Mapping[str, Tool], limits: OutputLimits, plan: _CallPlan
) -> None:
    try:
        admission = await admit_call(ctx, call, tools)
        if admission.manual is not None:
            assert admission.start is not None
            assert call.resolution is not None
            outcome = ToolOutcome("failed" if call.resolution.failed else "completed", admission.manual)
            plan.events.append(_outcome_event(ctx, call, await finish_outcome(ctx, admission.start, limits, outcome)))
            return
        plan.events += admission.events
        if admission.start is not None:
            plan.starts.append(admission.start)
    except Exception as error:
        plan.events.append(
            call_finished(ctx, call.id, "failed", await mask_private_values(ctx.run, failure_output(error)))
        )


async def _take_over(ctx: StepHookContext, call: CallRecord, tools: Mapping[str, Tool], plan: _CallPlan) -> None:
    """Take over a call that another process started and did not finish: run it again only if it may be repeated."""
    assert call.started is not None
    tool = tools.get(call.started.tool) or await ctx.run.setup.app.wait_for_tool(call.started.tool)
    is_at_most_once = tool is None or call.started.at_most_once or tool.spec.at_most_once
    # A step in the log shows that this call was begun as one whose effects are all steps.
    if tool is None or (is_at_most_once and not (tool.spec.effects_in_steps and call.tool_steps)):
        plan.events.append(_outcome_unknown(ctx, call, OUTCOME_UNKNOWN))
    else:
        await _plan_rerun(ctx, call, tool, plan, OUTCOME_UNKNOWN)


async def _resume(ctx: StepHookContext, call: CallRecord, tools: Mapping[str, Tool], plan: _CallPlan) -> None:
    """Resume a suspended call whose wait is over."""
    assert call.started is not None
    tool = tools.get(call.started.tool) or await ctx.run.setup.app.wait_for_tool(call.started.tool)
    if tool is None:
        plan.events.append(_outcome_unknown(ctx, call, NOT_RESUMED))
    elif await _plan_rerun(ctx, call, tool, plan, NOT_RESUMED):
        plan.events.append(CallResumed(turn=ctx.turn, at=ctx.run.now(), call=call.id))


async def _plan_rerun(ctx: StepHookContext, call: CallRecord, tool: Tool, plan: _CallPlan, text: str) -> bool:
    """Plan to run a tool again with its original arguments, if it is the same tool and still permitted."""
    started, decision = call.started, call.decision
    assert started is not None
    assert decision is not None
    permits, options = ctx.run.setup.permissions, ctx.run.state.options
    arguments = parse_object(started.arguments)
    if arguments is None or permits.identity(tool.spec) != decision.identity or permits.is_denied(tool.spec, options):
        plan.events.append(_outcome_unknown(ctx, call, text))
        return False
    try:
        resolved = await resolve_references(ctx.run, tool.spec, arguments)
        cases = await permits.read_cases(tool.spec, tool.validate(resolved) or resolved, options)
        if permits.decide_cases(tool.spec, cases, options).action == "deny":  # by a rule that was added since
            plan.events.append(_outcome_unknown(ctx, call, text))
            return False
        plan.starts.append(StartCall(call, tool, resolved))
    except Exception as error:
        plan.events.append(
            call_finished(ctx, call.id, "failed", await mask_private_values(ctx.run, failure_output(error)))
        )
        return False
    return True


def _outcome_unknown(ctx: StepHookContext, call: CallRecord, text: str) -> CallFinished:
    return call_finished(ctx, call.id, "outcome_unknown", Output(text, code="outcome_unknown"))


_NOT_RUN = ("pending", "asking", "waiting", "reviewing")  # no process runs its tool


def _is_unwanted(ctx: StepHookContext, call: CallRecord) -> bool:
    """Whether the tool that made a nested call has ended before the call started."""
    return call.state in _NOT_RUN and ctx.run.state.calls[call.parent].is_finished


async def _can_resume(ctx: StepHookContext, call: CallRecord) -> bool:
    """Whether everything that a suspended call waits for has arrived."""
    state, paused = ctx.run.state, call.suspended
    assert paused is not None
    if any(state.gates[gate] is None for gate in paused.gates):
        return False
    if any(not state.calls[name].is_finished for name in paused.calls):
        return False
    if any(name not in call.wait_results for name in paused.waits):
        return False
    return (
        not paused.child or call.is_notified or not await is_subagent_suspended(ctx.run.setup.store, call, paused.child)
    )


async def _plan_after_limit(ctx: StepHookContext, tools: Mapping[str, Tool]) -> _CallPlan:
    """Plan after a limit was reached: pending calls do not start, and if the time is used up nothing is awaited."""
    limit, plan, running = ctx.run.state.limit, _CallPlan(), ctx.running_calls()
    assert limit is not None
    for call in ctx.calls:
        if call.state in ("pending", "asking") and ctx.run.state.is_stopped:
            plan.events.append(call_finished(ctx, call.id, "denied", stop_output(call)))
        elif call.state in ("pending", "asking"):
            reason = f"{limit.limit}_limit_reached"
            text = f'{{"status":"incomplete","reason":"{reason}"}}'
            plan.events.append(call_finished(ctx, call.id, "failed", Output(text, code=reason)))
        elif call.state == "reviewing":
            plan.events += finish_reviewed_call(ctx, call) or _withhold_unreviewed(ctx, call, limit)
        elif call.state == "running" and call.id not in running:
            unknown = Output(OUTCOME_UNKNOWN, code="outcome_unknown")
            plan.events.append(call_finished(ctx, call.id, "outcome_unknown", unknown))
        elif call.state == "running" and limit.limit == "seconds":
            timed_out = call_finished(ctx, call.id, "cancelled", Output(OUT_OF_TIME, code="cancelled"))
            plan.events.append(replace(timed_out, still_running=ctx.run.state.options.late != "discard"))
        elif call.state == "waiting" and limit.limit == "seconds":
            plan.events.append(call_finished(ctx, call.id, "cancelled", Output(OUT_OF_TIME, code="cancelled")))
        elif call.state == "waiting" and await _can_resume(ctx, call):
            await _resume(ctx, call, tools, plan)
    return plan


def _withhold_unreviewed(ctx: StepHookContext, call: CallRecord, limit: LimitReached) -> list[Event]:
    """Withhold an unreviewed result if the time is used up; after other limits the review may continue."""
    if limit.limit != "seconds":
        return []
    return [call_finished(ctx, call.id, "withheld", Output(UNREVIEWED_OUT_OF_TIME, code="withheld"))]
