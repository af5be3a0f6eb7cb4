"""Turns that a tool has run for it: each may do, and use, at most what the turn may that called the tool."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.calls import Call
from everturn.core.loops import TRAIL
from everturn.core.options import Authority, Budget, Lineage, Spent, TurnOptions
from everturn.core.parts import last_text
from everturn.core.ports import SubAnswer, SubTurn
from everturn.core.state import Phase, TurnState
from everturn.errors import ToolError
from everturn.turn.descent import session_below
from everturn.turn.marking import marks_before
from everturn.turn.run import Run

DEEPEST = 4


class Below:
    """What the tool of one call has asked for, and what that used."""

    def __init__(self, run: Run, call: Call) -> None:
        self._run, self._call = run, call
        self._number = 0
        self.spent: Spent | None = None
        self.trail: tuple[str, ...] = ()
        self.is_untrusted = self.is_private = False

    async def sub_turn(self, ask: SubTurn) -> SubAnswer:
        """Run a turn in a session of its own; the same one however often the call is tried.

        Raises:
            ToolError: it failed, or there is nothing left for it to use.
        """
        run = self._run
        if run.is_closed or run.state.ending is not None:
            raise ToolError("the turn that would need it is over; there is no sub-turn any more")
        self._number += 1
        below = session_below(run.session, self._call.id, self._number)
        options = options_for(run, ask, self._call, await run.taint())
        answer = await run.setup.sub_turn(below, run.ledger.tenant, options, ask.prompt)
        self.spent = answer.spent if self.spent is None else self.spent + answer.spent
        self.trail = (*self.trail, *answer.trail)[-TRAIL:]
        self.is_untrusted |= answer.untrusted
        self.is_private |= answer.private
        if answer.failure:
            raise ToolError(answer.failure)
        return answer


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
