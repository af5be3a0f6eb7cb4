"""Permission policy: decides from rules whether a call is allowed, asked about or denied.

Deny beats ask beats allow, whatever the order of the rules and wherever they come from. A call that no rule matches is
asked about. An `ask` of a rule is final; an `ask` for lack of a rule can be settled for good by a grant, which is a
rule that allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct

from everturn.core.rules.globs import compile_text_glob, fold_text, parse_glob
from everturn.core.rules.patterns import (
    MATCH_ALL_PATTERNS,
    MatchValue,
    Subject,
    SubjectKind,
    compile_pattern,
    prepare_value,
)

__all__ = [
    "Layer",
    "Policy",
    "PolicyDecision",
    "Rule",
    "RuleAction",
    "Subject",
    "SubjectCase",
    "SubjectKind",
    "strictest_decision",
]

RuleAction = Literal["allow", "ask", "deny"]
Layer = Literal["defaults", "config", "agent", "session", "grants"]
SubjectCase = Mapping[str, Subject | None]
PreparedCase = Mapping[str, MatchValue | None]
CaseShape = tuple[tuple[str, SubjectKind], ...]

STRICTEST_FIRST: Final[tuple[RuleAction, ...]] = ("deny", "ask", "allow")
LAYERS: Final[tuple[Layer, ...]] = ("defaults", "config", "agent", "session", "grants")
MAX_CASES = 256  # in one call; more could not be reviewed
CACHED_TOOLS = 1024
CACHED_SHAPES = 16  # per tool: which values a call has, and of which kinds


class Rule(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A permission rule: the action for calls of this tool whose values match."""

    tool: str
    action: RuleAction
    match: dict[str, str] = {}
    layer: Layer = "config"
    source: str = ""  # where it is defined: `everturn.toml:12`, or the id of a grant

    @property
    def matches_loosely(self) -> bool:
        """Whether it also matches look-alikes; a rule that allows matches exactly."""
        return self.action != "allow"

    @property
    def is_for_every_tool(self) -> bool:
        """Whether it names no tool at all: `*`."""
        return not self.tool.strip("*?")

    @property
    def is_for_everything(self) -> bool:
        """Whether it matches every call of its tool, whatever the arguments."""
        return MATCH_ALL_PATTERNS.issuperset(self.match.values())

    def __str__(self) -> str:
        pairs = ", ".join(f"{_key(name)} = {_quote(pattern)}" for name, pattern in self.match.items())
        match = f"match = {{{pairs}}}, " if pairs else ""
        return f'{{tool = {_quote(self.tool)}, {match}action = "{self.action}"}}'


class PolicyDecision(Struct, frozen=True):
    """The decision about a call, the rule that made it, and the case it was about."""

    action: RuleAction
    rule: Rule | None = None
    case: dict[str, str] = {}
    is_final: bool = False  # False: no rule matches, so a grant could decide it
    reason: str = ""


class Policy:
    """Compiled rules that decide about calls."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: Final = tuple(rules)
        self._named: dict[str, list[int]] = {}
        self._wild: list[tuple[int, _ToolPattern]] = []
        for place, rule in enumerate(self.rules):
            if "*" in rule.tool or "?" in rule.tool or "\\" in rule.tool:
                self._wild.append((place, _ToolPattern(rule.tool, rule.matches_loosely)))
            else:
                self._named.setdefault(_spelling(rule.tool), []).append(place)
        self._compiled: dict[tuple[str, bool], _CompiledToolRules] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the arguments that some rule matches."""
        return frozenset(name for rule in self.rules for name in rule.match)

    def decide(self, tool: str, cases: Sequence[SubjectCase], is_acting: bool = False) -> PolicyDecision:
        """Decide about a call: each case by itself, and the strictest decision wins.

        For a tool that acts, an allow rule has to name the tool at least in part: an author who allows `*` did not
        think of it.
        """
        if len(cases) > MAX_CASES:
            return PolicyDecision(
                "deny", is_final=True, reason=f"{len(cases)} cases in one call are more than {MAX_CASES}"
            )
        return strictest_decision(*self.decide_each(tool, cases or ({},), is_acting))

    def decide_each(self, tool: str, cases: Sequence[SubjectCase], is_acting: bool = False) -> Iterator[PolicyDecision]:
        """Decide about each case as if it were the whole call."""
        compiled = self._compiled_for(tool, is_acting)
        known: dict[Subject, MatchValue | None] = {}
        for case in cases:
            forms: dict[str, MatchValue | None] = {}
            problem = ""
            for name, subject in case.items():
                if subject is None:
                    forms[name] = None
                    continue
                if subject not in known:
                    known[subject] = prepare_value(subject)
                form = forms[name] = known[subject]
                if form is None:
                    problem = f"{name} cannot be read as a {subject.kind}, so it is denied"
            if problem:
                yield PolicyDecision("deny", None, _case_texts(case), True, problem)
            else:
                yield _decision(tool, case, compiled.first(forms))

    def matching_rules(self, tool: str, case: SubjectCase, is_acting: bool = False) -> list[Rule]:
        """All rules that match a case, the deciding one first."""
        forms = {name: subject and prepare_value(subject) for name, subject in case.items()}
        return list(self._compiled_for(tool, is_acting).fitting(forms))

    def has_rule_for(self, tool: str) -> bool:
        """Whether some rule is for calls of this tool."""
        return bool(self._rules_for(tool))

    def has_patterns_for(self, tool: str) -> bool:
        """Whether the arguments of a tool's calls make a difference to some rule."""
        return any(not rule.is_for_everything for rule in self._compiled_for(tool).rules)

    def denies_outright(self, tool: str) -> bool:
        """Whether a rule denies this tool whatever its arguments, so that it need not be offered."""
        return any(rule.action == "deny" and rule.is_for_everything for rule in self._compiled_for(tool).rules)

    def _compiled_for(self, tool: str, is_acting: bool = False) -> _CompiledToolRules:
        compiled = self._compiled.get((tool, is_acting))
        if compiled is None:
            if len(self._compiled) >= CACHED_TOOLS:
                self._compiled.clear()
            rules = self._rules_for(tool)
            applicable = (
                [rule for rule in rules if rule.matches_loosely or not rule.is_for_every_tool] if is_acting else rules
            )
            compiled = self._compiled[tool, is_acting] = _CompiledToolRules(applicable)
        return compiled

    def _rules_for(self, tool: str) -> list[Rule]:
        """The rules for a tool, in the order in which they would be reported as the deciding one."""
        places = [
            place
            for place in self._named.get(_spelling(tool), ())
            if self.rules[place].matches_loosely or self.rules[place].tool == tool
        ]
        places += [place for place, pattern in self._wild if pattern.fits(tool)]
        return [self.rules[place] for place in sorted(places, key=self._rank, reverse=True)]

    def _rank(self, place: int) -> tuple[int, int, int, int]:
        return (*rule_rank(self.rules[place]), place)


def strictest_decision(*decisions: PolicyDecision) -> PolicyDecision:
    """The strictest decision; among equals a final one, then the first. Without any, `ask`."""
    best: PolicyDecision | None = None
    for decision in decisions:
        if best is None or _strictness(decision) < _strictness(best):
            best = decision
    return best or PolicyDecision("ask", reason="there was nothing to judge")


def rule_rank(rule: Rule) -> tuple[int, int, int]:
    """The rank among rules with the same action, of which the highest is reported: by layer, then by specificity."""
    plain = sum(char not in "*?" for text in (rule.tool, *rule.match.values()) for char in text)
    return LAYERS.index(rule.layer), len(rule.match), plain


class _CompiledToolRules:
    """The rules for one tool, the strictest action first, each action in the order of `rank`."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = [rule for action in STRICTEST_FIRST for rule in rules if rule.action == action]
        self._compiled: dict[CaseShape, list[_CompiledRule]] = {}

    def first(self, forms: PreparedCase) -> Rule | None:
        """The deciding rule, if any matches."""
        return next(self.fitting(forms), None)

    def fitting(self, forms: PreparedCase) -> Iterator[Rule]:
        """The matching rules, the deciding one first."""
        shape: CaseShape = tuple((name, form.kind) for name, form in forms.items() if form is not None)
        compiled = self._compiled.get(shape)
        if compiled is None:
            if len(self._compiled) >= CACHED_SHAPES:
                self._compiled.clear()
            compiled = self._compiled[shape] = [
                line for rule in self.rules if (line := _compile_rule(rule, dict(shape)))
            ]
        for name, fits, more, rule in compiled:
            if fits(forms[name] if name else None) and (
                not more or all(matches(forms[other]) for other, matches in more)
            ):
                yield rule


# A rule compiled for the kinds of values that a case has: its first pattern, the other patterns, and the rule.
_CompiledRule = tuple[str, Callable[[Any], bool], tuple[tuple[str, Callable[[Any], bool]], ...], Rule]


def _compile_rule(rule: Rule, kinds: Mapping[str, SubjectKind]) -> _CompiledRule | None:
    """Compile a rule for these values; None if it matches on a value that is absent."""
    if not kinds.keys() >= rule.match.keys():
        return None
    tests = [
        (name, compile_pattern(pattern, kinds[name], rule.matches_loosely)) for name, pattern in rule.match.items()
    ]
    if not tests:
        return "", _match_anything, (), rule
    (name, fits), *more = tests
    return name, fits, tuple(more), rule


def _match_anything(form: object) -> bool:
    return True


class _ToolPattern:
    """A pattern of tool names."""

    def __init__(self, pattern: str, generous: bool) -> None:
        tokens = parse_glob(pattern)
        self._exact = compile_text_glob(tokens)
        self._loose = (
            compile_text_glob([_spelling(t) if isinstance(t, str) else t for t in tokens]) if generous else None
        )

    def fits(self, tool: str) -> bool:
        return self._exact(tool) or (self._loose is not None and self._loose(_spelling(tool)))


def _spelling(name: str) -> str:
    """The normalised name of a tool: models confuse case, and `-` with `_`."""
    return fold_text(name).replace("-", "_")


def _strictness(decision: PolicyDecision) -> tuple[int, bool]:
    return STRICTEST_FIRST.index(decision.action), not decision.is_final


def _decision(tool: str, case: SubjectCase, rule: Rule | None) -> PolicyDecision:
    if rule is None:
        return PolicyDecision("ask", None, _case_texts(case), False, f"no rule fits this call of {tool}")
    where = f" ({rule.source})" if rule.source else ""
    return PolicyDecision(rule.action, rule, _case_texts(case), True, f"{rule.layer}{where}: {rule}")


def _case_texts(case: SubjectCase) -> dict[str, str]:
    return {name: subject.text for name, subject in case.items() if subject is not None}


def _quote(text: str) -> str:
    """A text as a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _quote(name)
