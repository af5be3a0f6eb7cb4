"""Loosened rules: finds what a change of rules may allow that was asked about or denied before.

It errs on the side of caution: a rule that may loosen something counts, unless another rule certainly makes up for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from everturn.core.rules.policy import STRICTEST_FIRST, Rule
from everturn.core.rules.shadowed_rules import covers_rule


class RuleChange(Struct, frozen=True):
    """A rule that a change adds or removes, and whether that may loosen something."""

    rule: Rule
    is_added: bool
    loosens: bool


def compare_rules(before: Sequence[Rule], after: Sequence[Rule]) -> list[RuleChange]:
    """The rules that differ: first those that are removed, then those that are added. The order of rules decides nothing."""
    old, new = {_key(rule) for rule in before}, {_key(rule) for rule in after}
    removed = [
        RuleChange(rule, False, _loosens_by_going(rule, after)) for rule in _distinct(before) if _key(rule) not in new
    ]
    added = [
        RuleChange(rule, True, _loosens_by_coming(rule, before, after))
        for rule in _distinct(after)
        if _key(rule) not in old
    ]
    return removed + added


def _loosens_by_going(rule: Rule, after: Sequence[Rule]) -> bool:
    return rule.action != "allow" and not any(
        STRICTEST_FIRST.index(other.action) <= STRICTEST_FIRST.index(rule.action) and covers_rule(other, rule)
        for other in after
    )


def _loosens_by_coming(rule: Rule, before: Sequence[Rule], after: Sequence[Rule]) -> bool:
    if rule.action != "allow" or any(_allows_all_of(other, rule) for other in before):
        return False
    return not any(other.action != "allow" and covers_rule(other, rule) for other in after)


def _allows_all_of(other: Rule, rule: Rule) -> bool:
    """Whether a rule certainly allowed before what this one allows: the same with the same patterns, or with fewer."""
    if other.action != "allow" or other.tool != rule.tool:
        return False
    return other.match.items() <= rule.match.items()


def _key(rule: Rule) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return rule.tool, rule.action, tuple(sorted(rule.match.items()))


def _distinct(rules: Sequence[Rule]) -> list[Rule]:
    return list({_key(rule): rule for rule in rules}.values())
