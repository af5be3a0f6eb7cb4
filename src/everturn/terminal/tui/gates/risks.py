"""Risk hints: finds what deserves a second look in the arguments of a call. Pure. A hint points at something; no hint
proves nothing.

web/src/gates/risks.ts reads the same table, so that a person sees the same hints in both UIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, cast

from msgspec import Struct

from everturn.terminal.tui.gates.risk_table import Level, RiskPattern, risk_table

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
def compile_pattern(pattern: str, is_case_sensitive: bool = False) -> re.Pattern[str]:
    """Compile a pattern of the table with the meaning that it has in a browser."""
    for name, piece in risk_table().pieces.items():
        pattern = pattern.replace(f"<{name}>", piece)
    return re.compile(_as_python(pattern), re.ASCII | (0 if is_case_sensitive else re.IGNORECASE))


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
        for row in risk_table().commands:
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


def _match_row(row: RiskPattern, text: str, hints: dict[str, RiskHint]) -> None:
    if row.code in hints and (row.level != "high" or hints[row.code].level == "high"):
        return
    if hit := compile_pattern(row.pattern, row.is_case_sensitive).search(text):
        hints[row.code] = RiskHint(row.code, row.level, _excerpt(hit[0]))


def _windows(text: str) -> Iterator[str]:
    size, overlap = risk_table().limits.window, risk_table().limits.window_overlap
    start = 0
    while start == 0 or start + overlap < len(text):
        yield text[start : start + size]
        start += size - overlap


def path_risks(path: str) -> list[RiskHint]:
    """Return the risks of a file path."""
    return _by_table(risk_table().paths, path)


def url_risks(url: str) -> list[RiskHint]:
    """Return the risks of a URL."""
    hints = _by_table(risk_table().urls, url)
    query = re.search(r"[?#].*\Z", url, re.DOTALL)
    is_long = query is not None and len(query[0]) > risk_table().limits.query
    return [*hints, RiskHint("url_long", "look", _excerpt(query[0]))] if is_long and query else hints


def _by_table(rows: Iterable[RiskPattern], text: str) -> list[RiskHint]:
    hints: dict[str, RiskHint] = {}
    for row in rows:
        if row.code not in hints and (hit := compile_pattern(row.pattern, row.is_case_sensitive).search(text)):
            hints[row.code] = RiskHint(row.code, row.level, _excerpt(hit[0] or text))
    return _sorted(hints.values())


def find_risks(tool: str, value: Any, where: str = "") -> list[RiskHint]:
    """Return the risks of the arguments of a call, by their names and their values."""
    limits = risk_table().limits
    if isinstance(value, str):
        return _text_hints(tool, value[: limits.value], where)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        is_argv = items and all(isinstance(item, str) for item in items)
        if is_argv and _fits(risk_table().arguments.command, where.split(".")[-1]):
            return _text_hints(tool, " ".join(items)[: limits.value], where)
        items = items[: limits.items]
        return [hint for index, item in enumerate(items) for hint in find_risks(tool, item, f"{where}.{index}")]
    if not isinstance(value, dict):
        return []
    pairs = list(cast("dict[str, Any]", value).items())[: limits.items]
    return [hint for name, item in pairs for hint in find_risks(tool, item, f"{where}.{name}" if where else name)]


def _text_hints(tool: str, text: str, where: str) -> list[RiskHint]:
    names = where.split(".")
    while len(names) > 1 and names[-1].isascii() and names[-1].isdigit():  # an index in a list
        names.pop()
    name, patterns = names[-1], risk_table().arguments
    if _fits(patterns.url, name) or _fits(patterns.url_value, text):
        hints = url_risks(text.strip())
    elif _fits(patterns.path, name):
        hints = path_risks(text)
    elif _fits(patterns.command, name) or _fits(patterns.shell_tool, tool):
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
    longest = risk_table().limits.excerpt
    return trimmed if len(trimmed) <= longest else f"{trimmed[: longest - 1]}…"
