"""Explanation of permissions: how the rules of a turn would decide on a call. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.options import TurnOptions
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Policy, PolicyDecision, Rule
from everturn.permissions import explain
from everturn.plugins.tool_calling import GROUPS_OFF
from everturn.running.permissions import PLAN_REASON, Permissions, needs_named_rule

MOST: Final = 64  # cases and rules that are reported


class Explanation(Struct, frozen=True):
    """The decision on a call, the decision on each of its cases, and lines for a person."""

    decision: PolicyDecision
    case_decisions: Sequence[PolicyDecision]
    other_rules: Sequence[Rule]  # rules that match a case, and do not decide
    lines: list[str]
    uncovered: Sequence[tuple[str, Rule]] = ()  # the parts that no rule covers, each with a rule that would


def agent_warnings(
    permits: Permissions, enabled: Mapping[str, Tool], registered: Mapping[str, Tool], options: TurnOptions
) -> list[str]:
    """What an agent with these options lacks whatever is called: tools that rules deny outright, or all of them."""
    if options.tools == () or not registered:
        return []
    offered = {spec.name for spec in permits.offered_tools(enabled, options)}
    denied = ", ".join(sorted(enabled.keys() - offered))
    warnings = [f"not offered to the model, because rules deny every call: {denied}"] if denied else []
    if not offered:
        warnings.append("this agent can use no tools, though there are some" + ("" if denied else f": {GROUPS_OFF}"))
    return warnings


async def explain_call(
    permits: Permissions,
    tool: ToolSpec,
    arguments: JsonObject,
    validated: JsonObject,
    options: TurnOptions,
    granted: Sequence[Rule] = (),
) -> Explanation:
    """Decide on a call as a turn with these options would, by `Permissions.decide`.

    `arguments` are the raw ones; `validated` are those as the tool reads them, with defaults and converted numbers.
    """

    async def grants() -> Sequence[Rule]:
        return granted

    decided = await permits.decide(tool, arguments, validated, options, grants)
    decision, cases = decided.decision, list(decided.cases)
    if (
        not cases and decision.action == "deny" and decision.rule is None
    ):  # the arguments could not be parsed, so no rule was evaluated
        return Explanation(decision, (), (), explain.explain_decision(Policy(()), tool.name, arguments, [], decision))
    cases = cases or [{}]
    tool_rule = Permissions().decide_cases(tool, cases, TurnOptions()).rule  # the tool's own default
    own = [tool_rule] if tool_rule is not None else []
    policy, acts = Policy([*own, *permits.policy.rules, *options.rules, *granted]), needs_named_rule(tool)
    others: list[Rule] = []
    for case in cases[:MOST]:
        others += [
            rule
            for rule in policy.matching_rules(tool.name, case, acts)
            if rule != decision.rule and rule not in others
        ]
    each = list(policy.decide_each(tool.name, cases, acts))[:MOST]
    lines = explain.explain_decision(policy, tool.name, validated, cases, decision, acts)
    if decision.reason == PLAN_REASON.format(tool=tool.name):  # no rule changes that
        lines[-1] = "  to change it: another mode, ask or auto-edit"
    open_parts = (
        explain.uncovered_parts(tool.name, each, cases) if decision.action == "ask" and decision.rule is None else ()
    )
    return Explanation(decision, each, others[:MOST], lines, open_parts)
