"""Rules file: reads permission rules from TOML, each with the line on which it stands.

A rule has this form::

    [[permissions]]
    tool = "run_shell"
    match = { command = "git log *" }
    action = "allow"

There is one form, the long one. A short one would have to guess which argument a pattern is meant for; `rule_text`
reads the short form of a command line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

from everturn.core.rules.patterns import SubjectKind, explain_invalid_pattern
from everturn.core.rules.policy import STRICTEST_FIRST, Layer, Rule
from everturn.errors import ConfigError

__all__ = ["load_rules", "read_rule", "read_rules"]

KEYS: Final = ("tool", "match", "action")
# The usual names of arguments. A pattern for one of these can be checked before the tool exists.
DEFAULT_KINDS: Final[Mapping[str, SubjectKind]] = {"command": "command", "path": "path", "url": "url"}

_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*([\"']?)permissions\1[ \t]*\]\]")
_ROW = re.compile(r"^[ \t]*(permissions[ \t]*=[ \t]*\[[ \t]*)?\{")
_KEY = re.compile(r"^[ \t]*+\[{0,2}+[ \t]*[\"']?permissions\b")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)")


def load_rules(
    path: str | Path, layer: Layer = "config", kinds: Mapping[str, SubjectKind] = DEFAULT_KINDS
) -> list[Rule]:
    """Read the rules of a file.

    Raises:
        ConfigError: the file does not exist, or something in it is invalid; the message says where, and what is valid.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: the rules cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: this is not UTF-8 text, so it is not valid TOML") from error
    return read_rules(text, str(path), layer, kinds)


def read_rules(
    text: str, source: str, layer: Layer = "config", kinds: Mapping[str, SubjectKind] = DEFAULT_KINDS
) -> list[Rule]:
    """Read the rules of a TOML text; its other tables are ignored. `kinds` are those of the subjects, by name.

    Raises:
        ConfigError: something is invalid; the message says where, and what is valid.
    """
    try:
        whole = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        position = _AT_LINE.search(str(error))
        where = f"{source}:{position[1]}" if position else source
        raise ConfigError(f"{where}: this is not valid TOML: {_AT_LINE.sub('', str(error))}") from error
    rows = _rows(whole, source, text)
    rules: list[Rule] = []
    for row, line in zip(rows, _lines(text, len(rows)), strict=True):
        where = f"{source}:{line}"
        try:
            rules.append(read_rule(row, layer, where, kinds))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
    return rules


def _rows(whole: Mapping[str, Any], source: str, text: str) -> Sequence[Any]:
    rows = whole.get("permissions")
    if isinstance(rows, list):
        return cast("list[Any]", rows)
    if rows is not None:
        raise ConfigError(f"{source}:{_lines(text, 1)[0]}: write each rule in its own table, under [[permissions]]")
    close = get_close_matches("permissions", [key.lower() for key in whole], 1, 0.8)
    if close:  # a rule that denies must not be lost to a typing error
        raise ConfigError(f"{source}: there is {close[0]!r}; rules go under [[permissions]]")
    return ()


def _lines(text: str, count: int) -> list[int]:
    """The line of each rule. If they cannot be told apart, all have the line of the first mention."""
    lines = text.split("\n")
    for pattern in (_HEADER, _ROW):
        numbers = [number for number, line in enumerate(lines, 1) if pattern.match(line)]
        if len(numbers) == count:
            return numbers
    first = next((number for number, line in enumerate(lines, 1) if _KEY.match(line)), 1)
    return [first] * count


def read_rule(row: Any, layer: Layer, source: str, kinds: Mapping[str, SubjectKind]) -> Rule:
    """Read one rule from its TOML table.

    Raises:
        ConfigError: the rule is invalid; the message says what is valid.
    """
    if not isinstance(row, dict):
        raise ConfigError(f"a rule is a table with {_listed(KEYS)}")
    fields = cast("dict[str, Any]", row)
    unknown = [key for key in fields if key not in KEYS]
    if unknown:
        raise ConfigError(f"a rule has no {unknown[0]!r}; it has {_listed(KEYS)}")
    tool, action, match = fields.get("tool"), fields.get("action"), fields.get("match", {})
    if not isinstance(tool, str) or not tool.strip():
        raise ConfigError('`tool` must be the name of a tool, or a pattern of names: "*" for all')
    if not tool.isprintable() or tool != tool.strip():
        raise ConfigError(f"no tool has a name like {tool!r}")
    if action not in STRICTEST_FIRST:
        raise ConfigError(f"`action` must be allow, ask or deny; it is {_describe_value(action)}")
    if not isinstance(match, dict):
        raise ConfigError('`match` must be a table of patterns: { command = "git log *" }')
    return Rule(tool, action, dict(_patterns(cast("dict[str, Any]", match), kinds)), layer, source)


def _patterns(match: Mapping[str, Any], kinds: Mapping[str, SubjectKind], front: str = "") -> Iterator[tuple[str, str]]:
    """The patterns of a rule by the names of their subjects; TOML reads `to.city` as a nested table."""
    for key, pattern in match.items():
        name = front + key
        if isinstance(pattern, dict) and pattern:
            yield from _patterns(cast("dict[str, Any]", pattern), kinds, f"{name}.")
            continue
        if not isinstance(pattern, str):
            raise ConfigError(f"the pattern for {name!r} must be a text in quotes; it is {_describe_value(pattern)}")
        trouble = "it is empty; * is for anything" if not pattern else _trouble(pattern, kinds.get(name))
        if trouble:
            raise ConfigError(f"the pattern {pattern!r} for {name!r} cannot match anything: {trouble}")
        yield name, pattern


def _trouble(pattern: str, kind: SubjectKind | None) -> str:
    return explain_invalid_pattern(pattern, kind) if kind else ""


def _describe_value(value: Any) -> str:
    return "missing" if value is None else repr(value)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
