"""Tool lookup: finds the tool that a model named, or raises an error that lists the available tools.

It tolerates spelling variants of a name, but never guesses: a name that matches two tools matches none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from everturn.core.ports import Tool
from everturn.errors import UnknownTool

RESERVED_TOOL_NAME = "invalid"  # reserved: the name of an unreadable call; no tool may have it
MAX_NAME_LENGTH = 64  # what every provider accepts; longer names are not compared
MAX_COMPARED_NAMES = 500
MAX_LISTED_TOOLS = 40  # more names would be noise in a result
MAX_SUGGESTIONS = 5
MIN_SIMILARITY = 0.4  # of 1: `search` and `web_search` have 0.77, `ReadFil` and `write_file` 0.29

# Only those that models are known to invent. `github.search` may well mean another tool than `search`.
_NAMESPACE = re.compile(r"(?:functions?|tools?|default_api)[.:/]")


def find_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    """Find a tool by name, ignoring case, `-` for `_` and an invented namespace: `ReadFile`, `functions.read_file`.

    Raises:
        UnknownTool: no tool matches; the error lists the available tools, the closest first.
    """
    if name in tools and name != RESERVED_TOOL_NAME:
        return tools[name]
    bare = _NAMESPACE.sub("", name, count=1) if _NAMESPACE.match(name) else name
    for spelling in dict.fromkeys((name, bare)):
        alike = _alike(spelling, tools)
        if len(alike) == 1:
            return tools[alike[0]]
        if alike:
            break  # it matches several: without its namespace it would only be a guess
    raise UnknownTool(f"there is no tool called {_short(name)!r}; {_instead(bare, tools)}. Nothing was run.")


def _alike(name: str, tools: Mapping[str, Tool]) -> list[str]:
    """The tool with exactly this name, or else all with a spelling variant of it."""
    if name == RESERVED_TOOL_NAME or len(name) > MAX_NAME_LENGTH:
        return []
    if name in tools:
        return [name]
    plain = _plain(name)
    return [other for other in tools if other != RESERVED_TOOL_NAME and _plain(other) == plain]


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"


def _instead(name: str, tools: Mapping[str, Tool]) -> str:
    """The tools that a model may call, the closest to this name first; only the closest if there are too many."""
    # The spec has the name of a tool. Tools that are denied outright were never offered, so they are not listed.
    offered = [
        tool.spec.name for key, tool in tools.items() if tool.spec.approval != "deny" and key != RESERVED_TOOL_NAME
    ]
    closest = _closest(name, offered)
    if len(offered) <= MAX_LISTED_TOOLS:
        return f"there are: {', '.join(dict.fromkeys(closest + offered)) or 'none'}"
    if closest:
        return f"of the {len(offered)} there are, the closest are: {', '.join(closest)}"
    return f"none of the {len(offered)} tools has a similar name; call a tool by the name it was offered under"


def _closest(name: str, offered: list[str]) -> list[str]:
    """The names that share the most letter pairs with this one.

    Not with difflib: for 500 long names that can take ten times as long, and this runs on the event loop.
    """
    if len(name) > MAX_NAME_LENGTH:
        return []
    wanted = _pairs(name)
    scores: list[tuple[float, str]] = []
    for other in offered[:MAX_COMPARED_NAMES]:
        if len(other) <= MAX_NAME_LENGTH:
            pairs = _pairs(other)
            scores.append((2 * len(wanted & pairs) / (len(wanted) + len(pairs)), other))
    scores.sort(key=lambda row: -row[0])  # stable: among equals, the order they were offered in
    return [other for score, other in scores[:MAX_SUGGESTIONS] if score >= MIN_SIMILARITY]


def _pairs(name: str) -> set[str]:
    plain = _plain(name)
    return {plain[at : at + 2] for at in range(len(plain) - 1)} or {plain}
