"""Every regular expression in the source → whether a text can make it slow.

    python -m tests.security.expressions            # all of them, longer texts and more of them

Expressions are found in the syntax tree (`re.compile(…)`, `re.search(…)`, …) and, where they are put together from
pieces, as the compiled patterns that the modules hold. Each is attacked with texts made for it: a few characters of each
class that it names, repeated, behind each beginning it could have and before an end that fits nothing.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any, NamedTuple

import everturn

ROOT = Path(everturn.__file__).parent
LARGE = 2_000  # characters
SLOW = 0.008  # seconds of CPU; and
GROWTH = 30  # times as much for ten times as much text; what grows with the square takes a hundred
MOST_UNITS = 16


class Expression(NamedTuple):
    """A regular expression, and where it stands."""

    where: str
    pattern: str | bytes
    flags: int


def expressions() -> list[Expression]:
    """Every expression in the source, each once."""
    found: dict[tuple[str | bytes, int], Expression] = {}
    for expression in itertools.chain(_held(), _written()):
        found.setdefault((expression.pattern, expression.flags & ~re.UNICODE), expression)
    return list(found.values())


def _held() -> Iterator[Expression]:
    """Compiled patterns that a module holds by name, or in a table."""
    for info in pkgutil.walk_packages([str(ROOT)], "everturn."):
        if info.name.startswith(("everturn.testing", "everturn.__main__", "everturn.stores.sql.migrations")):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        for name, value in list(vars(module).items()):
            for pattern in _patterns(value):
                yield Expression(f"{info.name}.{name}", pattern.pattern, pattern.flags)


def _patterns(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif hasattr(value, "__self__") and isinstance(value.__self__, re.Pattern):
        yield value.__self__
    elif depth and isinstance(value, tuple | list | frozenset | set):
        for item in value:
            yield from _patterns(item, depth - 1)
    elif depth and isinstance(value, Mapping):
        for item in value.values():
            yield from _patterns(item, depth - 1)


CALLS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")


def _written() -> Iterator[Expression]:
    """Expressions that are written where they are used."""
    for path in sorted(ROOT.rglob("*.py")):
        if "testing" in path.parts or "migrations" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS):
                continue
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args):
                continue
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str | bytes):
                flags = next((keyword.value for keyword in node.keywords if keyword.arg == "flags"), node.args[-1])
                yield Expression(f"{path.relative_to(ROOT)}:{node.lineno}", node.args[0].value, _flags(flags))


def _flags(node: ast.expr) -> int:
    names = {attribute.attr for attribute in ast.walk(node) if isinstance(attribute, ast.Attribute)}
    return sum(int(getattr(re, name)) for name in names if isinstance(getattr(re, name, None), re.RegexFlag))


# How they are used -------------------------------------------------------------------------------------------------

SEARCHING = frozenset({"search", "sub", "subn", "split", "findall", "finditer", "scanner"})
ANCHORED = frozenset({"match", "fullmatch"})


def uses() -> dict[str, set[str]]:
    """By the last name of whatever holds an expression, what is called on it anywhere in the source."""
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in SEARCHING | ANCHORED:
                holder = node.value
                while isinstance(holder, ast.Subscript):
                    holder = holder.value
                name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
                found.setdefault(name, set()).add(node.attr)
    return found


# Attacks -----------------------------------------------------------------------------------------------------------

CANDIDATES = "aA0_ -.$,:;=/\\\"'`~#+*?!%&|^<>()[]{}@\n\té\x00"


def _tree(expression: Expression) -> Any:
    text = expression.pattern if isinstance(expression.pattern, str) else expression.pattern.decode("latin-1")
    return parser.parse(text, expression.flags & ~re.UNICODE & ~re.LOCALE)


def _is_member(char: str, items: Any) -> bool:
    is_negated, is_in = False, False
    for op, value in items:
        match str(op):
            case "NEGATE":
                is_negated = True
            case "LITERAL":
                is_in = is_in or ord(char) == value
            case "RANGE":
                is_in = is_in or value[0] <= ord(char) <= value[1]
            case _:
                name = str(value)
                kind = {"DIGIT": char.isdecimal(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}
                is_in = is_in or kind.get(name.rpartition("_")[2], False) != ("_NOT_" in name)
    return is_in != is_negated


def _members(items: Any) -> list[str]:
    """A few characters of a class, of different sorts."""
    first = [chr(value if str(op) == "LITERAL" else value[0]) for op, value in items if str(op) in ("LITERAL", "RANGE")]
    found = [char for char in (*CANDIDATES, *first) if _is_member(char, items)]
    return list(dict.fromkeys(found))[:4] or ["a"]


def samples(tree: Any) -> list[str]:
    """A few texts that a part of an expression fits."""
    found = [""]
    for op, value in tree:
        match str(op):
            case "LITERAL":
                pieces = [chr(value)]
            case "NOT_LITERAL":
                pieces = [next(char for char in CANDIDATES if ord(char) != value)]
            case "ANY":
                pieces = ["a", " "]
            case "IN":
                pieces = _members(value)
            case "BRANCH":
                pieces = [text for branch in value[1] for text in samples(branch)[:3]]
            case "SUBPATTERN":
                pieces = samples(value[3])
            case "ATOMIC_GROUP":
                pieces = samples(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                inner = samples(value[2])[:4]
                pieces = [text * count for text in inner for count in {max(value[0], 1), max(value[0], 2)} if count < 9]
                pieces = pieces or [""]
            case _:
                pieces = [""]
        found = [before + piece for piece in pieces[:6] for before in found[:2]][:8]
    return found


def pumps(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each part that may be repeated: a text that leads to it, and a text that it fits."""
    for at, (op, value) in enumerate(tree):
        lead = before + samples(tree[:at])[0]
        match str(op):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                inner = samples(value[2])
                yield from ((lead, unit) for unit in inner)
                yield from ((lead, first + other) for first, other in itertools.permutations(inner[:3], 2))
                yield from pumps(value[2], lead)
                # The repeated part with all that stands before it: what a search begins with again and again.
                yield from ((before, lead[len(before) :] + unit) for unit in inner[:2])
            case "SUBPATTERN":
                yield from pumps(value[3], lead)
            case "ATOMIC_GROUP":
                yield from pumps(value, lead)
            case "BRANCH":
                for branch in value[1]:
                    yield from pumps(branch, lead)
            case _:
                pass


def attacks(expression: Expression, most: int) -> list[tuple[str, str]]:
    """Beginnings, and units to be repeated behind them."""
    found = {pump: None for pump in pumps(_tree(expression)) if pump[1]}
    found.update((("", unit), None) for _, unit in list(found))
    return list(found)[:most]


def cost(pattern: re.Pattern[Any], text: str, is_searched: bool) -> float:
    """CPU seconds of the slowest way in which an expression is used on a text."""
    subject: Any = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
    worst = 0.0
    for use in (pattern.fullmatch, pattern.search if is_searched else pattern.match):
        began = time.process_time()
        use(subject)
        worst = max(worst, time.process_time() - began)
    return worst


def slow(expression: Expression, is_searched: bool = True, large: int = LARGE, most: int = MOST_UNITS) -> str:
    """The text that makes an expression slow; "" if none of those that were tried does."""
    pattern = re.compile(expression.pattern, expression.flags & ~re.DEBUG)
    for beginning, unit in attacks(expression, most):
        # What doubles with every unit shows at a few of them, and would never end at many.
        for size, end in ((12, "\x00"), (18, "\x00"), (large // len(unit), "\x00"), (large // len(unit), "")):
            text = beginning + unit * size + end
            if cost(pattern, text, is_searched) <= SLOW:
                continue
            few = cost(pattern, beginning + unit * (size // 10) + end, is_searched)
            if min(cost(pattern, text, is_searched) for _ in range(2)) > max(SLOW, GROWTH * few):
                return f"{beginning!r} + {unit!r} * {size}"
    return ""


def is_searched(expression: Expression, used: Mapping[str, set[str]]) -> bool:
    """Whether it is tried at every place of a text, and not at its beginning alone; unless that is plain, it is."""
    name = expression.where.rpartition(".")[2]
    ways = used.get(name, set())
    return not ways or bool(ways & SEARCHING)


if __name__ == "__main__":
    characters = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    used = uses()
    every = expressions()
    for candidate in every:
        if text := slow(candidate, is_searched(candidate, used), characters, 400):
            print(f"{candidate.where}: {candidate.pattern!r} is slow on {text}", flush=True)
    print(len(every), "expressions")
