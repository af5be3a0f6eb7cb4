"""Rules on one line: reads a rule as it is printed wherever a rule is shown, or in a shorter form for a command line.

Examples, from the longest form to the shortest::

    {tool = "run_shell", match = {command = "git log *"}, action = "allow"}
    run_shell(command=git log *)
    run_shell(git log *)
    read_file

A rule from a gate or a log can be pasted as it is. The shortest form leaves out which argument is meant, so it is for
those built-in tools of which rules match one argument only; for any other tool nothing is guessed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final, cast

from everturn.core.rules.policy import Layer, Rule, RuleAction
from everturn.errors import ConfigError
from everturn.permissions.rules_file import DEFAULT_KINDS, read_rule

__all__ = ["parse_rule"]

MATCHED_ARGUMENT: Final[Mapping[str, str]] = {
    "run_shell": "command",
    "fetch_url": "url",
    **dict.fromkeys(("list_directory", "read_file", "search_files", "write_file", "edit_file"), "path"),
}
"""The argument of a built-in tool that rules match."""

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.-]*"
_SHORT: Final = re.compile(r"([^(){}=,]+)(?:\((.*)\))?", re.DOTALL)
_FIRST: Final = re.compile(rf"({_NAME})=")
_NEXT: Final = re.compile(rf",\s*(?={_NAME}=)")


def parse_rule(text: str, action: RuleAction, source: str, layer: Layer = "session") -> Rule:
    """Read a rule from one line; `action` is the action that the caller expects.

    Raises:
        ConfigError: the rule is invalid, or has another action.
    """
    line = text.strip()
    try:
        row = _long(line) if line.startswith("{") else _short(line)
        row_action = row.setdefault("action", action)
        if row_action in ("allow", "ask", "deny") and row_action != action:
            raise ConfigError(f"the rule has the action {row_action}, but is passed as a rule to {action}")
        return read_rule(row, layer, source, DEFAULT_KINDS)
    except ConfigError as error:
        raise ConfigError(f"{source} {text}: {error}") from None


def _long(line: str) -> dict[str, Any]:
    """The form in which rules are shown, which is an inline table of TOML."""
    try:
        document = tomllib.loads(f"rule = {line}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"this is not a TOML table: {error}") from None
    if set(document) != {"rule"}:
        raise ConfigError("this is more than one rule; pass each of them separately")
    return cast("dict[str, Any]", document["rule"])


def _short(line: str) -> dict[str, Any]:
    match = _SHORT.fullmatch(line)
    if match is None or not match[1].strip():
        raise ConfigError('a rule is TOOL, or TOOL(ARGUMENT=PATTERN), or a table such as {tool = "…"}')
    tool, inside = match[1].strip(), match[2]
    if inside is None:
        return {"tool": tool}
    if not inside.strip():
        raise ConfigError(f"between ( and ) there is a pattern; for all calls write {tool}")
    return {"tool": tool, "match": _named(inside) or {_argument(tool, inside): inside.strip()}}


def _named(inside: str) -> dict[str, str]:
    """`path=a/**, mode=x`: patterns by argument; empty where no argument is named."""
    if _FIRST.match(inside.strip()) is None:
        return {}
    match: dict[str, str] = {}
    for pair in _NEXT.split(inside.strip()):
        name, _, pattern = pair.partition("=")
        if name in match:
            raise ConfigError(f"{name} is there twice")
        match[name] = pattern.strip()
    return match


def _argument(tool: str, pattern: str) -> str:
    if tool not in MATCHED_ARGUMENT:
        raise ConfigError(f"which argument of {tool} is meant? For example {tool}(text={pattern.strip()})")
    return MATCHED_ARGUMENT[tool]
