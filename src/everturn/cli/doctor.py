"""This machine → what of Everturn works on it, what does not, and how to mend it.

Only names of keys are read, and never their values; of addresses only host and port are shown.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from importlib.util import find_spec
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from everturn import __version__
from everturn.core.sandboxes import GUARANTEES, Report

State = Literal["ok", "absent", "broken"]
COLOURS: Final[Mapping[State, str]] = {"ok": "32", "absent": "2", "broken": "31"}
OLDEST: Final = (3, 11)
PATIENCE: Final = 1.0  # seconds that a program or a service has to answer

EXTRAS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "code": ("run_python and run_javascript", {"pydantic-monty": "pydantic_monty", "quickjs-ng": "quickjs"}),
    "shell": ("rules for shell commands", {"tree-sitter": "tree_sitter", "tree-sitter-bash": "tree_sitter_bash"}),
    "mcp": ("tools of MCP servers", {"mcp": "mcp"}),
    "prices": ("what requests cost", {"genai-prices": "genai_prices"}),
    "postgres": ("sessions in PostgreSQL", {"asyncpg": "asyncpg"}),
    "cluster": (
        "many workers",
        {"asyncpg": "asyncpg", "granian": "granian", "nats-py": "nats", "restate-sdk": "restate"},
    ),
    "server": (
        "everturn serve",
        {"starlette": "starlette", "uvicorn": "uvicorn", "pyjwt": "jwt", "uvloop": "uvloop"},
    ),
    "otel": (
        "traces to a collector",
        {"opentelemetry-sdk": "opentelemetry.sdk", "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter"},
    ),
    "pydantic-ai": ("models of pydantic-ai", {"pydantic-ai-slim": "pydantic_ai"}),
    "litellm": ("models of litellm", {"litellm": "litellm"}),
}
"""Extra → what it is for, and its packages with the names by which they are imported."""

PROGRAMS: Final[Mapping[str, tuple[str, str]]] = {
    "git": ("snapshots of folders", "install git"),
    "bwrap": ("run_shell", "install bubblewrap"),
    "node": ("MCP servers from npm", "install Node.js"),
}
SERVICES: Final[Mapping[str, int]] = {
    "EVERTURN_DATABASE": 5432,
    "EVERTURN_RESTATE": 8080,
    "EVERTURN_ADMIN": 9070,
    "EVERTURN_NATS": 4222,
}
"""The variables that say where a worker finds its services, and the ports these have if nothing is said."""


class Check(Struct, frozen=True):
    """One thing that was looked at. `mend` says what to do about it."""

    about: str
    name: str
    state: State
    detail: str = ""
    mend: str = ""
    guarantees: Mapping[str, str] = {}  # of a sandbox: "" where one holds, else why not


def doctor(argv: Sequence[str] = ()) -> int:
    """Look at everything and say it: 0 if what is installed works, 1 if something of it is broken."""
    parser = argparse.ArgumentParser(prog="everturn doctor", allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-color", action="store_true")
    options = parser.parse_args(argv)
    checks = examine(os.environ)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode({"version": __version__, "checks": checks}), indent=2).decode())
    else:
        is_plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        for line in lines(checks, color=sys.stdout.isatty() and not is_plain):
            print(line)
    return 1 if any(check.state == "broken" for check in checks) else 0


def examine(environment: Mapping[str, str]) -> list[Check]:
    """Look at everything, slow things beside one another."""
    looks: list[Callable[[], list[Check]]] = [
        base,
        *(lambda extra=extra: [installed(extra)] for extra in EXTRAS),
        sandboxes,
        *(lambda name=name: [program(name)] for name in PROGRAMS),
        *(lambda name=name: [service(name, environment[name])] for name in SERVICES if environment.get(name)),
        lambda: served(environment),
        lambda: keys(environment),
    ]
    with ThreadPoolExecutor(len(looks)) as beside:
        return [check for found in [beside.submit(look) for look in looks] for check in found.result()]


def lines(checks: Sequence[Check], *, color: bool = False) -> list[str]:
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
        text += [f"{indent}not {name}: {_plain(why)}" for name, why in check.guarantees.items() if why]
        if check.mend:
            text.append(f"{indent}→ {check.mend}")
    broken = [check.name for check in checks if check.state == "broken"]
    return [*text, "", f"broken: {', '.join(broken)}" if broken else "what is installed works"]


def base() -> list[Check]:
    """Python, and the database that it brings."""
    is_new = sys.version_info[:2] >= OLDEST
    oldest = ".".join(map(str, OLDEST))
    python = Check(
        "Everturn " + __version__,
        "Python",
        "ok" if is_new else "broken",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
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
        return [python, Check(python.about, "SQLite", "broken", f"{sqlite3.sqlite_version}: {error}", mend)]
    return [python, Check(python.about, "SQLite", "ok", f"{sqlite3.sqlite_version}, sessions in a file")]


def installed(extra: str) -> Check:
    """Whether the packages of an extra are here, and new enough."""
    purpose, packages = EXTRAS[extra]
    wanted = _wanted()
    here, gone, wrong = list[str](), list[str](), list[str]()
    for package, module in packages.items():
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            gone.append(package)
            continue
        here.append(f"{package} {version}")
        if find_spec(module) is None:
            wrong.append(f"{package} has no module {module}")
        elif not _fits(version, wanted.get(package, "")):
            wrong.append(f"{package} {version} is not {wanted[package]}")
    mend = f"pip install --upgrade 'everturn[{extra}]'" if wrong else f"pip install 'everturn[{extra}]'" if gone else ""
    lacking = f"without {', '.join(gone)}" if gone and here else ""
    said = "; ".join(filter(None, [purpose, ", ".join(wrong or here), lacking]))
    return Check("Extras", extra, "broken" if wrong else "absent" if gone else "ok", said, mend)


def sandboxes() -> list[Check]:
    """What code that a model wrote is kept from, as probed just now."""
    from everturn.sandbox import available

    try:
        return [sandbox(report) for report in available()]
    except Exception as error:  # whatever a probe ran into, the rest is still worth saying
        return [Check("Sandboxes", "probe", "broken", _plain(f"{type(error).__name__}: {error}"), "please report this")]


def sandbox(report: Report) -> Check:
    """One backend: it is broken if it is here and holds less than it could."""
    name = f"{report.backend} {report.version}".strip()
    if report.absent:
        return Check("Sandboxes", name, "broken" if report.version else "absent", mend=_plain(report.absent))
    held = {one: "" if one in report.holds else report.missing.get(one) or "not probed" for one in GUARANTEES}
    detail = " ".join(one for one, why in held.items() if not why) or "nothing holds"
    mend = "its tool is not offered; allow_degraded=[…] does without" if any(held.values()) else ""
    return Check("Sandboxes", name, "broken" if mend else "ok", detail, mend, held)


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
        return Check("Programs", name, "broken", _plain(f"{purpose}; {path}: {error}"), f"{mend} again")
    version = re.search(r"\d[\w.]*", said.stdout.decode(errors="replace"))
    return Check("Programs", name, "ok", _plain(f"{purpose}; {version[0] if version else '?'}, {path}"))


def service(variable: str, address: str) -> Check:
    """Whether somebody listens where a variable says. A password in the address is not shown."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port or SERVICES[variable]
    except ValueError:
        return Check("Services", variable, "broken", "it is no address", f"set {variable} to one, such as host:port")
    place = _plain(f"{host}:{port}")
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except (OSError, UnicodeError):
        return Check("Services", variable, "broken", f"nobody answers at {place}", f"start it, or unset {variable}")
    return Check("Services", variable, "ok", place)


def served(environment: Mapping[str, str]) -> list[Check]:
    """What a server would find here."""
    from everturn.cli.doctor_server import server

    return server(environment)


def keys(environment: Mapping[str, str]) -> list[Check]:
    """Which keys are set, by name."""
    from everturn.models.vendors import VENDORS

    users: dict[str, list[str]] = {"EVERTURN_API_KEY": ["a server of your own"]}
    for vendor, profile in VENDORS.items():
        if profile.key:
            users.setdefault(profile.key, []).append(vendor)
    return [
        Check("Keys", name, "ok" if environment.get(name, "").strip() else "absent", ", ".join(vendors))
        for name, vendors in users.items()
    ]


def _wanted() -> dict[str, str]:
    """Package → the versions that we want of it."""
    try:
        asked = metadata.requires("everturn") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", one) for one in asked)
    return {one[1]: one[2].strip() for one in found if one is not None}


def _fits(version: str, wanted: str) -> bool:
    """Whether a version is among those wanted; only `>=` and `<` are read, for only these are written."""
    have = _numbers(version)
    rules = re.findall(r"(>=|<)\s*([\d.]+)", wanted)
    return all(have >= _numbers(number) if rule == ">=" else have < _numbers(number) for rule, number in rules)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)[:300]
