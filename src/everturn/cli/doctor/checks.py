"""Doctor check: the result of one check of this machine, and the rendering of a list of results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

State = Literal["ok", "note", "absent", "broken"]
COLOURS: Final[Mapping[State, str]] = {"ok": "32", "note": "33", "absent": "2", "broken": "31"}
"""ANSI colour of each state. note: it works, with a remark. absent: it is not installed, and need not be."""

LONGEST: Final = 300  # characters of a text from outside


class DoctorCheck(Struct, frozen=True):
    """Result of one check. `fix` says how."""

    about: str
    name: str
    state: State
    detail: str = ""
    fix: str = ""
    guarantees: Mapping[str, str] = {}  # of a sandbox: "" where one holds, else why not


def render_checks(checks: Sequence[DoctorCheck], *, color: bool = False, arrow: str = "→") -> list[str]:
    """Render the checks as aligned lines; the fix is below the check it belongs to."""
    width = max((len(check.name) for check in checks), default=0)
    text: list[str] = []
    about = ""
    for check in checks:
        if check.about != about:
            about = check.about
            text += ([""] if text else []) + [about]
        state = f"{check.state:<7}"
        colored = f"\x1b[{COLOURS[check.state]}m{state}\x1b[0m" if color else state
        text.append(f"  {colored} {check.name:<{width}}  {check.detail}".rstrip())
        indent = " " * (width + 12)
        text += [f"{indent}not {name}: {make_printable(why)}" for name, why in check.guarantees.items() if why]
        if check.fix:
            text.append(f"{indent}{arrow} {check.fix}")
    broken = dict.fromkeys(check.name for check in checks if check.state == "broken")
    return [*text, "", f"broken: {', '.join(broken)}" if broken else "what is installed works"]


def make_printable(text: str) -> str:
    """Make an untrusted text printable, in one line of limited length."""
    return "".join(character if character.isprintable() else "?" for character in text)[:LONGEST]


def install_command(extra: str = "", *, upgrade: bool = False) -> str:
    """Return the command that installs an extra into this environment, whichever tool created it."""
    name = f"'everturn[{extra}]'" if extra else "everturn"
    parts = Path(sys.prefix).parts
    if "uv" in parts and "tools" in parts:
        return f"uv tool install {'--upgrade ' if upgrade else ''}{name}"
    if "pipx" in parts and "venvs" in parts:
        return f"pipx install --force {name}"
    command = "pip install" if _has_pip() else "uv pip install"
    return f"{command} {'--upgrade ' if upgrade else ''}{name}"


def _has_pip() -> bool:
    """Whether typing `pip` runs the pip of this environment; an environment that uv created has none."""
    try:
        settings = (Path(sys.prefix) / "pyvenv.cfg").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return True
    return (
        "\nuv = " not in f"\n{settings}"
        or any(Path(sys.prefix).glob("bin/pip"))
        or any(Path(sys.prefix).glob("*/pip.exe"))
    )
