"""Rules and budgets as they are given in Python → the same, or an error that shows how they are written. Pure.

Nothing checks a Struct when it is made. A slip of the pen must not make nothing of a rule that denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, cast

from everturn.core.options import Budget
from everturn.core.policy import LAYERS, STRICTEST_FIRST, Rule
from everturn.errors import ConfigError

A_LIST = 'a list of rules: rules=[Rule("mail", "ask"), Rule("run_shell", "deny", {"command": "rm *"})]'
LARGEST = 1e15


def checked_rules(given: Iterable[Rule], where: str = "rules") -> tuple[Rule, ...]:
    """Rules that say what they seem to say.

    Raises:
        ConfigError: this is no list of rules, or one of them makes no sense.
    """
    if isinstance(given, Rule | str | bytes | Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{where}: {A_LIST}; this is {_kind(cast('object', given))}")
    rules = tuple(given)
    for rule in rules:
        _check_rule(rule, where)
    return rules


def _check_rule(rule: Any, where: str) -> None:
    if not isinstance(rule, Rule):
        raise ConfigError(f"{where}: {A_LIST}; there is {_kind(rule)} in it")
    tool, action, match, layer = cast("tuple[Any, ...]", (rule.tool, rule.action, rule.match, rule.layer))
    if not isinstance(tool, str) or not tool.strip() or tool != tool.strip() or not tool.isprintable():
        raise ConfigError(f'{where}: Rule({tool!r}, …): a rule is for a tool by its name, or a pattern: "*" for all')
    shown = f"{where}: Rule({tool!r}, {action!r}, …)"
    if action not in STRICTEST_FIRST:
        raise ConfigError(f"{shown}: what becomes of a call is allow, ask or deny{_meant(action, STRICTEST_FIRST)}")
    if not isinstance(match, dict) or not all(_is_word(one) for pair in cast(_Pairs, match).items() for one in pair):
        raise ConfigError(f'{shown}: match is a dict of patterns: {{"to": "*@example.org"}}; this is {match!r}')
    if layer not in LAYERS:
        raise ConfigError(f"{shown}: there is no layer {layer!r}; there are: {', '.join(LAYERS)}")
    if not _is_word(rule.source):
        raise ConfigError(f"{shown}: source is a text that says where it stands")


_Pairs = dict[Any, Any]


def _is_word(value: Any) -> bool:
    """Whether it is a text that can be written down: a lone surrogate cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_budget(budget: Budget, where: str = "budget") -> Budget:
    """A budget that makes sense.

    Raises:
        ConfigError: this is none, or one of its limits is no number.
    """
    if not isinstance(budget, Budget):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{where}: a Budget(cost=1.0, calls=40) is wanted; this is {_kind(budget)}")
    for name in Budget.__struct_fields__:
        limit: object = getattr(budget, name)
        is_whole = name not in ("cost", "seconds")
        if (
            isinstance(limit, bool)
            or not isinstance(limit, int if is_whole else int | float)
            or not 0 <= limit < LARGEST
        ):
            raise ConfigError(f"{where}: {name}={limit!r}; a {'whole ' * is_whole}number, and 0 is no limit")
    return budget


def _kind(given: object) -> str:
    name = type(given).__name__
    return f"one {name}" if isinstance(given, Rule) else f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def _meant(said: object, known: Iterable[str]) -> str:
    close = get_close_matches(said.lower(), known, 1) if isinstance(said, str) else ()
    return f"; did you mean {close[0]!r}?" if close else ""
