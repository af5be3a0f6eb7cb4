"""A call that nobody has made → what would become of it, by the very rules that turns are judged by. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from everturn.core.canonical import JsonObject
from everturn.core.options import TurnOptions
from everturn.core.policy import Judgement, Policy, Rule
from everturn.core.requests import ToolSpec
from everturn.permissions import explaining
from everturn.turn.permit import Permits, is_acting

MOST: Final = 64  # cases and rules that are told


class Explained(Struct, frozen=True):
    """What was decided, on what, and all of it in lines for a person."""

    judgement: Judgement
    each: Sequence[Judgement]
    others: Sequence[Rule]  # that fit some case, and do not decide
    lines: list[str]
    uncovered: Sequence[tuple[str, Rule]] = ()  # the parts that no rule covers, each with one that would


async def explained(
    permits: Permits,
    tool: ToolSpec,
    given: JsonObject,
    meant: JsonObject,
    options: TurnOptions,
    granted: Sequence[Rule] = (),
) -> Explained:
    """Judge a call as a turn with these options would: by `Permits.decide`, as turns do.

    `meant` is what the tool makes of what is `given`: with its defaults, and numbers for what only looks like one.
    """

    async def grants() -> Sequence[Rule]:
        return granted

    decided = await permits.decide(tool, given, meant, options, grants)
    judged, cases = decided.judgement, list(decided.cases)
    if not cases and judged.action == "deny" and judged.rule is None:  # it could not be read, so no rule was looked at
        return Explained(judged, (), (), explaining.explain(Policy(()), tool.name, given, [], judged))
    cases = cases or [{}]
    said = Permits().judge(tool, cases, TurnOptions()).rule  # what the tool says of itself
    own = [said] if said is not None else []
    policy, acts = Policy([*own, *permits.policy.rules, *options.rules, *granted]), is_acting(tool)
    others: list[Rule] = []
    for case in cases[:MOST]:
        others += [rule for rule in policy.fitting(tool.name, case, acts) if rule != judged.rule and rule not in others]
    each = list(policy.judge_each(tool.name, cases, acts))[:MOST]
    lines = explaining.explain(policy, tool.name, meant, cases, judged, acts)
    open_parts = explaining.uncovered(tool.name, each, cases) if judged.action == "ask" and judged.rule is None else ()
    return Explained(judged, each, others[:MOST], lines, open_parts)
