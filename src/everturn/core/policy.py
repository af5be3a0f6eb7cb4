"""Permission rules: from rules and a call to allow, ask or deny.

Deny beats ask beats allow, whatever the order of the rules and wherever they come from. What no rule fits is asked.
An `ask` that a rule demands is final; one for want of a rule can be answered once and for all, by a grant, which is
a rule that allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct

from everturn.core.globs import fold, text_glob, tokens_of
from everturn.core.patterns import ANYTHING, Form, Subject, SubjectKind, form_of, matcher

__all__ = ["Action", "Case", "Judgement", "Layer", "Policy", "Rule", "Shadowed", "Subject", "SubjectKind", "strictest"]

Action = Literal["allow", "ask", "deny"]
Layer = Literal["defaults", "config", "agent", "session", "grants"]
Case = Mapping[str, Subject | None]
Forms = Mapping[str, Form | None]
Shape = tuple[tuple[str, SubjectKind], ...]

STRICTEST_FIRST: Final[tuple[Action, ...]] = ("deny", "ask", "allow")
LAYERS: Final[tuple[Layer, ...]] = ("defaults", "config", "agent", "session", "grants")
MOST_CASES = 256  # in one call; nobody could say what more of them add up to
REMEMBERED_TOOLS = 1024
REMEMBERED_SHAPES = 16  # per tool: which values a call has, and of which kinds


class Rule(Struct, frozen=True, gc=False, omit_defaults=True):
    """What becomes of the calls that fit it: of this tool, with these values."""

    tool: str
    action: Action
    match: dict[str, str] = {}
    layer: Layer = "config"
    source: str = ""  # where it stands: `everturn.toml:12`, or the name of a grant

    @property
    def is_generous(self) -> bool:
        """Whether it also fits what looks alike; a rule that allows is held to the letter."""
        return self.action != "allow"

    @property
    def is_for_every_tool(self) -> bool:
        """Whether it names no tool at all: `*`."""
        return not self.tool.strip("*?")

    @property
    def is_for_everything(self) -> bool:
        """Whether it leaves no call of its tool out, whatever the arguments."""
        return ANYTHING.issuperset(self.match.values())

    def __str__(self) -> str:
        pairs = ", ".join(f"{_key(name)} = {_quote(pattern)}" for name, pattern in self.match.items())
        match = f"match = {{{pairs}}}, " if pairs else ""
        return f'{{tool = {_quote(self.tool)}, {match}action = "{self.action}"}}'


class Judgement(Struct, frozen=True):
    """What the rules say to a call, which of them decided, and on which case."""

    action: Action
    rule: Rule | None = None
    case: dict[str, str] = {}
    is_final: bool = False  # False: nothing fits, so a grant could answer it
    reason: str = ""


class Shadowed(Struct, frozen=True):
    """A rule that can never decide, because of another."""

    rule: Rule
    by: Rule
    why: str


class Policy:
    """Rules, ready to judge calls."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: Final = tuple(rules)
        self._named: dict[str, list[int]] = {}
        self._wild: list[tuple[int, _ToolPattern]] = []
        for place, rule in enumerate(self.rules):
            if "*" in rule.tool or "?" in rule.tool or "\\" in rule.tool:
                self._wild.append((place, _ToolPattern(rule.tool, rule.is_generous)))
            else:
                self._named.setdefault(_spelling(rule.tool), []).append(place)
        self._books: dict[tuple[str, bool], _Book] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the subjects that some rule looks at."""
        return frozenset(name for rule in self.rules for name in rule.match)

    def judge(self, tool: str, cases: Sequence[Case], is_acting: bool = False) -> Judgement:
        """Judge a call: every case by itself, and the strictest counts.

        Of a tool that acts, a rule that allows has to say some of its name: nobody who allows `*` has thought of it.
        """
        if len(cases) > MOST_CASES:
            return Judgement("deny", is_final=True, reason=f"{len(cases)} cases in one call are more than {MOST_CASES}")
        return strictest(*self.judge_each(tool, cases or ({},), is_acting))

    def judge_each(self, tool: str, cases: Sequence[Case], is_acting: bool = False) -> Iterator[Judgement]:
        """Judge each case as if it were the whole call."""
        book = self._book(tool, is_acting)
        known: dict[Subject, Form | None] = {}
        for case in cases:
            forms: dict[str, Form | None] = {}
            trouble = ""
            for name, subject in case.items():
                if subject is None:
                    forms[name] = None
                    continue
                if subject not in known:
                    known[subject] = form_of(subject)
                form = forms[name] = known[subject]
                if form is None:
                    trouble = f"{name} cannot be read as a {subject.kind}, so it is denied"
            if trouble:
                yield Judgement("deny", None, _texts(case), True, trouble)
            else:
                yield _judgement(tool, case, book.first(forms))

    def fitting(self, tool: str, case: Case, is_acting: bool = False) -> list[Rule]:
        """All the rules that fit a case, the one that decides first."""
        forms = {name: subject and form_of(subject) for name, subject in case.items()}
        return list(self._book(tool, is_acting).fitting(forms))

    def denies_outright(self, tool: str) -> bool:
        """Whether a rule denies this tool whatever its arguments, so that it need not be offered."""
        return any(rule.action == "deny" and rule.is_for_everything for rule in self._book(tool).rules)

    def shadowed(self) -> list[Shadowed]:
        """The rules that can never decide, as far as that is certain."""
        from everturn.core.shadows import shadows  # it is about rules, and only those who write them ask

        return [Shadowed(rule, by, why) for rule, by, why in shadows(self.rules)]

    def _book(self, tool: str, is_acting: bool = False) -> _Book:
        book = self._books.get((tool, is_acting))
        if book is None:
            if len(self._books) >= REMEMBERED_TOOLS:
                self._books.clear()
            rules = self._rules_for(tool)
            kept = [rule for rule in rules if rule.is_generous or not rule.is_for_every_tool] if is_acting else rules
            book = self._books[tool, is_acting] = _Book(kept)
        return book

    def _rules_for(self, tool: str) -> list[Rule]:
        """The rules for a tool, in the order in which they would be named as the one that decided."""
        places = [
            place
            for place in self._named.get(_spelling(tool), ())
            if self.rules[place].is_generous or self.rules[place].tool == tool
        ]
        places += [place for place, pattern in self._wild if pattern.fits(tool)]
        return [self.rules[place] for place in sorted(places, key=self._rank, reverse=True)]

    def _rank(self, place: int) -> tuple[int, int, int, int]:
        return (*rank(self.rules[place]), place)


def strictest(*judgements: Judgement) -> Judgement:
    """The strictest of some judgements; of equals one that is final, then the first. Nothing at all is asked."""
    best: Judgement | None = None
    for judgement in judgements:
        if best is None or _strictness(judgement) < _strictness(best):
            best = judgement
    return best or Judgement("ask", reason="there was nothing to judge")


def rank(rule: Rule) -> tuple[int, int, int]:
    """Of rules that say the same, the highest is named: by its layer, then by how much it says."""
    plain = sum(char not in "*?" for text in (rule.tool, *rule.match.values()) for char in text)
    return LAYERS.index(rule.layer), len(rule.match), plain


class _Book:
    """The rules for one tool, the strictest first, each action in the order in which its rules would be named."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = [rule for action in STRICTEST_FIRST for rule in rules if rule.action == action]
        self.pages: dict[Shape, list[_Line]] = {}

    def first(self, forms: Forms) -> Rule | None:
        """The rule that decides, if any fits."""
        return next(self.fitting(forms), None)

    def fitting(self, forms: Forms) -> Iterator[Rule]:
        """The rules that fit, the one that decides first."""
        shape: Shape = tuple((name, form.kind) for name, form in forms.items() if form is not None)
        page = self.pages.get(shape)
        if page is None:
            if len(self.pages) >= REMEMBERED_SHAPES:
                self.pages.clear()
            page = self.pages[shape] = [line for rule in self.rules if (line := _line(rule, dict(shape)))]
        for name, fits, more, rule in page:
            if fits(forms[name] if name else None) and (not more or all(also(forms[other]) for other, also in more)):
                yield rule


# A rule, compiled for the kinds of values that a case has: the first of its patterns, the others, and itself.
_Line = tuple[str, Callable[[Any], bool], tuple[tuple[str, Callable[[Any], bool]], ...], Rule]


def _line(rule: Rule, kinds: Mapping[str, SubjectKind]) -> _Line | None:
    """A rule made ready, unless it looks at a value that is not there."""
    if not kinds.keys() >= rule.match.keys():
        return None
    tests = [(name, matcher(pattern, kinds[name], rule.is_generous)) for name, pattern in rule.match.items()]
    if not tests:
        return "", _anything, (), rule
    (name, fits), *more = tests
    return name, fits, tuple(more), rule


def _anything(form: object) -> bool:
    return True


class _ToolPattern:
    """A pattern of tool names."""

    def __init__(self, pattern: str, generous: bool) -> None:
        tokens = tokens_of(pattern)
        self._exact = text_glob(tokens)
        self._loose = text_glob([_spelling(t) if isinstance(t, str) else t for t in tokens]) if generous else None

    def fits(self, tool: str) -> bool:
        return self._exact(tool) or (self._loose is not None and self._loose(_spelling(tool)))


def _spelling(name: str) -> str:
    """A tool's name as it is found: models confuse case, and `-` with `_`."""
    return fold(name).replace("-", "_")


def _strictness(judgement: Judgement) -> tuple[int, bool]:
    return STRICTEST_FIRST.index(judgement.action), not judgement.is_final


def _judgement(tool: str, case: Case, rule: Rule | None) -> Judgement:
    if rule is None:
        return Judgement("ask", None, _texts(case), False, f"no rule fits this call of {tool}")
    where = f" ({rule.source})" if rule.source else ""
    return Judgement(rule.action, rule, _texts(case), True, f"{rule.layer}{where}: {rule}")


def _texts(case: Case) -> dict[str, str]:
    return {name: subject.text for name, subject in case.items() if subject is not None}


def _quote(text: str) -> str:
    """A text as TOML has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _quote(name)
