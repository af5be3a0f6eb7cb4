"""Sub-agent runs of a tool: each may do and use at most what the parent turn may."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from everturn.calls.loop_guard import recent_fingerprints
from everturn.calls.suspend import ToolWait
from everturn.core.calls import CallRecord
from everturn.core.events import CallStarted, SubagentStarted
from everturn.core.loop_detection import RECENT_CALLS
from everturn.core.options import WORKFLOW_MODEL, Budget, Lineage, Spent, TurnOptions, TurnPermissions
from everturn.core.parts import final_text
from everturn.core.phases import Phase
from everturn.core.ports import SubagentRequest, SubagentResult
from everturn.core.state import TurnState
from everturn.errors import BadArguments, ToolError, UnknownSession
from everturn.running.active_turn import ActiveTurn
from everturn.running.drive_setup import SubagentRun
from everturn.running.subagent_index import subagent_session_id

MAX_SUBAGENT_DEPTH = 4
SUBAGENT_KEY_PREFIX = "below"  # prefix of the key of the command that starts a run


class CallSubagents:
    """The sub-agent runs of one call, and what they used."""

    def __init__(self, call: CallRecord, waiting: ToolWait) -> None:
        self._id, self._waiting = call.id, waiting
        self._number = 0
        self.spent: Spent | None = None
        self.recent_calls: tuple[str, ...] = ()
        self.is_untrusted = self.is_private = False

    async def run_subagent(self, ask: SubagentRequest) -> SubagentResult:
        """Run a sub-agent in a session of its own; every attempt of the call gets the same run.

        Raises:
            ToolError: the run failed, or no budget is left for it.
        """
        self._number += 1
        number, run = self._number, self._waiting.run
        options = subagent_options(run, ask, run.state.calls[self._id], await run.taint())
        session, turn = await self._place(ask, number)
        key = f"{SUBAGENT_KEY_PREFIX}:{self._id}:{number}"
        child_run = SubagentRun(session, turn, key, run.ledger.tenant, options, ask.prompt)
        answer = await self._wait(child_run, ask.detached)
        self.spent = answer.spent if self.spent is None else self.spent + answer.spent
        self.recent_calls = (*self.recent_calls, *answer.recent_calls)[-RECENT_CALLS:]
        self.is_untrusted |= answer.untrusted
        self.is_private |= answer.private
        if answer.failure:
            raise ToolError(answer.failure)
        return answer

    async def _place(self, ask: SubagentRequest, number: int) -> tuple[str, str]:
        """The session and turn of the run, written to the log before it is requested."""
        waiting, name = self._waiting, self._id
        run = waiting.run
        if (known := run.state.calls[name].children.get(number)) is not None:
            return known
        session = ask.session or subagent_session_id(run.session, name, number)
        if ask.session:
            await self._check_own(run, session)
        turn = run.setup.ids.new("turn")
        event = SubagentStarted(turn=run.turn, at=run.now(), call=name, session=session, child=turn, number=number)
        await waiting.write(lambda: [] if number in waiting.run.state.calls[name].children else [event])
        return waiting.run.state.calls[name].children[number]

    async def _check_own(self, run: ActiveTurn, session: str) -> None:
        """Check that a session may be continued: a finished run of this conversation, started by the same tool."""
        started = run.state.calls[self._id].started
        assert started is not None
        if await self._tool_of(run, session) != started.tool:
            raise BadArguments(f"there is no sub-agent run {session[:80]!r} of this tool that could be continued")
        try:
            is_busy = await run.setup.store.open_turns(session) or await run.setup.store.inbox(session)
        except UnknownSession:
            raise BadArguments(f"there is no sub-agent run {session[:80]!r} that could be continued") from None
        if is_busy:
            raise ToolError("that sub-agent run is still running; wait for its answer first")

    async def _tool_of(self, run: ActiveTurn, session: str) -> str | None:
        """The tool that last started a session of this conversation; None if none did."""
        store = run.setup.store
        events = [entry.event for entry in await store.indexed_events(run.session, "subagent", session)]
        if not events or not isinstance(last := events[-1], SubagentStarted):
            return None
        calls = [entry.event for entry in await store.events(run.session, turn=last.turn)]
        return next((call.tool for call in calls if isinstance(call, CallStarted) and call.call == last.call), None)

    async def _wait(self, child_run: SubagentRun, is_detached: bool) -> SubagentResult:
        """Wait for the end of the run; suspend the tool while the run waits for a person."""
        waiting, setup = self._waiting, self._waiting.run.setup
        try:
            while True:
                answer = await setup.subagents.run(
                    child_run, waiting.can_resume, lambda: is_detached or not waiting.is_over
                )
                if answer is not None:
                    return answer
                await waiting.suspend("below", child_run.turn)
        except asyncio.CancelledError:
            if waiting.suspension is None and not is_detached:
                await setup.subagents.cancel(child_run)
            raise


def subagent_options(run: ActiveTurn, ask: SubagentRequest, call: CallRecord, taint: tuple[bool, bool]) -> TurnOptions:
    """The turn options of a sub-agent run."""
    options, above = run.state.options, run.state.options.lineage
    if above is not None and above.depth >= MAX_SUBAGENT_DEPTH:
        raise ToolError(
            f"this is a sub-agent run of depth {above.depth}, which is the limit: it cannot start another one"
        )
    own = recent_fingerprints(run.state.calls, call, run.setup.app.find_tool)
    lineage = Lineage(
        session=above.session if above is not None else run.session,
        turn=above.turn if above is not None else run.turn,
        depth=above.depth + 1 if above is not None else 1,
        left=above.left if above is not None else _left(options.budget, run.state.own_usage),
        until=options.until(run.state.started),
        ancestors=_ancestors(options, ask),
        recent_calls=(*(above.recent_calls if above is not None else ()), *own)[-RECENT_CALLS:],
        untrusted=taint[0],
        private=taint[1],
        by=(run.session, run.turn, call.id),
        is_detached=ask.detached,
    )
    base = TurnOptions(
        model=ask.model or ("" if options.model == WORKFLOW_MODEL else options.model),
        max_steps=ask.max_steps,
        system=ask.system,
        gate_timeout=options.gate_timeout,
        tools=None if ask.tools is None else tuple(ask.tools),
        rules=tuple(replace(rule, layer="agent") for rule in ask.rules),
        review=options.review,
        manual=options.manual,
        lineage=lineage,
        clients=options.clients,
        by=options.by,
        folder=options.folder,
        mode=options.mode,
        metadata={**(options.metadata or {}), **(ask.metadata or {})} or None,
        trace=options.trace,
        priority=options.priority,
    )
    budget = ask.budget
    if ask.agent:  # it has its own tools; what it may do is still decided by the rules on the way down
        base = run.setup.app.agent_options(ask.agent, replace(base, model="", tools=None))
        base = replace(base, clients=(), model=base.model or options.model)
        budget = ask.budget.narrowed(base.budget)
    return replace(base, budget=budget if above is None else budget.narrowed(_left(options.budget, run.state.spent)))


def _ancestors(options: TurnOptions, ask: SubagentRequest) -> tuple[TurnPermissions, ...]:
    """What the parent turns let a run reach: their rules and, for a run that selects tools by name, their tools."""
    above = options.lineage.ancestors if options.lineage is not None else ()
    ancestors = (*above, TurnPermissions(options.rules, options.tools, options.mode))
    return tuple(replace(parent, tools=None) for parent in ancestors) if ask.agent else ancestors


def _left(budget: Budget, spent: Spent) -> Budget:
    """The rest of a budget; a field without a limit stays without one."""
    used = {"steps": spent.steps, "calls": spent.calls, "tokens": spent.tokens, "cost": spent.usage.cost or 0.0}
    left = {name: getattr(budget, name) - use for name, use in used.items() if getattr(budget, name)}
    for name, rest in left.items():
        if rest <= 0:
            raise ToolError(f"the limit of {name} for this turn is reached, so no sub-agent run can start")
    return Budget(**left)


def subagent_result(session: str, state: TurnState) -> SubagentResult:
    """The result of a finished sub-agent run."""
    failure = ""
    if state.phase is not Phase.COMPLETED:
        problem = state.ending.problem if state.ending is not None else None
        failure = f"the sub-agent run ended as {state.phase}" + (f": {problem.text}" if problem is not None else "")
    answers = [message for message in state.messages.values() if message.role == "assistant"]
    return SubagentResult(
        session,
        state.id,
        final_text(answers[-1].parts) if answers else "",
        state.spent,
        untrusted=state.has_untrusted,
        private=state.has_private,
        recent_calls=tuple(mark for call in state.calls.values() for mark in call.recent_calls or (call.mark,))[
            -RECENT_CALLS:
        ],
        failure=failure,
    )
