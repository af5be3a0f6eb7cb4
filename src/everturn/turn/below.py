"""Turns that a tool has run for it: each may do, and use, at most what the turn may that called the tool."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from everturn.core.calls import Call
from everturn.core.events import CallBelow, CallStarted
from everturn.core.loops import TRAIL
from everturn.core.options import Authority, Budget, Lineage, Spent, TurnOptions
from everturn.core.parts import last_text
from everturn.core.ports import SubAnswer, SubTurn
from everturn.core.state import Phase, TurnState
from everturn.errors import BadArguments, ToolError, UnknownSession
from everturn.turn.aside import Waiting
from everturn.turn.descent import session_below
from everturn.turn.marking import marks_before
from everturn.turn.run import Asked, Run

DEEPEST = 4
BELOW = "below"  # begins the key of the message that begins a sub-turn


class Below:
    """What the tool of one call has asked for, and what that used."""

    def __init__(self, call: Call, waiting: Waiting) -> None:
        self._id, self._waiting = call.id, waiting
        self._number = 0
        self.spent: Spent | None = None
        self.trail: tuple[str, ...] = ()
        self.is_untrusted = self.is_private = False

    async def sub_turn(self, ask: SubTurn) -> SubAnswer:
        """Run a turn in a session of its own; the same one however often the call is tried.

        Raises:
            ToolError: it failed, or there is nothing left for it to use.
        """
        self._number += 1
        number, run = self._number, self._waiting.run
        options = options_for(run, ask, run.state.calls[self._id], await run.taint())
        session, turn = await self._place(ask, number)
        key = f"{BELOW}:{self._id}:{number}"
        asked = Asked(session, turn, key, run.ledger.tenant, options, ask.prompt)
        answer = await self._wait(asked, ask.detached)
        self.spent = answer.spent if self.spent is None else self.spent + answer.spent
        self.trail = (*self.trail, *answer.trail)[-TRAIL:]
        self.is_untrusted |= answer.untrusted
        self.is_private |= answer.private
        if answer.failure:
            raise ToolError(answer.failure)
        return answer

    async def _place(self, ask: SubTurn, number: int) -> tuple[str, str]:
        """The session and the turn that it is run as, written down before it is asked for."""
        waiting, name = self._waiting, self._id
        run = waiting.run
        if (known := run.state.calls[name].below.get(number)) is not None:
            return known
        session = ask.session or session_below(run.session, name, number)
        if ask.session:
            await self._check_own(run, session)
        turn = run.setup.ids.new("turn")
        event = CallBelow(turn=run.turn, at=run.now(), call=name, session=session, below=turn, number=number)
        await waiting.write(lambda: [] if number in waiting.run.state.calls[name].below else [event])
        return waiting.run.state.calls[name].below[number]

    async def _check_own(self, run: Run, session: str) -> None:
        """Only a sub-turn of this conversation, begun by the same tool and over, can be gone on with."""
        tools: dict[str, str] = {}
        mine = run.state.calls[self._id].started
        assert mine is not None
        is_own = False
        for entry in await run.setup.store.events(run.session):
            if isinstance(entry.event, CallStarted):
                tools[entry.event.call] = entry.event.tool
            elif isinstance(entry.event, CallBelow) and entry.event.session == session:
                is_own = tools.get(entry.event.call) == mine.tool
        if not is_own:
            raise BadArguments(f"there is no sub-turn {session[:80]!r} of this tool that could be gone on with")
        try:
            is_busy = await run.setup.store.open_turns(session) or await run.setup.store.inbox(session)
        except UnknownSession:
            raise BadArguments(f"there is no sub-turn {session[:80]!r} that could be gone on with") from None
        if is_busy:
            raise ToolError("that sub-turn is still under way; wait for its answer first")

    async def _wait(self, asked: Asked, is_detached: bool) -> SubAnswer:
        """Have it run to its end, put aside while it waits for a person."""
        waiting, setup = self._waiting, self._waiting.run.setup
        try:
            while True:
                answer = await setup.sub_turn(asked, waiting.can_resume, lambda: is_detached or not waiting.is_over)
                if answer is not None:
                    return answer
                await waiting.leave("below", asked.turn)
        except asyncio.CancelledError:
            if waiting.aside is None and not is_detached:
                await setup.end_below(asked)
            raise


def options_for(run: Run, ask: SubTurn, call: Call, taint: tuple[bool, bool]) -> TurnOptions:
    """What is decided for a sub-turn."""
    options, above = run.state.options, run.state.options.above
    if above is not None and above.depth >= DEEPEST:
        raise ToolError(f"this is a sub-turn of depth {above.depth}; there can be none below it")
    own = marks_before(run.state.calls, call, run.setup.tool_named)
    lineage = Lineage(
        session=above.session if above is not None else run.session,
        turn=above.turn if above is not None else run.turn,
        depth=above.depth + 1 if above is not None else 1,
        left=above.left if above is not None else _left(options.budget, run.state.own),
        until=options.until(run.state.started),
        within=(*(above.within if above is not None else ()), Authority(options.rules, options.tools)),
        trail=(*(above.trail if above is not None else ()), *own)[-TRAIL:],
        untrusted=taint[0],
        private=taint[1],
        by=(run.session, run.turn, call.id),
        is_detached=ask.detached,
    )
    return TurnOptions(
        model=ask.model or options.model,
        max_steps=ask.max_steps,
        system=ask.system,
        gate_timeout=options.gate_timeout,
        tools=None if ask.tools is None else tuple(ask.tools),
        rules=tuple(replace(rule, layer="agent") for rule in ask.rules),
        result=options.result,
        by_hand=options.by_hand,
        budget=ask.budget if above is None else _narrowed(ask.budget, _left(options.budget, run.state.spent)),
        above=lineage,
        clients=options.clients,
        by=options.by,
    )


def _left(budget: Budget, spent: Spent) -> Budget:
    """What is left of a budget; a part of it without a limit stays without one."""
    used = {"steps": spent.steps, "calls": spent.calls, "tokens": tokens_of(spent), "cost": spent.usage.cost or 0.0}
    left = {name: getattr(budget, name) - use for name, use in used.items() if getattr(budget, name)}
    for name, rest in left.items():
        if rest <= 0:
            raise ToolError(f"the limit of {name} for this turn is reached; there is nothing left for a sub-turn")
    return Budget(**left)


def _narrowed(budget: Budget, left: Budget) -> Budget:
    """A budget that is no wider than what is left of another."""
    limits = {name: (getattr(budget, name), getattr(left, name)) for name in Budget.__struct_fields__}
    return Budget(**{name: min((limit for limit in pair if limit), default=0) for name, pair in limits.items()})


def tokens_of(spent: Spent) -> int:
    """Tokens in and out."""
    return spent.usage.input + spent.usage.output


def answer_of(session: str, state: TurnState) -> SubAnswer:
    """What became of a sub-turn that is over."""
    failure = ""
    if state.phase is not Phase.COMPLETED:
        problem = state.ending.problem if state.ending is not None else None
        failure = f"the sub-turn ended as {state.phase}" + (f": {problem.text}" if problem is not None else "")
    answers = [message for message in state.messages.values() if message.role == "assistant"]
    return SubAnswer(
        session,
        state.id,
        last_text(answers[-1].parts) if answers else "",
        state.spent,
        untrusted=state.has_untrusted,
        private=state.has_private,
        trail=tuple(mark for call in state.calls.values() for mark in call.trail or (call.mark,))[-TRAIL:],
        failure=failure,
    )
