"""Tool index: ranks tools by how well their names, descriptions and parameters match a query (BM25)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from everturn.core.memory.search_terms import text_terms
from everturn.core.requests import ToolSpec

# The usual constants of BM25: how fast repetition saturates, and how much the length of a text matters.
_K1, _B = 1.2, 0.5
NAME_WEIGHT: Final = 3  # a term of the name counts as three of the description
SCHEMA_DEPTH: Final = 4
PREFIX: Final = 4  # characters from which a term matches the terms that begin with it
PREFIX_WEIGHT: Final = 0.5

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STOP_WORDS: Final = frozenset(
    "a an and are as at be by can do for from has have how i in into is it its me my of on or our that the their them "
    "there these this those to use used using want was we what when where which who will with you your".split()
)


class ToolIndex:
    """An index of tools. `groups` has the name of the group or server of a tool, which is searched too."""

    def __init__(self, tools: Iterable[tuple[ToolSpec, str]]) -> None:
        self._names: list[str] = []
        self._counts: list[Counter[str]] = []
        for spec, group in tools:
            self._names.append(spec.name)
            self._counts.append(Counter(_tool_terms(spec, group)))
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._average = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0
        self._postings: dict[str, list[int]] = {}
        for at, counts in enumerate(self._counts):
            for term in counts:
                self._postings.setdefault(term, []).append(at)
        self._vocabulary = sorted(self._postings)

    def search(self, query: str, limit: int) -> list[str]:
        """Return the names of the best matches, the best first. A query that is the name of a tool finds it first."""
        scores: dict[int, float] = {}
        for term in dict.fromkeys(_terms(query)):
            for match, weight in self._matches(term):
                self._score(match, weight, scores)
        plain = _plain(query)
        for at, name in enumerate(self._names):
            if _plain(name) == plain:
                scores[at] = math.inf
        ranked = sorted(scores, key=lambda at: (-scores[at], at))
        return [self._names[at] for at in ranked[:limit]]

    def _matches(self, term: str) -> Iterator[tuple[str, float]]:
        """The indexed terms that a term of the query stands for: itself, or longer ones that begin with it."""
        if term in self._postings:
            yield term, 1.0
        elif len(term) >= PREFIX:
            yield from ((other, PREFIX_WEIGHT) for other in self._vocabulary if other.startswith(term))

    def _score(self, term: str, weight: float, scores: dict[int, float]) -> None:
        tools = self._postings[term]
        rarity = math.log(1 + (len(self._names) - len(tools) + 0.5) / (len(tools) + 0.5))
        for at in tools:
            count = self._counts[at][term]
            norm = _K1 * (1 - _B + _B * self._lengths[at] / self._average)
            scores[at] = scores.get(at, 0.0) + weight * rarity * count * (_K1 + 1) / (count + norm)


def _tool_terms(spec: ToolSpec, group: str) -> Iterator[str]:
    for term in _terms(spec.name):
        yield from (term,) * NAME_WEIGHT
    yield from _terms(group)
    yield from _terms(spec.description)
    for text in _schema_texts(spec.schema, SCHEMA_DEPTH):
        yield from _terms(text)


def _schema_texts(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The names and descriptions of parameters, also of those inside objects and lists."""
    properties = schema.get("properties")
    if depth == 0 or not isinstance(properties, Mapping):
        return
    for name, part in cast("Mapping[str, Any]", properties).items():
        yield str(name)
        if not isinstance(part, Mapping):
            continue
        inner = cast("Mapping[str, Any]", part)
        if isinstance(text := inner.get("description"), str):
            yield text
        for values in (inner.get("enum"), [inner.get("const")]):
            if isinstance(values, list):
                yield from (value for value in cast("list[Any]", values) if isinstance(value, str))
        yield from _schema_texts(inner, depth - 1)
        if isinstance(items := inner.get("items"), Mapping):
            yield from _schema_texts(cast("Mapping[str, Any]", items), depth - 1)


def _terms(text: str) -> Iterator[str]:
    """The terms of a text: words of identifiers apart (`createIssue`, `create_issue`), without endings."""
    for run in text_terms(_CAMEL.sub(" ", text).replace("_", " ")):
        if run not in _STOP_WORDS:
            yield _stem(run)


_ENDINGS: Sequence[tuple[str, str]] = (
    ("ies", "y"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ing", ""),
    ("ed", ""),
    ("s", ""),
)


def _stem(term: str) -> str:
    """A term without the ending of a plural or of a verb, so that `issues` finds `issue` and `merging` finds `merge`."""
    if not term.isascii():
        return term
    for ending, instead in _ENDINGS:
        if term.endswith(ending) and len(term) - len(ending) >= 3:
            if ending == "s" and term.endswith(("ss", "us", "is")):
                break
            term = term.removesuffix(ending) + instead
            if not instead and ending != "s" and len(term) > 3 and term[-1] == term[-2] and term[-1] not in "ls":
                term = term[:-1]  # stopped, running
            break
    return term.removesuffix("e") if len(term) > 3 else term


def _plain(name: str) -> str:
    return "".join(char for char in name if char.isalnum()).casefold()
