"""A call that nobody has made → what would become of it, by the very rules that turns are judged by. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from everturn.core.canonical import JsonObject
from everturn.core.options import TurnOptions
from everturn.core.policy import Case, Judgement, Policy, Rule
from everturn.core.requests import ToolSpec
from everturn.errors import ToolError
from everturn.permissions import explaining
from everturn.turn.permit import Permits

MOST: Final = 64  # cases and rules that are told


class Explained(Struct, frozen=True):
    """What was decided, on what, and all of it in lines for a person."""

    judgement: Judgement
    each: Sequence[Judgement]
    others: Sequence[Rule]  # that fit some case, and do not decide
    lines: list[str]


def explained(
    permits: Permits, spec: ToolSpec, arguments: JsonObject, options: TurnOptions, granted: Sequence[Rule]
) -> Explained:
    """Judge a call as a turn with these options would."""
    try:
        cases = permits.cases(spec, arguments, options, granted)
    except ToolError as error:
        judged = Judgement("deny", is_final=True, reason=str(error))
        return Explained(judged, (), (), explaining.explain(Policy(()), spec.name, arguments, [], judged))
    judged = permits.judge(spec, cases, options, granted)
    said = Permits().judge(spec, cases, TurnOptions()).rule  # what the tool says of itself
    own = [said] if said is not None else []
    policy = Policy([*own, *permits.policy.rules, *options.rules, *granted])
    others: list[Rule] = []
    empty: list[Case] = [{}]
    for case in (cases or empty)[:MOST]:
        others += [rule for rule in policy.fitting(spec.name, case) if rule != judged.rule and rule not in others]
    each = list(policy.judge_each(spec.name, cases))[:MOST]
    return Explained(judged, each, others[:MOST], explaining.explain(policy, spec.name, arguments, cases, judged))
