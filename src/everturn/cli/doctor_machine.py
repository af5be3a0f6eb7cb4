"""This machine and this terminal → whether Everturn can run and be read here."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from everturn import __version__
from everturn.cli.doctor_checks import Check, installing, plain

ABOUT: Final = "Everturn " + __version__
OLDEST: Final = (3, 11)
PATIENCE: Final = 1.0  # seconds that a program has to say its version; five, where the machine is busy
RELEASED: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LITTLE, TOO_LITTLE = 1_000_000_000, 50_000_000  # bytes of a disk that are left
SMALLEST: Final = (80, 24)

PROGRAMS: Final[Mapping[str, tuple[str, str]]] = {
    "git": ("snapshots of folders", "install git"),
    "bwrap": ("run_shell", "install bubblewrap"),
    "node": ("MCP servers from npm", "install Node.js"),
}


def base() -> list[Check]:
    """Python, and the database that it brings."""
    is_new = sys.version_info[:2] >= OLDEST
    oldest = ".".join(map(str, OLDEST))
    python = Check(
        ABOUT,
        "Python",
        "ok" if is_new else "broken",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}, {plain(sys.executable)}",
        "" if is_new else f"Everturn needs Python {oldest} or newer",
    )
    try:
        database = sqlite3.connect(":memory:")
        try:
            database.execute("create virtual table words using fts5(text)")
        finally:
            database.close()
    except sqlite3.Error as error:
        mend = "sessions in a file need SQLite with FTS5: install a Python that was built with it"
        return [python, Check(ABOUT, "SQLite", "broken", f"{sqlite3.sqlite_version}: {error}", mend)]
    return [python, Check(ABOUT, "SQLite", "ok", f"{sqlite3.sqlite_version}, sessions in a file")]


def clock(now: float | None = None) -> Check:
    """Whether the clock can be right: it is not if this file was written later than now."""
    now = time.time() if now is None else now
    said = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    try:
        newest = max(RELEASED, Path(__file__).stat().st_mtime)
    except OSError:
        newest = RELEASED
    if now < newest - 60:
        mend = "set the clock: logins, leases and TLS depend on it"
        return Check(ABOUT, "clock", "broken", f"{said} is before Everturn was installed", mend)
    return Check(ABOUT, "clock", "ok", said)


def disk(folder: Path) -> Check:
    """How much room there is where sessions are kept."""
    place = nearest(folder)
    try:
        total, _, free = shutil.disk_usage(place)
    except OSError as error:
        return Check(ABOUT, "disk", "note", f"{plain(str(place))}: {error.strerror}")
    if not total:
        return Check(ABOUT, "disk", "note", f"nobody says how much is free at {plain(str(place))}")
    said = f"{size(free)} free at {plain(str(place))}"
    state = "broken" if free < TOO_LITTLE else "note" if free < LITTLE else "ok"
    return Check(ABOUT, "disk", state, said, "" if state == "ok" else "make room, or keep sessions elsewhere: --store")


def temporary() -> Check:
    """Whether files that are soon gone can be written; sandboxes and uploads do."""
    try:
        with tempfile.TemporaryFile():
            return Check(ABOUT, "temporary", "ok", plain(tempfile.gettempdir()))
    except OSError as error:
        return Check(ABOUT, "temporary", "broken", plain(str(error)), "set TMPDIR to a folder that can be written to")


def program(name: str) -> Check:
    """Whether a program is on the PATH, and starts."""
    purpose, mend = PROGRAMS[name]
    path = shutil.which(name)
    if path is None:
        return Check("Programs", name, "absent", purpose, mend)
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, timeout=PATIENCE * 5, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Check("Programs", name, "broken", plain(f"{purpose}; {path}: {error}"), f"{mend} again")
    version = re.search(r"\d[\w.]*", said.stdout.decode(errors="replace"))
    return Check("Programs", name, "ok", plain(f"{purpose}; {version[0] if version else '?'}, {path}"))


def terminal(environment: Mapping[str, str]) -> list[Check]:
    """What can be drawn here, and in which letters."""
    return [_screen(environment), _letters(), _drawing()]


def _screen(environment: Mapping[str, str]) -> Check:
    about, name = "Terminal", "screen"
    if not sys.stdout.isatty():
        return Check(about, name, "absent", "the output is no terminal, so it is plain text")
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    said = f"{columns}×{rows}, {_colours(environment)}"
    if environment.get("TERM", "") in ("", "dumb"):
        return Check(about, name, "note", said, "set TERM, such as TERM=xterm-256color")
    if (columns, rows) != (0, 0) and (columns < SMALLEST[0] or rows < SMALLEST[1]):
        return Check(about, name, "note", said, f"make it {SMALLEST[0]}×{SMALLEST[1]} or larger")
    return Check(about, name, "ok", said)


def _colours(environment: Mapping[str, str]) -> str:
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR"):
        return "no colours, for NO_COLOR is set"
    if term in ("", "dumb"):
        return f"no colours, for TERM is {term or 'not set'}"
    if environment.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in term else "16 colours"


def _letters() -> Check:
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    if encoding.replace("-", "") == "utf8":
        return Check("Terminal", "letters", "ok", "UTF-8")
    mend = "set PYTHONUTF8=1, and a locale such as LC_ALL=C.UTF-8"
    return Check("Terminal", "letters", "note", f"{encoding or 'unknown'}: what is not in it is shown as \\u…", mend)


def _drawing() -> Check:
    from importlib.util import find_spec

    if find_spec("textual") is not None:
        return Check("Terminal", "full screen", "ok", "everturn chat draws on the whole screen; --plain does not")
    return Check("Terminal", "full screen", "absent", "everturn chat goes line by line", installing("tui"))


def nearest(folder: Path) -> Path:
    """The folder itself, or the first around it that is there."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)


def size(number: float) -> str:
    """Bytes as people say them."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
