"""A rule on one line → the rule: as it is printed wherever a rule is shown, or shorter, for a command line.

    {tool = "run_shell", match = {command = "git log *"}, action = "allow"}
    run_shell(command=git log *)
    run_shell(git log *)
    read_file

What a gate offers, or a log tells, can be pasted as it is. The shortest form leaves out which argument is meant, so it
is for those of our own tools of which rules look at one only; of any other tool nothing is guessed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final, cast

from everturn.core.policy import Action, Layer, Rule
from everturn.errors import ConfigError
from everturn.permissions.reading import USUAL_KINDS, read_rule

__all__ = ["read_compact"]

ABOUT: Final[Mapping[str, str]] = {
    "run_shell": "command",
    "fetch_url": "url",
    **dict.fromkeys(("list_directory", "read_file", "search_files", "write_file", "edit_file"), "path"),
}
"""Which argument of our own tools rules are about."""

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_.-]*"
_SHORT: Final = re.compile(r"([^(){}=,]+)(?:\((.*)\))?", re.DOTALL)
_FIRST: Final = re.compile(rf"({_NAME})=")
_NEXT: Final = re.compile(rf",\s*(?={_NAME}=)")


def read_compact(text: str, action: Action, source: str, layer: Layer = "session") -> Rule:
    """Read a rule that is on one line; `action` is what it is given for.

    Raises:
        ConfigError: it makes no sense, or says something else than it is given for.
    """
    line = text.strip()
    try:
        row = _long(line) if line.startswith("{") else _short(line)
        said = row.setdefault("action", action)
        if said in ("allow", "ask", "deny") and said != action:
            raise ConfigError(f"the rule says {said}, and is given as one to {action}")
        return read_rule(row, layer, source, USUAL_KINDS)
    except ConfigError as error:
        raise ConfigError(f"{source} {text}: {error}") from None


def _long(line: str) -> dict[str, Any]:
    """The form in which rules are shown, which is a table of TOML on one line."""
    try:
        found = tomllib.loads(f"rule = {line}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"this is no table in TOML: {error}") from None
    if set(found) != {"rule"}:
        raise ConfigError("this is more than one rule; give each of them by itself")
    return cast("dict[str, Any]", found["rule"])


def _short(line: str) -> dict[str, Any]:
    found = _SHORT.fullmatch(line)
    if found is None or not found[1].strip():
        raise ConfigError('a rule is TOOL, or TOOL(ARGUMENT=PATTERN), or a table such as {tool = "…"}')
    tool, inside = found[1].strip(), found[2]
    if inside is None:
        return {"tool": tool}
    if not inside.strip():
        raise ConfigError(f"between ( and ) there is a pattern; for all calls say {tool}")
    return {"tool": tool, "match": _named(inside) or {_argument(tool, inside): inside.strip()}}


def _named(inside: str) -> dict[str, str]:
    """`path=a/**, mode=x`: patterns by their arguments; nothing where no argument is named."""
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
    if tool not in ABOUT:
        raise ConfigError(f"which argument of {tool} is meant? For example {tool}(text={pattern.strip()})")
    return ABOUT[tool]
