"""What is found of one thing on this machine, and how a list of that is shown to a person."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

State = Literal["ok", "note", "absent", "broken"]
COLOURS: Final[Mapping[State, str]] = {"ok": "32", "note": "33", "absent": "2", "broken": "31"}
"""note: it works, and there is something to know. absent: it is not here, and need not be."""

LONGEST: Final = 300  # characters of what others say


class Check(Struct, frozen=True):
    """One thing that was looked at. `mend` says what to do about it."""

    about: str
    name: str
    state: State
    detail: str = ""
    mend: str = ""
    guarantees: Mapping[str, str] = {}  # of a sandbox: "" where one holds, else why not


def lines(checks: Sequence[Check], *, color: bool = False, arrow: str = "→") -> list[str]:
    """What a person reads, aligned; what is to be done stands under what it is about."""
    width = max((len(check.name) for check in checks), default=0)
    text: list[str] = []
    about = ""
    for check in checks:
        if check.about != about:
            about = check.about
            text += ([""] if text else []) + [about]
        state = f"{check.state:<7}"
        shown = f"\x1b[{COLOURS[check.state]}m{state}\x1b[0m" if color else state
        text.append(f"  {shown} {check.name:<{width}}  {check.detail}".rstrip())
        indent = " " * (width + 12)
        text += [f"{indent}not {name}: {plain(why)}" for name, why in check.guarantees.items() if why]
        if check.mend:
            text.append(f"{indent}{arrow} {check.mend}")
    broken = dict.fromkeys(check.name for check in checks if check.state == "broken")
    return [*text, "", f"broken: {', '.join(broken)}" if broken else "what is installed works"]


def plain(text: str) -> str:
    """A text of others, in one line that a terminal takes for nothing else."""
    return "".join(character if character.isprintable() else "?" for character in text)[:LONGEST]


def installing(extra: str = "", *, upgrade: bool = False) -> str:
    """What brings an extra into the environment that this runs in, whoever made that."""
    name = f"'everturn[{extra}]'" if extra else "everturn"
    parts = Path(sys.prefix).parts
    if "uv" in parts and "tools" in parts:
        return f"uv tool install {'--upgrade ' if upgrade else ''}{name}"
    if "pipx" in parts and "venvs" in parts:
        return f"pipx install --force {name}"
    words = "pip install" if _has_pip() else "uv pip install"
    return f"{words} {'--upgrade ' if upgrade else ''}{name}"


def _has_pip() -> bool:
    """Whether `pip` of this environment is meant when somebody types it; one that uv made has none."""
    try:
        made = (Path(sys.prefix) / "pyvenv.cfg").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return True
    return (
        "\nuv = " not in f"\n{made}" or any(Path(sys.prefix).glob("bin/pip")) or any(Path(sys.prefix).glob("*/pip.exe"))
    )
