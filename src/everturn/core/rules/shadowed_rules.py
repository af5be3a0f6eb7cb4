"""Shadowed rules: finds rules that can never decide because another rule always does, as far as that is certain.

Rules do not name the kind of their values, so a pattern counts as wider only if it is wider for every kind.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec import Struct

from everturn.core.rules.globs import compile_text_glob, parse_glob
from everturn.core.rules.patterns import (
    MATCH_ALL_PATTERNS,
    SUBJECT_KINDS,
    Subject,
    SubjectKind,
    compile_pattern,
    explain_invalid_pattern,
    prepare_value,
)
from everturn.core.rules.policy import STRICTEST_FIRST, Rule, rule_rank


class ShadowedRule(Struct, frozen=True):
    """A rule that can never decide, because of another."""

    rule: Rule
    by: Rule
    why: str


def find_shadowed_rules(rules: Sequence[Rule]) -> list[ShadowedRule]:
    """The rules that can never decide, as far as that is certain."""
    found: list[ShadowedRule] = []
    wider = sorted(range(len(rules)), key=lambda place: STRICTEST_FIRST.index(rules[place].action))
    for place, rule in enumerate(rules):
        for other in wider:
            why = "" if other == place else _why(rule, rules[other], is_later=place > other)
            if why:
                found.append(ShadowedRule(rule, rules[other], why))
                break
    return found


def _why(rule: Rule, by: Rule, is_later: bool) -> str:
    """Why `by` shadows a rule; "" if it does not."""
    if rule.action == by.action:
        if rule.tool != by.tool or rule.match != by.match:
            return ""
        is_lower = rule_rank(rule) < rule_rank(by) if rule_rank(rule) != rule_rank(by) else not is_later
        return "it says the same" if is_lower else ""
    if STRICTEST_FIRST.index(by.action) > STRICTEST_FIRST.index(rule.action):
        return ""
    if covers_rule(by, rule):
        verb = "denies" if by.action == "deny" else "asks about"
        return f"the other {verb} everything that it fits"
    return ""


def covers_rule(wide: Rule, narrow: Rule) -> bool:
    """Whether a rule that asks or denies certainly matches every call that another rule matches."""
    return _covers_tool(wide.tool, narrow.tool) and all(
        name in narrow.match and covers_pattern(pattern, narrow.match[name], narrow.matches_loosely)
        for name, pattern in wide.match.items()
    )


def _covers_tool(wide: str, narrow: str) -> bool:
    if wide == narrow or wide in MATCH_ALL_PATTERNS:
        return True
    if "*" in narrow or "?" in narrow:
        return wide.endswith("*") and _is_plain(wide[:-1]) and narrow.startswith(wide[:-1])
    return compile_text_glob(parse_glob(wide))(narrow)


def covers_pattern(wide: str, narrow: str, generous: bool = False) -> bool:
    """Whether a pattern of a rule that asks or denies certainly matches all that a pattern of a milder rule matches."""
    if wide in MATCH_ALL_PATTERNS or wide == narrow:
        return True
    if generous and any(
        explain_invalid_pattern(narrow, kind) and not explain_invalid_pattern(wide, kind) for kind in SUBJECT_KINDS
    ):
        return False  # an invalid pattern asks about everything
    if _is_plain(narrow):
        return _fits_as_any_kind(wide, narrow)
    if ".." in narrow or "\\" in narrow or '"' in narrow or "'" in narrow:
        return False
    if wide.endswith("/**") and _is_plain(wide[:-2]) and not any(char.isspace() for char in wide + narrow):
        return narrow.startswith(wide[:-2])
    if wide.endswith(" *") and _is_plain(wide[:-1]) and "/" not in narrow and "**" not in narrow:
        return narrow.startswith(wide[:-1])
    return False


def _is_plain(pattern: str) -> bool:
    return not any(char in "*?\\\"'" for char in pattern)


def _fits_as_any_kind(wide: str, value: str) -> bool:
    """Whether a pattern matches this value, whatever its kind."""
    kinds: list[SubjectKind] = [kind for kind in SUBJECT_KINDS if not explain_invalid_pattern(value, kind)]
    return all(_fits_as(wide, value, kind) for kind in kinds)


def _fits_as(wide: str, value: str, kind: SubjectKind) -> bool:
    words = tuple(shlex.split(value)) if kind == "command" else ()
    form = prepare_value(Subject(kind, value, words))
    return form is None or compile_pattern(wide, kind, True)(form)
