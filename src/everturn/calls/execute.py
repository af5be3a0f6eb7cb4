"""Tool execution: runs one call with its timeout and hooks, and returns its outcome. It never raises."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

from msgspec.structs import replace

from everturn import failpoints
from everturn.calls.admit import StartCall
from everturn.calls.output import OutputLimits, failure_output, normalize_output, prepare_output, to_output
from everturn.calls.suspend import PausableTimeout
from everturn.calls.tool_context import TurnForTool
from everturn.core.canonical_json import JsonObject
from everturn.core.events import AgentSwitched
from everturn.core.options import TurnOptions
from everturn.core.parts import CallState, Output
from everturn.core.ports import Progress, Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.tool import Handoff
from everturn.errors import BadOutput, ConfigError, OutcomeUnknown, ToolError, ToolTimeout
from everturn.running.active_turn import ActiveTurn
from everturn.running.dependency_scope import DependencyScope
from everturn.running.hook_contexts import CallHookContext, StepHookContext
from everturn.running.permissions import needs_review
from everturn.running.plugin_table import is_task_cancelled
from everturn.running.prompt_layers import switch_prompt
from everturn.running.tool_tasks import ToolOutcome

log = logging.getLogger(__name__)

HANDED_OVER = "handed_over"  # the code of the result of a handoff
MAX_HANDOFFS = 8  # in one turn
TOOL_CANCEL_GRACE = 1.0  # seconds for a tool to end after its cancellation


ENDED_WHILE_SUSPENDED = "The turn ended while this call was waiting. An answer has no effect any more."


class ToolSuspended(BaseException):
    """The tool was suspended; it is resumed once what it waits for has arrived."""


def run_call(
    ctx: StepHookContext, start: StartCall, limits: OutputLimits, tools: Mapping[str, Tool]
) -> Coroutine[Any, Any, ToolOutcome]:
    """Run a tool to its end, or until it is suspended. Never raises, whatever the tool does."""
    dependencies = ctx.run.dependencies
    if dependencies is None:
        return _run_call(ctx, start, limits, tools)
    return _run_with_dependencies(ctx, start, limits, tools, dependencies)


async def _run_with_dependencies(
    ctx: StepHookContext,
    start: StartCall,
    limits: OutputLimits,
    tools: Mapping[str, Tool],
    dependencies: DependencyScope,
) -> ToolOutcome:
    dependencies.acquire()  # the tool may outlive the drive
    try:
        return await _run_call(ctx, start, limits, tools)
    finally:
        await dependencies.release()


async def _run_call(
    ctx: StepHookContext, start: StartCall, limits: OutputLimits, tools: Mapping[str, Tool]
) -> ToolOutcome:
    run = ctx.run
    if run.setup.enter_call is not None:
        run.setup.enter_call(run.session, run.turn, run.state.options, start.call.id)
    tool_turn, is_told = None, False
    try:
        failpoints.hit_failpoint("call.run.before")
        if getattr(start.tool, "takes_context", True):
            tool_turn = TurnForTool(ctx, start.call, start.tool, tools, start.arguments)
            value = await _run_with_context(ctx, start.tool, start.arguments, tool_turn)
        else:
            value = await _run_with_timeout(ctx, start)
        if isinstance(value, Handoff):
            return hand_over(ctx, start, value)
        state: CallState = "completed"
        output = to_output(value)
        failpoints.hit_failpoint("call.run.after")
    except asyncio.CancelledError:
        if is_task_cancelled():
            raise
        state, output = "failed", Output("the tool was cancelled from within", code="failed")
    except ToolSuspended:
        assert tool_turn is not None
        return ToolOutcome(
            "waiting", Output(ENDED_WHILE_SUSPENDED, code="cancelled"), suspension=tool_turn.wait.suspension
        )
    except BaseException as error:  # a tool may raise SystemExit; that fails its own call and nothing else
        state, output, is_told = "failed", failure_output(error), isinstance(error, ToolError)
        if isinstance(error, OutcomeUnknown):
            state = "outcome_unknown"
    if tool_turn is not None and tool_turn.steps.is_untrusted:
        output = replace(output, untrusted=True)
    # Plugins see the whole output before it is truncated, so that what they remove is not in the blob either.
    subagents = tool_turn.subagents if tool_turn is not None else None
    if subagents is None or subagents.spent is None:
        return await finish_outcome(ctx, start, limits, ToolOutcome(state, output), is_told)
    output = replace(output, untrusted=output.untrusted or subagents.is_untrusted, sensitive=subagents.is_private)
    outcome = ToolOutcome(state, output, subagents.spent, subagents.recent_calls)
    return await finish_outcome(ctx, start, limits, outcome, is_told)


def hand_over(ctx: StepHookContext, start: StartCall, handoff: Handoff) -> ToolOutcome:
    """The outcome of a call that hands the turn to another agent."""
    run = ctx.run
    if run.state.handoffs >= MAX_HANDOFFS:
        text = f"this turn was handed over {MAX_HANDOFFS} times; answer yourself"
        return ToolOutcome("failed", Output(text, code="failed"))
    try:
        options = handoff_options(run, handoff.agent)
    except ConfigError as error:
        return ToolOutcome("failed", failure_output(error))
    switch = AgentSwitched(turn=run.turn, agent=handoff.agent, options=options, call=start.call.id)
    output = Output(
        handoff.text or f"Handed over to {handoff.agent}.",
        code=HANDED_OVER,
        metadata={"agent": handoff.agent},
        origin=start.tool.spec.origin,
    )
    return ToolOutcome("completed", output, switch=switch)


def handoff_options(run: ActiveTurn, agent: str) -> TurnOptions:
    """The options of a turn that an agent takes over. The tools that were selected are those of the other agent."""
    options = run.setup.app.agent_options(agent, replace(run.state.options, tools=None))
    return switch_prompt(run.setup, options)


async def finish_outcome(
    ctx: StepHookContext, start: StartCall, limits: OutputLimits, outcome: ToolOutcome, is_told: bool = False
) -> ToolOutcome:
    """Finish an outcome: run `on_call_end`, set the origin, hide private values and truncate the output."""
    ended, spec, hooks = outcome, start.tool.spec, ctx.run.setup.hooks["on_call_end"]
    if hooks or getattr(start.tool, "after", None) is not None:
        ended = await _run_end_hooks(ctx, start, outcome.state, outcome.output)
    output = ended.output
    with_origin = replace(output, origin=spec.origin, untrusted=output.untrusted or spec.untrusted)
    try:
        shown = await prepare_output(ctx.run, spec, start.call.id, with_origin, limits, is_told=is_told)
        is_for_people = needs_review(spec, ctx.run.state.options, ended.state == "completed")
        return replace(outcome, state=ended.state, output=shown, needs_review=is_for_people)
    except Exception as error:
        log.exception("the output of call %s could not be stored", start.call.id)
        text = f"its output was too long to show and could not be kept: {error!r}"
        return replace(outcome, state="failed", output=Output(text, code="failed"))


class _CallTimeout:
    """The end of a call whose tool does not answer in time: its task is cancelled, and abandoned if it goes on."""

    __slots__ = ("_call", "_ctx", "_spec", "_task", "has_expired")

    def __init__(self, ctx: StepHookContext, call: str, spec: ToolSpec) -> None:
        self._ctx, self._call, self._spec = ctx, call, spec
        self._task = asyncio.current_task()
        self.has_expired = False

    def expire(self) -> None:
        """Cancel the tool."""
        assert self._task is not None
        self.has_expired = True
        self._task.cancel()
        # A tool that swallows its cancellation keeps running, but the turn does not wait for it.
        timed_out = ToolOutcome("failed", replace(failure_output(self.error()), origin=self._spec.origin))
        grace = self._ctx.run.setup.clock.call_later
        grace(TOOL_CANCEL_GRACE, lambda: self._ctx.give_up(self._call, timed_out))

    def error(self) -> ToolTimeout:
        """The error of the call."""
        return ToolTimeout(
            f"the tool did not answer within {self._spec.timeout:g} s; whether it took effect is unknown"
        )

    def is_own_cancellation(self) -> bool:
        """Whether the task was cancelled for this alone."""
        return self.has_expired and self._task is not None and self._task.uncancel() <= 0


async def _run_with_timeout(ctx: StepHookContext, start: StartCall) -> object:
    """Run a tool that uses no context within its timeout: it cannot wait for anybody."""
    tool = start.tool
    timeout = _CallTimeout(ctx, start.call.id, tool.spec)
    timer = ctx.run.setup.clock.call_later(tool.spec.timeout, timeout.expire)
    try:
        answer = tool.run(start.arguments, cast("ToolContext", None))
        if inspect.iscoroutine(answer):
            return await answer
        run, call = ctx.run, start.call.id
        return await _await_result(answer, lambda text: run.progress(call, text))
    except asyncio.CancelledError:
        if not timeout.is_own_cancellation():
            raise
        raise timeout.error() from None
    finally:
        timer.cancel()


async def _run_with_context(ctx: StepHookContext, tool: Tool, arguments: JsonObject, tool_turn: TurnForTool) -> object:
    """Run a tool within its timeout, which is paused while the tool waits for a person."""
    context, waiting, task = tool_turn.context(), tool_turn.wait, asyncio.current_task()
    assert task is not None
    waiting.set_task(task)
    timeout = _CallTimeout(ctx, context.call, tool.spec)
    waiting.timeout = PausableTimeout(ctx.run.setup.clock, tool.spec.timeout, timeout.expire)
    try:
        return await _await_result(tool.run(arguments, context), context.progress)
    except asyncio.CancelledError:
        waiting.is_stopped = True
        if waiting.suspension is not None and task.uncancel() == 0:
            raise ToolSuspended from None
        if not timeout.is_own_cancellation():
            raise
        raise timeout.error() from None
    except Exception:
        if waiting.suspension is not None and task.uncancel() == 0:  # it was cancelled to suspend it, and raised this
            raise ToolSuspended from None
        raise
    finally:
        waiting.timeout.stop()


async def _await_result(answer: Awaitable[object] | AsyncIterator[object], progress: Callable[[str], None]) -> object:
    if inspect.iscoroutine(answer) or not isinstance(answer, AsyncIterator):
        return await answer
    output: object = None
    try:
        async for item in answer:
            if isinstance(item, Progress):
                progress(item.text)
            else:
                output = item
    finally:
        aclose = getattr(answer, "aclose", None)
        if aclose is not None:
            await aclose()
    return output


async def _run_end_hooks(ctx: StepHookContext, start: StartCall, state: CallState, output: Output) -> ToolOutcome:
    """Run `on_call_end` on a result, a late one included; a hook that fails fails the call."""
    hooks, after = ctx.run.setup.hooks["on_call_end"], getattr(start.tool, "after", None)
    hook_ctx = CallHookContext(ctx.run, start.call, start.tool.spec, start.arguments)
    hook_ctx.output, hook_ctx.state = output, "completed" if state == "completed" else "failed"
    is_unknown = state == "outcome_unknown"
    try:
        if after is not None:
            await ctx.run.call_hook(start.tool.spec.name, "after", after, hook_ctx)
        for plugin, method in hooks:
            await ctx.run.call_hook(plugin, "on_call_end", method, hook_ctx)
        if hook_ctx.state not in ("completed", "failed"):
            raise BadOutput(f"on_call_end set the state to {hook_ctx.state!r}; there are: completed, failed")
        return ToolOutcome("outcome_unknown" if is_unknown else hook_ctx.state, normalize_output(hook_ctx.output))
    except Exception as error:
        return ToolOutcome("failed", failure_output(error))
