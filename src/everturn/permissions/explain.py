"""Explanation of a permission decision: why a call is allowed, needs approval or is denied, as lines for a person."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.rules.patterns import exact_pattern
from everturn.core.rules.policy import Policy, PolicyDecision, Rule, SubjectCase

__all__ = ["escape_invisible", "explain_decision", "uncovered_parts"]

LONGEST = 200  # of one value, in characters
MOST_SHOWN = 16  # cases, and rules that did not decide

# Invisible characters that their Unicode category does not reveal.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def escape_invisible(text: str, longest: int = LONGEST) -> str:
    """The text with all characters escaped that are invisible, or that change the text direction: `\\u202e`."""
    shown = "".join(char if _is_seen(char) else _code(char) for char in text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text) - longest:,} more)"


def explain_decision(
    policy: Policy,
    tool: str,
    arguments: JsonObject,
    cases: Sequence[SubjectCase],
    decision: PolicyDecision,
    is_acting: bool = False,
) -> list[str]:
    """Explain the decision on a call: which rule decided, which others match, and what would change it."""
    each = list(policy.decide_each(tool, cases or ({},), is_acting))
    return [
        f"{escape_invisible(tool)}: {decision.action}",
        f"  arguments: {escape_invisible(_json(arguments))}",
        *_deciding(decision),
        *_cases(each),
        *_losers(policy, tool, cases or ({},), decision, is_acting),
        *_too_wide(policy, is_acting),
        f"  to change it: {_change(tool, cases, each, decision)}",
    ]


def _deciding(decision: PolicyDecision) -> Iterator[str]:
    if decision.rule is not None:
        yield f"  decided by {_named(decision.rule)}"
    else:
        yield f"  because {escape_invisible(decision.reason)}"
    if decision.case:
        yield f"  on {_pairs(decision.case)}"


def _cases(each: Sequence[PolicyDecision]) -> Iterator[str]:
    """Each case with its own decision, if there is more than one."""
    if len(each) < 2:
        return
    for number, decision in enumerate(each[:MOST_SHOWN], 1):
        by = f"by {_named(decision.rule)}" if decision.rule else escape_invisible(decision.reason)
        yield f"  case {number} of {len(each)}: {_pairs(decision.case)}: {decision.action}, {by}"
    if len(each) > MOST_SHOWN:
        yield f"  … and {len(each) - MOST_SHOWN} more cases"


def uncovered_parts(tool: str, each: Sequence[PolicyDecision], cases: Sequence[SubjectCase]) -> list[tuple[str, Rule]]:
    """The parts of a call that no rule covers, each with the narrowest rule that would; none where all are covered."""
    parts: dict[str, Rule] = {}
    for case, decision in zip(cases, each, strict=False):
        if decision.action == "ask" and decision.rule is None:
            parts.setdefault(_pairs(decision.case), _allowing(tool, case))
    return list(parts.items())


def _too_wide(policy: Policy, is_acting: bool) -> Iterator[str]:
    """A rule that looks as if it covered the call, and does not."""
    for rule in policy.rules:
        if is_acting and not rule.matches_loosely and rule.is_for_every_tool:
            yield f"  does not cover a tool that acts, for it names none: {_named(rule)}"


def _losers(
    policy: Policy, tool: str, cases: Sequence[SubjectCase], decision: PolicyDecision, is_acting: bool
) -> Iterator[str]:
    """The other rules that match some case."""
    fitting = [rule for case in cases for rule in policy.matching_rules(tool, case, is_acting)]
    lost: list[Rule] = []
    for rule in fitting:
        if rule != decision.rule and rule not in lost:
            lost.append(rule)
    for rule in lost[:MOST_SHOWN]:
        yield f"  fits as well, and does not decide: {_named(rule)}"
    if len(lost) > MOST_SHOWN:
        yield f"  … and {len(lost) - MOST_SHOWN} more rules"


def _change(tool: str, cases: Sequence[SubjectCase], each: Sequence[PolicyDecision], decision: PolicyDecision) -> str:
    if decision.action == "allow":
        return "a rule that asks or denies and fits; it beats every rule that allows"
    if decision.rule is not None:
        answer = "" if decision.action == "deny" else " and no answer is remembered for it"
        return f"that rule must go or fit less: no rule that allows beats one that says {decision.action}{answer}"
    if decision.action == "deny":
        return "the call must be made in a way that can be read"
    open_cases = [
        case for case, decision in zip(cases, each, strict=False) if decision.action == "ask" and decision.rule is None
    ]
    rules = list(dict.fromkeys(str(_allowing(tool, case)) for case in open_cases)) or [str(Rule(tool, "allow"))]
    more = f" (and {len(rules) - MOST_SHOWN} more)" if len(rules) > MOST_SHOWN else ""
    return (
        "a rule that allows it, such as "
        + ", ".join(escape_invisible(rule, len(rule)) for rule in rules[:MOST_SHOWN])
        + more
    )


def _allowing(tool: str, case: SubjectCase) -> Rule:
    """The rule that allows this case and no other."""
    return Rule(tool, "allow", {name: exact_pattern(subject) for name, subject in case.items() if subject is not None})


def _named(rule: Rule) -> str:
    where = f"{escape_invisible(rule.source)}, " if rule.source else ""
    return f"{escape_invisible(str(rule), 2 * LONGEST)} ({where}{rule.layer})"


def _pairs(case: dict[str, str]) -> str:
    return (
        ", ".join(f"{escape_invisible(name)} = {escape_invisible(text)}" for name, text in case.items()) or "no values"
    )


def _json(arguments: JsonObject) -> str:
    try:
        return encode_canonical(arguments)
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError):
        return "(not plain JSON)"


def _is_seen(char: str) -> bool:
    if " " <= char <= "~":
        return True
    is_selector = "\ufe00" <= char <= "\ufe0f" or char >= "\U000e0000"
    return unicodedata.category(char)[0] not in "CZ" and char not in _BLANK and not is_selector


def _code(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
