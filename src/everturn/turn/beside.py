"""One answer → what else it answers: an `always` covers other gates, and a denial may be one of everything beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from everturn.core.asking import Gate, Grant, Verdict
from everturn.core.canonical import parse_object
from everturn.core.events import TurnStarted
from everturn.core.options import TurnOptions
from everturn.core.policy import Rule
from everturn.core.state import TurnState
from everturn.errors import EverturnError, UnknownSession
from everturn.turn.descent import sessions_below
from everturn.turn.run import Setup


def grant_of(setup: Setup, state: TurnState, gate: Gate, verdict: Verdict, session: str, now: float) -> Grant | None:
    """What is remembered of an answer: in the session at the top, or everywhere.

    A command that was allowed is allowed to the user who asked for the turn: whoever answered saw who had asked.
    """
    if verdict.grant is None:
        return None
    above = state.options.above
    home = above.session if above is not None else session
    rule = replace(verdict.grant, layer="grants", source=gate.id)
    where = "" if verdict.everywhere else home
    tool = setup.tool_named(gate.tool)
    takes_commands = tool is not None and "command" in tool.spec.subjects.values()
    asker = state.options.by if takes_commands else ""
    return Grant(gate.id, rule, where, verdict.by, now, verdict.until, gate.tool, gate.identity, asker)


def same(answered: Gate, verdict: Verdict) -> Verdict:
    """The same word, for another gate."""
    return Verdict(verdict.allowed, verdict.reason, by=f"{verdict.by or 'a person'}, with {answered.id}")


async def is_answered(setup: Setup, gate: Gate, options: TurnOptions, grants: Sequence[Rule] | None) -> bool:
    """Whether a gate is answered by the same word: all calls by a denial of all, those that are covered by grants."""
    if grants is None:
        return gate.kind not in ("result", "question")
    tool, arguments = setup.tool_named(gate.tool), parse_object(gate.arguments)
    # One without offers is asked every time; and what a reference leads to nobody has judged here.
    if (
        gate.kind not in ("call", "loop")
        or not gate.offers
        or "$ref{" in gate.arguments
        or "$private{" in gate.arguments
    ):
        return False
    if tool is None or arguments is None or tool.spec.egress or setup.permits.identity(tool.spec) != gate.identity:
        return False
    if gate.kind == "loop" and setup.permits.judge_loop(gate.tool, options, grants).action != "allow":
        return False
    try:
        arguments = tool.validate(arguments) or arguments
        cases = await setup.permits.read_cases(tool.spec, arguments, options, grants)
    except EverturnError:
        return False
    return setup.permits.judge(tool.spec, cases, options, grants).action == "allow"


async def elsewhere(setup: Setup, session: str) -> list[tuple[Gate, TurnOptions]]:
    """What is asked in other sessions, with what was decided for its turn."""
    return await _asked(setup, [row.gate for row in await setup.store.gates() if row.gate.session != session])


async def below(setup: Setup, session: str, states: Iterable[TurnState]) -> list[tuple[Gate, TurnOptions]]:
    """What is asked in the sub-turns of turns, and in theirs."""
    found: list[Gate] = []
    for name in await sessions_below(setup.store, session, states):
        found += [row.gate for row in await setup.store.gates(name)]
    return await _asked(setup, found)


async def _asked(setup: Setup, gates: Iterable[Gate]) -> list[tuple[Gate, TurnOptions]]:
    found: list[tuple[Gate, TurnOptions]] = []
    for gate in gates:
        try:
            first = next(iter(await setup.store.events(gate.session, turn=gate.turn)), None)
        except UnknownSession:  # it was erased meanwhile
            continue
        if first is not None and isinstance(first.event, TurnStarted):
            found.append((gate, first.event.options))
    return found
