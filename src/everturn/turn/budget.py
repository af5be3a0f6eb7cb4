"""How much may be used, by a turn, a session or a tenant, and whether it has been; and that a denied loop ends its turn.

What was used is read from the log, and so it is the same after a restart. It is looked at before every request and every
start: at most what is under way at that moment goes beyond a limit.
"""

from __future__ import annotations

from everturn.core.calls import Call
from everturn.core.events import LimitReached, Scope
from everturn.core.options import Budget, Lineage, Spent
from everturn.core.state import TurnState
from everturn.turn.below import tokens_of
from everturn.turn.run import Run

NONE = Budget()
LOOP = "doom_loop"  # the name by which rules speak of loops
LOOP_DENIED = "the same calls were made over and over, and going on with them was denied"
EXACT = 1 - 1e-9  # a dollar that was added up from cents
_OF = {
    "turn": "this turn",
    "above": "the turn above this one",
    "session": "this conversation",
    "tenant": "this account",
}


async def reached(run: Run, more: int = 0) -> LimitReached | None:
    """The limit that keeps a turn from its next request or, when so many `more` are about to start, from its next call."""
    options, settings, state = run.state.options, run.setup.settings, run.state
    if state.step is not None and any(_is_denied_loop(call) for call in state.step.calls):
        return _noticed(run, "loop", "turn", LOOP_DENIED)
    is_start = more > 0
    own = options.budget is not NONE and options.budget != NONE  # which is seldom, and the rest is not free
    if own and (found := over(run, "turn", options.budget, state.spent, more, is_start)) is not None:
        return found
    if not is_start and options.budget.seconds and run.now() >= state.started + options.budget.seconds:
        return time_over(state, run.now())
    above = options.above
    whole, _ = settings.of_tenant(run.ledger.tenant)
    if above is None and settings.session_budget == NONE and whole == NONE:
        return None
    if is_start and not (settings.session_budget.calls or whole.calls or (above and above.left.calls)):
        return None
    await run.commit([])  # what this turn has used is among what is counted
    if above is not None and (found := await _above(run, above, more, is_start)) is not None:
        return found
    return await _wider(run, above, more, is_start)


def _is_denied_loop(call: Call) -> bool:
    """Whether a call was one of a loop, and a person or a rule has denied it: the turn then ends, or it would ask on."""
    if call.state != "denied":
        return False
    is_asked = call.gate is not None and call.gate.kind == "loop"
    return is_asked or (call.judged is not None and call.judged.rule is not None and call.judged.rule.tool == LOOP)


async def _above(run: Run, above: Lineage, more: int, is_start: bool) -> LimitReached | None:
    if not is_start and above.until and run.now() >= above.until:
        return time_over(run.state, run.now())
    if above.left == NONE:
        return None
    return over(run, "above", above.left, await run.setup.store.spent(top=above.turn), more, is_start)


async def _wider(run: Run, above: Lineage | None, more: int, is_start: bool) -> LimitReached | None:
    settings, store = run.setup.settings, run.setup.store
    if settings.session_budget != NONE:
        spent = await store.spent(session=above.session if above is not None else run.session)
        if found := over(run, "session", settings.session_budget, spent, more, is_start):
            return found
    budget, period = settings.of_tenant(run.ledger.tenant)
    if budget != NONE:
        since = run.now() - period if period else 0.0
        spent = await store.spent(tenant=run.ledger.tenant, since=since)
        return over(run, "tenant", budget, spent, more, is_start)
    return None


def over(
    run: Run, scope: Scope, budget: Budget, spent: Spent, more: int = 0, is_start: bool = False
) -> LimitReached | None:
    """The first limit of a budget that is reached; before a call starts only calls are looked at."""
    if budget is NONE or budget == NONE:
        return None
    used: dict[str, float] = (
        {"calls": spent.calls + more - 1}
        if is_start
        else {
            "steps": spent.steps,
            "calls": spent.calls,
            "tokens": tokens_of(spent),
            "cost": spent.usage.cost or 0.0,
        }
    )
    for name, use in used.items():
        limit = getattr(budget, name)
        if limit and use >= limit * EXACT:
            unit = f"{limit:g} US dollars" if name == "cost" else f"{limit:,} {name}"
            what = name if scope == "above" else unit
            return _noticed(run, name, scope, f"the limit of {what} for {_OF[scope]} is reached")
    return None


def time_over(state: TurnState, now: float) -> LimitReached:
    """The time is over: its own, or that of the turn above."""
    seconds = state.options.budget.seconds
    is_own = bool(seconds) and now >= state.started + seconds
    text = f"the limit of {seconds:g} seconds for this turn" if is_own else f"the limit of time for {_OF['above']}"
    scope: Scope = "turn" if is_own else "above"
    return LimitReached(turn=state.id, at=now, limit="seconds", scope=scope, text=f"{text} is reached")


def _noticed(run: Run, limit: str, scope: Scope, text: str) -> LimitReached:
    return LimitReached(turn=run.turn, at=run.now(), limit=limit, scope=scope, text=text)
