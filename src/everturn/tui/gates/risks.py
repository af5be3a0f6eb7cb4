"""The arguments of a call → what is worth a second look in them. Pure. A hint points at something; its absence says nothing.

This does what web/src/gates/risks.ts does, so that a person is told the same wherever they look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, cast

from msgspec import Struct

from everturn.tui.gates.risk_table import COMMANDS, PATHS, PIECES, URLS, Level, Row

WIDE = 600  # characters that are looked at together: nobody can make a pattern run for long
SHARED = 150  # of them with the next
LONG = 300  # characters of a query; more could carry something away
MOST = 20_000  # characters of a value that are looked at
MANY = 200  # values of a list or an object that are looked at
EXCERPT = 60
COMMAND_NAME: Final = r"^(?:command|commands|cmd|shell|script|bash|code|line|argv|args|statement|sql|query)$"
SHELL_TOOL: Final = r"(?:^|[_.-])(?:shell|bash|sh|exec|execute|terminal|command|cmd|powershell|run|sql)(?:$|[_.-])"
PATH_NAME: Final = r"(?:path|file|filename|dir|directory|folder|dest|destination|source|target|root|cwd)s?$"
URL_NAME: Final = r"(?:url|uri|href|link|endpoint|address|webhook)s?$"
ADDRESS: Final = r"^\s*[a-z][a-z0-9+.-]*:\/\/\S+$"
_SPACES: Final = r"\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_DOT: Final = r"[^\n\r\u2028\u2029]"
_TOKEN: Final = re.compile(r"\\.|.", re.DOTALL)


class Hint(Struct, frozen=True):
    """What is worth a look, how much, the stretch that it is about, and in which argument."""

    code: str
    level: Level
    found: str
    where: str = ""


@cache
def compiled(pattern: str, is_any_case: bool = True) -> re.Pattern[str]:
    """A pattern of the table, to be read as a browser reads it."""
    for name, piece in PIECES.items():
        pattern = pattern.replace(name, piece)
    return re.compile(_as_python(pattern), re.ASCII | (re.IGNORECASE if is_any_case else 0))


def _as_python(pattern: str) -> str:
    r"""The same pattern here: what `\s`, `.` and `$` mean differs a little."""
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


def command_risks(command: str) -> list[Hint]:
    """What is worth a look in a command line: each kind once, what matters most first."""
    # As the shell reads it: lines that go on are one, and quotes within a word are nothing.
    joined = re.sub(r"\\\r?\n", " ", command)
    bare = re.sub(r"(\w)(?:''|\"\"|\\)(?=\w)", r"\1", joined, flags=re.ASCII)
    found: dict[str, Hint] = {}
    for text in (*_windows(joined), *(_windows(bare) if bare != joined else ())):
        for row in COMMANDS:
            _look(row, text, found)
    if "delete_all" in found:
        found.pop("delete", None)
    if "upload" in found or "remote_code" in found:
        found.pop("network", None)
    if "system" in found:
        found.pop("outside", None)
    lines = sum(bool(line.strip()) for line in joined.strip().split("\n"))
    if lines > 1:
        found["lines"] = Hint("lines", "look", str(lines))
    return _sorted(found.values())


def _look(row: Row, text: str, found: dict[str, Hint]) -> None:
    code, level, pattern, is_any_case = row
    if code in found and (level != "high" or found[code].level == "high"):
        return
    if hit := compiled(pattern, is_any_case).search(text):
        found[code] = Hint(code, level, _excerpt(hit[0]))


def _windows(text: str) -> Iterator[str]:
    at = 0
    while at == 0 or at + SHARED < len(text):
        yield text[at : at + WIDE]
        at += WIDE - SHARED


def path_risks(path: str) -> list[Hint]:
    """What is worth a look in the name of a file."""
    return _by_table(PATHS, path)


def url_risks(url: str) -> list[Hint]:
    """What is worth a look in an address."""
    found = _by_table(URLS, url)
    query = re.search(r"[?#].*\Z", url, re.DOTALL)
    is_long = query is not None and len(query[0]) > LONG
    return [*found, Hint("url_long", "look", _excerpt(query[0]))] if is_long and query else found


def _by_table(table: Iterable[Row], text: str) -> list[Hint]:
    found: dict[str, Hint] = {}
    for code, level, pattern, is_any_case in table:
        if code not in found and (hit := compiled(pattern, is_any_case).search(text)):
            found[code] = Hint(code, level, _excerpt(hit[0] or text))
    return _sorted(found.values())


def hints_for(tool: str, value: Any, where: str = "") -> list[Hint]:
    """What is worth a look in the arguments of a call, by what they are called and what they look like."""
    if isinstance(value, str):
        return _text_hints(tool, value[:MOST], where)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(item, str) for item in items) and _fits(COMMAND_NAME, where.split(".")[-1]):
            return _text_hints(tool, " ".join(items)[:MOST], where)
        return [hint for at, item in enumerate(items[:MANY]) for hint in hints_for(tool, item, f"{where}.{at}")]
    if not isinstance(value, dict):
        return []
    pairs = list(cast("dict[str, Any]", value).items())[:MANY]
    return [hint for name, item in pairs for hint in hints_for(tool, item, f"{where}.{name}" if where else name)]


def _text_hints(tool: str, text: str, where: str) -> list[Hint]:
    names = where.split(".")
    while len(names) > 1 and names[-1].isascii() and names[-1].isdigit():  # a place in a list
        names.pop()
    name = names[-1]
    if _fits(URL_NAME, name) or _fits(ADDRESS, text):
        found = url_risks(text.strip())
    elif _fits(PATH_NAME, name):
        found = path_risks(text)
    elif _fits(COMMAND_NAME, name) or _fits(SHELL_TOOL, tool):
        found = command_risks(text)
    else:
        found = []
    return [Hint(hint.code, hint.level, hint.found, where) for hint in found]


def _fits(pattern: str, text: str) -> bool:
    return compiled(pattern).search(text) is not None


def _sorted(risks: Iterable[Hint]) -> list[Hint]:
    return sorted(risks, key=lambda risk: risk.level != "high")


def _excerpt(text: str) -> str:
    trimmed = re.sub(r"\s+", " ", re.sub(r"^[;&|({`\"']\s*", "", text.strip()))
    return trimmed if len(trimmed) <= EXCERPT else f"{trimmed[: EXCERPT - 1]}…"
