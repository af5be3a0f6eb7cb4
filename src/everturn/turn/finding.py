"""A name a model wrote → the tool it means, or an error that names those there are.

It forgives how a name is written, never which one it is: whatever fits two tools fits none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from everturn.core.ports import Tool
from everturn.errors import UnknownTool

INVALID = "invalid"  # reserved: what a call that cannot be read is shown as; nobody may answer to it
LONGEST_NAME = 64  # what every provider accepts; nothing longer is compared with anything
MOST_COMPARED = 500
MOST_NAMED = 40  # more names than these are noise in a result
CLOSEST = 5
CLOSE = 0.4  # of 1: `search` and `web_search` have 0.77, `ReadFil` and `write_file` 0.29

# Only the ones models are known to make up. `github.search` may well mean another tool than `search`.
_NAMESPACE = re.compile(r"(?:functions?|tools?|default_api)[.:/]")


def find(name: str, tools: Mapping[str, Tool]) -> Tool:
    """Look a tool up, forgiving case, `-` for `_` and a made-up namespace: `ReadFile`, `functions.read_file`.

    Raises:
        UnknownTool: and it names the tools there are, the closest first.
    """
    if name in tools and name != INVALID:
        return tools[name]
    bare = _NAMESPACE.sub("", name, count=1) if _NAMESPACE.match(name) else name
    for written in dict.fromkeys((name, bare)):
        alike = _alike(written, tools)
        if len(alike) == 1:
            return tools[alike[0]]
        if alike:
            break  # it fits several: without its namespace it would only be a guess
    raise UnknownTool(f"there is no tool called {_short(name)!r}; {_instead(bare, tools)}. Nothing was run.")


def _alike(name: str, tools: Mapping[str, Tool]) -> list[str]:
    """The tool of this very name, or else all that are written like it."""
    if name == INVALID or len(name) > LONGEST_NAME:
        return []
    if name in tools:
        return [name]
    plain = _plain(name)
    return [other for other in tools if other != INVALID and _plain(other) == plain]


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _instead(name: str, tools: Mapping[str, Tool]) -> str:
    """The tools a model may call, the closest to this name first; only these when there are too many."""
    # What a tool is called is said by its spec; those denied outright were never offered, so they are not named.
    offered = [tool.spec.name for key, tool in tools.items() if tool.spec.execute != "deny" and key != INVALID]
    closest = _closest(name, offered)
    if len(offered) <= MOST_NAMED:
        return f"there are: {', '.join(dict.fromkeys(closest + offered)) or 'none'}"
    if closest:
        return f"of the {len(offered)} there are, the closest are: {', '.join(closest)}"
    return f"none of the {len(offered)} there are is called alike; call one by the name it was offered under"


def _closest(name: str, offered: list[str]) -> list[str]:
    """The names that share most of their pairs of letters with this one.

    Not by difflib: among 500 long names that can take ten times as long, and this runs on the event loop.
    """
    if len(name) > LONGEST_NAME:
        return []
    wanted = _pairs(name)
    scores: list[tuple[float, str]] = []
    for other in offered[:MOST_COMPARED]:
        if len(other) <= LONGEST_NAME:
            pairs = _pairs(other)
            scores.append((2 * len(wanted & pairs) / (len(wanted) + len(pairs)), other))
    scores.sort(key=lambda row: -row[0])  # stable: among equals, the order they were offered in
    return [other for score, other in scores[:CLOSEST] if score >= CLOSE]


def _pairs(name: str) -> set[str]:
    plain = _plain(name)
    return {plain[at : at + 2] for at in range(len(plain) - 1)} or {plain}
