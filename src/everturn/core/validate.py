"""Validation of rules and budgets that are passed in Python; the errors show how to write them.

msgspec does not check a Struct when it is constructed, and a typo must not disable a rule that denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, cast

from everturn.core.options import Budget
from everturn.core.rules.policy import LAYERS, STRICTEST_FIRST, Rule
from everturn.errors import ConfigError

RULES_HINT = 'a list of rules: rules=[Rule("mail", "ask"), Rule("run_shell", "deny", {"command": "rm *"})]'
MAX_BUDGET = 1e15


def validate_rules(values: Iterable[Rule], where: str = "rules") -> tuple[Rule, ...]:
    """Validate rules and return them as a tuple.

    Raises:
        ConfigError: this is not a list of rules, or one of them is invalid.
    """
    if isinstance(values, Rule | str | bytes | Mapping) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{where}: {RULES_HINT}; this is {_type_name(cast('object', values))}")
    rules = tuple(values)
    for rule in rules:
        _check_rule(rule, where)
    return rules


def _check_rule(rule: Any, where: str) -> None:
    if not isinstance(rule, Rule):
        raise ConfigError(f"{where}: {RULES_HINT}; it contains {_type_name(rule)}")
    tool, action, match, layer = cast("tuple[Any, ...]", (rule.tool, rule.action, rule.match, rule.layer))
    if not isinstance(tool, str) or not tool.strip() or tool != tool.strip() or not tool.isprintable():
        raise ConfigError(f'{where}: Rule({tool!r}, …): a rule is for a tool by its name, or a pattern: "*" for all')
    label = f"{where}: Rule({tool!r}, {action!r}, …)"
    if action not in STRICTEST_FIRST:
        raise ConfigError(f"{label}: the action must be allow, ask or deny{_suggest(action, STRICTEST_FIRST)}")
    if not isinstance(match, dict) or not all(
        _is_valid_text(text) for pair in cast(_Pairs, match).items() for text in pair
    ):
        raise ConfigError(f'{label}: match must be a dict of patterns: {{"to": "*@example.org"}}; this is {match!r}')
    if layer not in LAYERS:
        raise ConfigError(f"{label}: there is no layer {layer!r}; there are: {', '.join(LAYERS)}")
    if not _is_valid_text(rule.source):
        raise ConfigError(f"{label}: source must be a string that names the place of the rule")


_Pairs = dict[Any, Any]


def _is_valid_text(value: Any) -> bool:
    """Whether it is a text that UTF-8 can encode: a lone surrogate cannot be."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def validate_budget(budget: Budget, where: str = "budget") -> Budget:
    """Validate a budget and return it.

    Raises:
        ConfigError: this is not a Budget, or one of its limits is not a number.
    """
    if not isinstance(budget, Budget):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{where}: a Budget(cost=1.0, calls=40) is needed; this is {_type_name(budget)}")
    for name in Budget.__struct_fields__:
        limit: object = getattr(budget, name)
        is_whole = name not in ("cost", "seconds")
        if (
            isinstance(limit, bool)
            or not isinstance(limit, int if is_whole else int | float)
            or not 0 <= limit < MAX_BUDGET
        ):
            raise ConfigError(f"{where}: {name}={limit!r}; a {'whole ' * is_whole}number is needed; 0: no limit")
    return budget


def _type_name(value: object) -> str:
    name = type(value).__name__
    return f"one {name}" if isinstance(value, Rule) else f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def _suggest(value: object, known: Iterable[str]) -> str:
    close = get_close_matches(value.lower(), known, 1) if isinstance(value, str) else ()
    return f"; did you mean {close[0]!r}?" if close else ""
