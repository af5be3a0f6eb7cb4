"""Machine check: whether Everturn can run here (Python, SQLite, clock, disk, programs), and what the terminal can show."""

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
from everturn.cli.doctor.checks import DoctorCheck, install_command, make_printable

ABOUT: Final = "Everturn " + __version__
OLDEST: Final = (3, 11)
PATIENCE: Final = 1.0  # seconds for a program to print its version; a busy machine gets five times as many
RELEASED: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LITTLE, TOO_LITTLE = 1_000_000_000, 50_000_000  # free bytes of a disk
SMALLEST: Final = (80, 24)

PROGRAMS: Final[Mapping[str, tuple[str, str]]] = {
    "git": ("snapshots of folders", "install git"),
    "bwrap": ("run_shell", "install bubblewrap"),
    "node": ("MCP servers from npm", "install Node.js"),
}


def check_python_and_sqlite() -> list[DoctorCheck]:
    """Check Python, and the SQLite that it includes."""
    is_new = sys.version_info[:2] >= OLDEST
    oldest = ".".join(map(str, OLDEST))
    python = DoctorCheck(
        ABOUT,
        "Python",
        "ok" if is_new else "broken",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}, {make_printable(sys.executable)}",
        "" if is_new else f"Everturn needs Python {oldest} or newer",
    )
    try:
        database = sqlite3.connect(":memory:")
        try:
            database.execute("create virtual table words using fts5(text)")
        finally:
            database.close()
    except sqlite3.Error as error:
        fix = "sessions in a file need SQLite with FTS5: install a Python that was built with it"
        return [python, DoctorCheck(ABOUT, "SQLite", "broken", f"{sqlite3.sqlite_version}: {error}", fix)]
    return [python, DoctorCheck(ABOUT, "SQLite", "ok", f"{sqlite3.sqlite_version}, sessions in a file")]


def check_clock(now: float | None = None) -> DoctorCheck:
    """Check whether the clock can be right: it is wrong if it is earlier than the time at which this file was written."""
    now = time.time() if now is None else now
    time_text = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    try:
        newest = max(RELEASED, Path(__file__).stat().st_mtime)
    except OSError:
        newest = RELEASED
    if now < newest - 60:
        fix = "set the clock: logins, leases and TLS depend on it"
        return DoctorCheck(ABOUT, "clock", "broken", f"{time_text} is before Everturn was installed", fix)
    return DoctorCheck(ABOUT, "clock", "ok", time_text)


def check_disk(folder: Path) -> DoctorCheck:
    """Check the free space where sessions are stored."""
    existing = nearest_existing_folder(folder)
    try:
        total, _, free = shutil.disk_usage(existing)
    except OSError as error:
        return DoctorCheck(ABOUT, "disk", "note", f"{make_printable(str(existing))}: {error.strerror}")
    if not total:
        return DoctorCheck(ABOUT, "disk", "note", f"the free space cannot be read at {make_printable(str(existing))}")
    detail = f"{format_bytes(free)} free at {make_printable(str(existing))}"
    state = "broken" if free < TOO_LITTLE else "note" if free < LITTLE else "ok"
    return DoctorCheck(
        ABOUT, "disk", state, detail, "" if state == "ok" else "make room, or keep sessions elsewhere: --store"
    )


def check_temporary_files() -> DoctorCheck:
    """Check whether temporary files can be written; sandboxes and uploads need them."""
    try:
        with tempfile.TemporaryFile():
            return DoctorCheck(ABOUT, "temporary", "ok", make_printable(tempfile.gettempdir()))
    except OSError as error:
        return DoctorCheck(
            ABOUT, "temporary", "broken", make_printable(str(error)), "set TMPDIR to a folder that can be written to"
        )


def needed_programs() -> list[str]:
    """The programs that this platform needs: on macOS the shell has another sandbox than bubblewrap."""
    return [name for name in PROGRAMS if name != "bwrap" or sys.platform != "darwin"]


def check_program(name: str) -> DoctorCheck:
    """Check whether a program is on the PATH, and starts."""
    purpose, fix = PROGRAMS[name]
    path = shutil.which(name)
    if path is None:
        return DoctorCheck("Programs", name, "absent", purpose, fix)
    try:
        process = subprocess.run(
            [path, "--version"], capture_output=True, timeout=PATIENCE * 5, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return DoctorCheck("Programs", name, "broken", make_printable(f"{purpose}; {path}: {error}"), f"{fix} again")
    version = re.search(r"\d[\w.]*", process.stdout.decode(errors="replace"))
    return DoctorCheck("Programs", name, "ok", make_printable(f"{purpose}; {version[0] if version else '?'}, {path}"))


def check_terminal(environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Check what the terminal can show: size, colours, encoding, full-screen UI."""
    return [_screen(environment), _encoding(), _full_screen()]


def _screen(environment: Mapping[str, str]) -> DoctorCheck:
    about, name = "Terminal", "screen"
    if not sys.stdout.isatty():
        return DoctorCheck(about, name, "absent", "the output is no terminal, so it is plain text")
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    detail = f"{columns}×{rows}, {_colours(environment)}"
    if environment.get("TERM", "") in ("", "dumb"):
        return DoctorCheck(about, name, "note", detail, "set TERM, such as TERM=xterm-256color")
    if (columns, rows) != (0, 0) and (columns < SMALLEST[0] or rows < SMALLEST[1]):
        return DoctorCheck(about, name, "note", detail, f"make it {SMALLEST[0]}×{SMALLEST[1]} or larger")
    return DoctorCheck(about, name, "ok", detail)


def _colours(environment: Mapping[str, str]) -> str:
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR"):
        return "no colours, for NO_COLOR is set"
    if term in ("", "dumb"):
        return f"no colours, for TERM is {term or 'not set'}"
    if environment.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in term else "16 colours"


def _encoding() -> DoctorCheck:
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    if encoding.replace("-", "") == "utf8":
        return DoctorCheck("Terminal", "letters", "ok", "UTF-8")
    fix = "set PYTHONUTF8=1, and a locale such as LC_ALL=C.UTF-8"
    return DoctorCheck(
        "Terminal", "letters", "note", f"{encoding or 'unknown'}: what is not in it is shown as \\u…", fix
    )


def _full_screen() -> DoctorCheck:
    from importlib.util import find_spec

    if find_spec("textual") is not None:
        return DoctorCheck("Terminal", "full screen", "ok", "everturn chat draws on the whole screen; --plain does not")
    return DoctorCheck("Terminal", "full screen", "absent", "everturn chat goes line by line", install_command("tui"))


def nearest_existing_folder(folder: Path) -> Path:
    """Return the folder itself, or its closest parent that exists."""
    return next((candidate for candidate in (folder, *folder.parents) if candidate.is_dir()), folder)


def format_bytes(number: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
