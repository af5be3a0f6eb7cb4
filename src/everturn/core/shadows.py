"""Rules that can never decide: from a list of rules to those that others make pointless, as far as that is certain.

The rules do not say of which kind their values are, so a pattern counts as wider only if it is for every kind.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from everturn.core.globs import text_glob, tokens_of
from everturn.core.patterns import ANYTHING, KINDS, Subject, SubjectKind, form_of, matcher, trouble_with
from everturn.core.policy import STRICTEST_FIRST, Rule, rank


def shadows(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Rule, str]]:
    """Each rule that can never decide, one because of which, and why."""
    wider = sorted(range(len(rules)), key=lambda place: STRICTEST_FIRST.index(rules[place].action))
    for place, rule in enumerate(rules):
        for other in wider:
            why = "" if other == place else _why(rule, rules[other], is_later=place > other)
            if why:
                yield rule, rules[other], why
                break


def _why(rule: Rule, by: Rule, is_later: bool) -> str:
    """Why `by` leaves nothing for a rule to decide; nothing if it may."""
    if rule.action == by.action:
        if rule.tool != by.tool or rule.match != by.match:
            return ""
        is_lower = rank(rule) < rank(by) if rank(rule) != rank(by) else not is_later
        return "it says the same" if is_lower else ""
    if STRICTEST_FIRST.index(by.action) > STRICTEST_FIRST.index(rule.action):
        return ""
    if not _covers_tool(by.tool, rule.tool):
        return ""
    if all(
        name in rule.match and covers(pattern, rule.match[name], rule.is_generous) for name, pattern in by.match.items()
    ):
        verb = "denies" if by.action == "deny" else "asks about"
        return f"the other {verb} everything that it fits"
    return ""


def _covers_tool(wide: str, narrow: str) -> bool:
    if wide == narrow or wide in ANYTHING:
        return True
    if "*" in narrow or "?" in narrow:
        return wide.endswith("*") and _is_plain(wide[:-1]) and narrow.startswith(wide[:-1])
    return text_glob(tokens_of(wide))(narrow)


def covers(wide: str, narrow: str, generous: bool = False) -> bool:
    """Whether a pattern that asks or denies surely fits whatever this pattern of a milder rule fits."""
    if wide in ANYTHING or wide == narrow:
        return True
    if generous and any(trouble_with(narrow, kind) and not trouble_with(wide, kind) for kind in KINDS):
        return False  # a pattern that makes no sense asks about everything
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
    """Whether a pattern fits this one value, whatever it turns out to be."""
    kinds: list[SubjectKind] = [kind for kind in KINDS if not trouble_with(value, kind)]
    return all(_fits_as(wide, value, kind) for kind in kinds)


def _fits_as(wide: str, value: str, kind: SubjectKind) -> bool:
    words = tuple(shlex.split(value)) if kind == "command" else ()
    form = form_of(Subject(kind, value, words))
    return form is None or matcher(wide, kind, True)(form)
