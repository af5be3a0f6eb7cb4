"""Budgets of a turn, a session and a tenant: finds the limit that a turn has reached. A denied loop counts as a limit.

Usage is read from the log, so it is the same after a restart. The check runs before every request and every call:
at most the work in progress at that moment exceeds a limit.
"""

from __future__ import annotations

from everturn.core.calls import CallRecord
from everturn.core.events import LimitReached, Scope
from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.options import NO_BUDGET, Budget, Lineage, Spent
from everturn.core.state import TurnState
from everturn.running.active_turn import ActiveTurn

LOOP_DENIED = "the same calls were made over and over, and going on with them was denied"
FLOAT_TOLERANCE = 1 - 1e-9  # tolerance for sums of floats
_OF = {
    "turn": "this turn",
    "parent": "the parent turn",
    "session": "this conversation",
    "tenant": "this account",
}


def has_limits(run: ActiveTurn) -> bool:
    """Whether a limit could stop a turn now: it has a budget, or a loop was denied. Most turns have neither."""
    state, settings = run.state, run.setup.settings
    options = state.options
    if options.budget is not NO_BUDGET and options.budget != NO_BUDGET:
        return True
    if options.lineage is not None or settings.session_budget != NO_BUDGET:
        return True
    if settings.tenant_limits(run.ledger.tenant)[0] != NO_BUDGET:
        return True
    if state.step is not None:
        for call in state.step.calls:
            if call.state == "denied":
                return True
    return False


async def find_reached_limit(run: ActiveTurn, more: int = 0) -> LimitReached | None:
    """The limit that stops a turn before its next request or, with `more` calls about to start, before its next call."""
    options, settings, state = run.state.options, run.setup.settings, run.state
    if state.step is not None and any(_is_denied_loop(call) for call in state.step.calls):
        return _limit_event(run, "loop", "turn", LOOP_DENIED)
    is_start = more > 0
    has_own_budget = options.budget is not NO_BUDGET and options.budget != NO_BUDGET  # rare, and the check has a cost
    if has_own_budget and (limit := check_budget(run, "turn", options.budget, state.spent, more, is_start)) is not None:
        return limit
    if not is_start and options.budget.seconds and run.now() >= state.started + options.budget.seconds:
        return time_limit_event(state, run.now())
    above = options.lineage
    tenant_budget, _ = settings.tenant_limits(run.ledger.tenant)
    if above is None and settings.session_budget == NO_BUDGET and tenant_budget == NO_BUDGET:
        return None
    if is_start and not (settings.session_budget.calls or tenant_budget.calls or (above and above.left.calls)):
        return None
    await run.commit([])  # so that the store counts what this turn has used
    if above is not None and (limit := await _parent_limit(run, above, more, is_start)) is not None:
        return limit
    return await _session_or_tenant_limit(run, above, more, is_start)


def _is_denied_loop(call: CallRecord) -> bool:
    """Whether a person or a rule denied a call as a loop: the turn then ends, or it would keep asking."""
    if call.state != "denied":
        return False
    is_asked = call.gate is not None and call.gate.kind == "loop"
    return is_asked or (
        call.decision is not None and call.decision.rule is not None and call.decision.rule.tool == LOOP_RULE_NAME
    )


async def _parent_limit(run: ActiveTurn, above: Lineage, more: int, is_start: bool) -> LimitReached | None:
    if not is_start and above.until and run.now() >= above.until:
        return time_limit_event(run.state, run.now())
    if above.left == NO_BUDGET:
        return None
    return check_budget(run, "parent", above.left, await run.setup.store.spent(top=above.turn), more, is_start)


async def _session_or_tenant_limit(
    run: ActiveTurn, above: Lineage | None, more: int, is_start: bool
) -> LimitReached | None:
    settings, store = run.setup.settings, run.setup.store
    if settings.session_budget != NO_BUDGET:
        spent = await store.spent(session=above.session if above is not None else run.session)
        if limit := check_budget(run, "session", settings.session_budget, spent, more, is_start):
            return limit
    budget, period = settings.tenant_limits(run.ledger.tenant)
    if budget != NO_BUDGET:
        since = run.now() - period if period else 0.0
        spent = await store.spent(tenant=run.ledger.tenant, since=since)
        return check_budget(run, "tenant", budget, spent, more, is_start)
    return None


def check_budget(
    run: ActiveTurn, scope: Scope, budget: Budget, spent: Spent, more: int = 0, is_start: bool = False
) -> LimitReached | None:
    """The first limit of a budget that is reached; before a call starts only the limit of calls counts."""
    if budget is NO_BUDGET or budget == NO_BUDGET:
        return None
    used: dict[str, float] = (
        {"calls": spent.calls + more - 1}
        if is_start
        else {
            "steps": spent.steps,
            "calls": spent.calls,
            "tokens": spent.tokens,
            "cost": spent.usage.cost or 0.0,
        }
    )
    for name, amount in used.items():
        limit = getattr(budget, name)
        if limit and amount >= limit * FLOAT_TOLERANCE:
            unit = f"{limit:g} US dollars" if name == "cost" else f"{limit:,} {name}"
            label = name if scope == "parent" else unit
            return _limit_event(run, name, scope, f"the limit of {label} for {_OF[scope]} is reached")
    return None


def time_limit_event(state: TurnState, now: float) -> LimitReached:
    """The event for a used-up time budget: the turn's own, or its parent's."""
    seconds = state.options.budget.seconds
    is_own = bool(seconds) and now >= state.started + seconds
    text = f"the limit of {seconds:g} seconds for this turn" if is_own else f"the limit of time for {_OF['parent']}"
    scope: Scope = "turn" if is_own else "parent"
    return LimitReached(turn=state.id, at=now, limit="seconds", scope=scope, text=f"{text} is reached")


def _limit_event(run: ActiveTurn, limit: str, scope: Scope, text: str) -> LimitReached:
    return LimitReached(turn=run.turn, at=run.now(), limit=limit, scope=scope, text=text)
