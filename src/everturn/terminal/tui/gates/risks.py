"""Risk hints: finds what deserves a second look in the arguments of a call. Pure. A hint points at something; no hint
proves nothing.

The results are the same as those of web/src/gates/risks.ts, so that a person sees the same hints in both UIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, cast

from msgspec import Struct

from everturn.terminal.tui.gates.risk_table import COMMANDS, PATHS, PIECES, URLS, Level, Row

WINDOW = 600  # characters that are matched together: this bounds the run time of a pattern
WINDOW_OVERLAP = 150  # characters that two windows share
MAX_QUERY = 300  # characters of a query; a longer one could exfiltrate data
MAX_VALUE = 20_000  # characters of a value that are checked
MAX_ITEMS = 200  # values of a list or an object that are checked
EXCERPT = 60
COMMAND_NAME: Final = r"^(?:command|commands|cmd|shell|script|bash|code|line|argv|args|statement|sql|query)$"
SHELL_TOOL: Final = r"(?:^|[_.-])(?:shell|bash|sh|exec|execute|terminal|command|cmd|powershell|run|sql)(?:$|[_.-])"
PATH_NAME: Final = r"(?:path|file|filename|dir|directory|folder|dest|destination|source|target|root|cwd)s?$"
URL_NAME: Final = r"(?:url|uri|href|link|endpoint|address|webhook)s?$"
ADDRESS: Final = r"^\s*[a-z][a-z0-9+.-]*:\/\/\S+$"
_SPACES: Final = r"\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_DOT: Final = r"[^\n\r\u2028\u2029]"
_TOKEN: Final = re.compile(r"\\.|.", re.DOTALL)


class RiskHint(Struct, frozen=True):
    """A risk: its code and level, the matching text, and the argument that it is in."""

    code: str
    level: Level
    matched: str
    where: str = ""


@cache
def compile_pattern(pattern: str, is_any_case: bool = True) -> re.Pattern[str]:
    """Compile a pattern of the table with the meaning that it has in a browser."""
    for name, piece in PIECES.items():
        pattern = pattern.replace(name, piece)
    return re.compile(_as_python(pattern), re.ASCII | (re.IGNORECASE if is_any_case else 0))


def _as_python(pattern: str) -> str:
    r"""Translate a JavaScript pattern: `\s`, `.` and `$` differ slightly."""
    out: list[str] = []
    is_class = False
    for token in _TOKEN.findall(pattern):
        if token == r"\s":
            out.append(_SPACES if is_class else f"[{_SPACES}]")
        elif token == r"\S" and not is_class:
            out.append(f"[^{_SPACES}]")
        elif token == "." and not is_class:
            out.append(_DOT)
        elif token == "$" and not is_class:
            out.append(r"\Z")
        elif token == "[" and is_class:
            out.append(r"\[")
        else:
            out.append(token)
        is_class = (token == "[" or is_class) and token != "]"
    return "".join(out)


def command_risks(command: str) -> list[RiskHint]:
    """Return the risks of a command line: each kind once, the most important first."""
    # As the shell reads it: continued lines are one line, and empty quotes within a word vanish.
    joined = re.sub(r"\\\r?\n", " ", command)
    bare = re.sub(r"(\w)(?:''|\"\"|\\)(?=\w)", r"\1", joined, flags=re.ASCII)
    hints: dict[str, RiskHint] = {}
    for text in (*_windows(joined), *(_windows(bare) if bare != joined else ())):
        for row in COMMANDS:
            _match_row(row, text, hints)
    if "delete_all" in hints:
        hints.pop("delete", None)
    if "upload" in hints or "remote_code" in hints:
        hints.pop("network", None)
    if "system" in hints:
        hints.pop("outside", None)
    lines = sum(bool(line.strip()) for line in joined.strip().split("\n"))
    if lines > 1:
        hints["lines"] = RiskHint("lines", "look", str(lines))
    return _sorted(hints.values())


def _match_row(row: Row, text: str, hints: dict[str, RiskHint]) -> None:
    code, level, pattern, is_any_case = row
    if code in hints and (level != "high" or hints[code].level == "high"):
        return
    if hit := compile_pattern(pattern, is_any_case).search(text):
        hints[code] = RiskHint(code, level, _excerpt(hit[0]))


def _windows(text: str) -> Iterator[str]:
    start = 0
    while start == 0 or start + WINDOW_OVERLAP < len(text):
        yield text[start : start + WINDOW]
        start += WINDOW - WINDOW_OVERLAP


def path_risks(path: str) -> list[RiskHint]:
    """Return the risks of a file path."""
    return _by_table(PATHS, path)


def url_risks(url: str) -> list[RiskHint]:
    """Return the risks of a URL."""
    hints = _by_table(URLS, url)
    query = re.search(r"[?#].*\Z", url, re.DOTALL)
    is_long = query is not None and len(query[0]) > MAX_QUERY
    return [*hints, RiskHint("url_long", "look", _excerpt(query[0]))] if is_long and query else hints


def _by_table(table: Iterable[Row], text: str) -> list[RiskHint]:
    hints: dict[str, RiskHint] = {}
    for code, level, pattern, is_any_case in table:
        if code not in hints and (hit := compile_pattern(pattern, is_any_case).search(text)):
            hints[code] = RiskHint(code, level, _excerpt(hit[0] or text))
    return _sorted(hints.values())


def find_risks(tool: str, value: Any, where: str = "") -> list[RiskHint]:
    """Return the risks of the arguments of a call, by their names and their values."""
    if isinstance(value, str):
        return _text_hints(tool, value[:MAX_VALUE], where)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(item, str) for item in items) and _fits(COMMAND_NAME, where.split(".")[-1]):
            return _text_hints(tool, " ".join(items)[:MAX_VALUE], where)
        return [
            hint for index, item in enumerate(items[:MAX_ITEMS]) for hint in find_risks(tool, item, f"{where}.{index}")
        ]
    if not isinstance(value, dict):
        return []
    pairs = list(cast("dict[str, Any]", value).items())[:MAX_ITEMS]
    return [hint for name, item in pairs for hint in find_risks(tool, item, f"{where}.{name}" if where else name)]


def _text_hints(tool: str, text: str, where: str) -> list[RiskHint]:
    names = where.split(".")
    while len(names) > 1 and names[-1].isascii() and names[-1].isdigit():  # an index in a list
        names.pop()
    name = names[-1]
    if _fits(URL_NAME, name) or _fits(ADDRESS, text):
        hints = url_risks(text.strip())
    elif _fits(PATH_NAME, name):
        hints = path_risks(text)
    elif _fits(COMMAND_NAME, name) or _fits(SHELL_TOOL, tool):
        hints = command_risks(text)
    else:
        hints = []
    return [RiskHint(hint.code, hint.level, hint.matched, where) for hint in hints]


def _fits(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _sorted(risks: Iterable[RiskHint]) -> list[RiskHint]:
    return sorted(risks, key=lambda risk: risk.level != "high")


def _excerpt(text: str) -> str:
    trimmed = re.sub(r"\s+", " ", re.sub(r"^[;&|({`\"']\s*", "", text.strip()))
    return trimmed if len(trimmed) <= EXCERPT else f"{trimmed[: EXCERPT - 1]}…"
