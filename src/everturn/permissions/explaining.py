"""Why a call is allowed, asked about or denied: from a judgement to lines for a person."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from everturn.core.canonical import JsonObject, canonical
from everturn.core.patterns import exactly
from everturn.core.policy import Case, Judgement, Policy, Rule

__all__ = ["explain", "uncovered", "visible"]

LONGEST = 200  # of one value, in characters
MOST_SHOWN = 16  # cases, and rules that lost

# Not of a category that says so, and yet nothing can be seen of them.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def visible(text: str, longest: int = LONGEST) -> str:
    """The text with everything that cannot be seen, or that turns the rest around, written out: `\\u202e`."""
    shown = "".join(char if _is_seen(char) else _code(char) for char in text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text) - longest:,} more)"


def explain(
    policy: Policy,
    tool: str,
    arguments: JsonObject,
    cases: Sequence[Case],
    judgement: Judgement,
    is_acting: bool = False,
) -> list[str]:
    """Say what was decided on a call, by which rule, what else fitted, and what would change it."""
    each = list(policy.judge_each(tool, cases or ({},), is_acting))
    return [
        f"{visible(tool)}: {judgement.action}",
        f"  arguments: {visible(_json(arguments))}",
        *_deciding(judgement),
        *_cases(each),
        *_losers(policy, tool, cases or ({},), judgement, is_acting),
        *_too_wide(policy, is_acting),
        f"  to change it: {_change(tool, cases, each, judgement)}",
    ]


def _deciding(judgement: Judgement) -> Iterator[str]:
    if judgement.rule is not None:
        yield f"  decided by {_named(judgement.rule)}"
    else:
        yield f"  because {visible(judgement.reason)}"
    if judgement.case:
        yield f"  on {_pairs(judgement.case)}"


def _cases(each: Sequence[Judgement]) -> Iterator[str]:
    """Each case with its own decision, if there is more than one."""
    if len(each) < 2:
        return
    for number, one in enumerate(each[:MOST_SHOWN], 1):
        by = f"by {_named(one.rule)}" if one.rule else visible(one.reason)
        yield f"  case {number} of {len(each)}: {_pairs(one.case)}: {one.action}, {by}"
    if len(each) > MOST_SHOWN:
        yield f"  … and {len(each) - MOST_SHOWN} more cases"


def uncovered(tool: str, each: Sequence[Judgement], cases: Sequence[Case]) -> list[tuple[str, Rule]]:
    """The parts of a call that no rule covers, each with the narrowest rule that would; none where all are covered."""
    parts: dict[str, Rule] = {}
    for case, one in zip(cases, each, strict=False):
        if one.action == "ask" and one.rule is None:
            parts.setdefault(_pairs(one.case), _allowing(tool, case))
    return list(parts.items())


def _too_wide(policy: Policy, is_acting: bool) -> Iterator[str]:
    """A rule that looks as if it would cover the call, and does not."""
    for rule in policy.rules:
        if is_acting and not rule.is_generous and rule.is_for_every_tool:
            yield f"  does not cover a tool that acts, for it names none: {_named(rule)}"


def _losers(policy: Policy, tool: str, cases: Sequence[Case], judgement: Judgement, is_acting: bool) -> Iterator[str]:
    """The other rules that fitted some case."""
    fitting = [rule for case in cases for rule in policy.fitting(tool, case, is_acting)]
    lost: list[Rule] = []
    for rule in fitting:
        if rule != judgement.rule and rule not in lost:
            lost.append(rule)
    for rule in lost[:MOST_SHOWN]:
        yield f"  fits as well, and does not decide: {_named(rule)}"
    if len(lost) > MOST_SHOWN:
        yield f"  … and {len(lost) - MOST_SHOWN} more rules"


def _change(tool: str, cases: Sequence[Case], each: Sequence[Judgement], judgement: Judgement) -> str:
    if judgement.action == "allow":
        return "a rule that asks or denies and fits; it beats every rule that allows"
    if judgement.rule is not None:
        answer = "" if judgement.action == "deny" else " and no answer is remembered for it"
        return f"that rule must go or fit less: no rule that allows beats one that says {judgement.action}{answer}"
    if judgement.action == "deny":
        return "the call must be made in a way that can be read"
    open_cases = [case for case, one in zip(cases, each, strict=False) if one.action == "ask" and one.rule is None]
    rules = list(dict.fromkeys(str(_allowing(tool, case)) for case in open_cases)) or [str(Rule(tool, "allow"))]
    more = f" (and {len(rules) - MOST_SHOWN} more)" if len(rules) > MOST_SHOWN else ""
    return "a rule that allows it, such as " + ", ".join(visible(rule, len(rule)) for rule in rules[:MOST_SHOWN]) + more


def _allowing(tool: str, case: Case) -> Rule:
    """The rule that allows this case and no other."""
    return Rule(tool, "allow", {name: exactly(subject) for name, subject in case.items() if subject is not None})


def _named(rule: Rule) -> str:
    where = f"{visible(rule.source)}, " if rule.source else ""
    return f"{visible(str(rule), 2 * LONGEST)} ({where}{rule.layer})"


def _pairs(case: dict[str, str]) -> str:
    return ", ".join(f"{visible(name)} = {visible(text)}" for name, text in case.items()) or "no values"


def _json(arguments: JsonObject) -> str:
    try:
        return canonical(arguments)
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
