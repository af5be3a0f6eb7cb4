"""`everturn doctor`: checks what of Everturn works on this machine, what does not, and how to fix it.

Of API keys only the names are read, never the values; of addresses only host and port are shown. All checks run
concurrently, and none is awaited longer than `LONGEST`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final

import msgspec

from everturn import __version__
from everturn.cli.doctor import machine, models
from everturn.cli.doctor.checks import DoctorCheck, make_printable, render_checks
from everturn.cli.doctor.extras import check_extras, find_required_extras
from everturn.cli.doctor.server import check_configuration, check_server
from everturn.cli.doctor.services import check_service, collect_addresses
from everturn.cli.doctor.store import check_store, resolve_configured_store
from everturn.config.worker import FILE
from everturn.core.sandbox import GUARANTEES, SandboxReport
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.load import LoadedConfig

TIMEOUT: Final = 20.0  # seconds for all checks; they take one or two, and more on a busy machine
LATER: Final = "look again; if this stays, please report it"
PROGRESS_DELAY: Final = 1.0  # seconds until the checks that still run are shown

CheckFunction = Callable[[], list[DoctorCheck]]
ProgressCallback = Callable[[Sequence[str]], None]


def doctor(argv: Sequence[str] = ()) -> int:
    """Run all checks and print them; return 0 if everything installed works, 1 if something is broken."""
    parser = argparse.ArgumentParser(prog="everturn doctor", allow_abbrev=False)
    parser.add_argument("--config", default="")
    parser.add_argument("--store", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-color", action="store_true")
    options = parser.parse_args(argv)
    named = {FILE: options.config, "EVERTURN_STORE__URL": options.store}
    environment = {**os.environ, **{name: value for name, value in named.items() if value}}
    checks = run_checks(environment, _progress if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode({"version": __version__, "checks": checks}), indent=2).decode())
    else:
        is_plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        for line in render_checks(checks, color=sys.stdout.isatty() and not is_plain, arrow=_arrow()):
            print(line)
    return 1 if any(check.state == "broken" for check in checks) else 0


def run_checks(environment: Mapping[str, str], on_progress: ProgressCallback | None = None) -> list[DoctorCheck]:
    """Run all checks concurrently, and return them in the order of their sections."""
    checks: dict[str, CheckFunction] = {
        "the machine": lambda: [
            *machine.check_python_and_sqlite(),
            machine.check_clock(),
            machine.check_temporary_files(),
        ],
        "the terminal": lambda: machine.check_terminal(environment),
        "the configuration": lambda: run_configured_checks(environment),
        "keys": lambda: models.check_keys(environment),
        "sandboxes": check_sandboxes,
        **{name: lambda name=name: [machine.check_program(name)] for name in machine.needed_programs()},
    }
    results = run_concurrently(checks, on_progress, TIMEOUT)
    return sorted(results, key=lambda check: ORDER.get(check.about.split()[0], len(ORDER)))


ORDER: Final = {
    name: at
    for at, name in enumerate(
        "Everturn Configuration Folder Models Keys Sessions Server Services Terminal Extras Sandboxes Programs".split()
    )
}


def run_configured_checks(environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Check the configuration, and everything that depends on it."""
    results, loaded = check_configuration(environment)
    config = loaded or _defaults()
    checks: dict[str, CheckFunction] = {"extras": lambda: check_extras(find_required_extras(config))}
    for name, address in collect_addresses(loaded, environment).items():
        checks[name] = lambda name=name, address=address: [check_service(name, address)]
    if loaded is not None:
        checks["models"] = lambda: models.check_agent_models(loaded, environment)
    checks["servers for models"] = lambda: models.check_local_servers(config)
    if loaded is not None:
        checks["the folder"] = lambda: _folder(loaded, environment)
        checks["sessions"] = lambda: [*check_store(loaded, environment), *_disk(loaded, environment)]
        checks["the server"] = lambda: check_server(loaded, environment)
    return results + run_concurrently(checks, None, TIMEOUT - 1)


def run_concurrently(
    functions: Mapping[str, CheckFunction], on_progress: ProgressCallback | None, longest: float
) -> list[DoctorCheck]:
    """Run checks concurrently, and return their results in the order in which they are named.

    They run in daemon threads: a check that never returns must not keep the process alive.
    """
    done: SimpleQueue[tuple[str, list[DoctorCheck]]] = SimpleQueue()

    def run(name: str, function: CheckFunction) -> None:
        done.put((name, _run_check(name, function)))

    for item in functions.items():
        Thread(target=run, args=item, daemon=True).start()
    results: dict[str, list[DoctorCheck]] = {}
    started, is_shown = time.monotonic(), False
    while len(results) < len(functions) and (remaining := started + longest - time.monotonic()) > 0:
        try:
            name, checks = done.get(timeout=min(remaining, PROGRESS_DELAY))
            results[name] = checks
        except Empty:
            pass
        if on_progress is not None and time.monotonic() - started >= PROGRESS_DELAY:
            on_progress([name for name in functions if name not in results])
            is_shown = True
    if on_progress is not None and is_shown:
        on_progress(())
    late = [DoctorCheck("Everturn " + __version__, name, "note", f"no answer in {longest:.0f} s", LATER)
            for name in functions if name not in results]  # fmt: skip
    return [check for name in functions for check in results.get(name, ())] + late


def _run_check(name: str, function: CheckFunction) -> list[DoctorCheck]:
    try:
        return function()
    except Exception as error:  # one check that fails must not hide the others
        detail = make_printable(f"{type(error).__name__}: {error}")
        return [DoctorCheck("Everturn " + __version__, name, "broken", detail, "please report this")]


def check_sandboxes() -> list[DoctorCheck]:
    """Check which guarantees each sandbox backend holds, by probing it now."""
    from everturn.sandbox import available_sandboxes

    return [check_sandbox(report) for report in available_sandboxes()]


def check_sandbox(report: SandboxReport) -> DoctorCheck:
    """Report one backend; it is broken if it is installed and holds less than its tool needs."""
    from everturn.sandbox import OPTIONAL_GUARANTEES, cgroups

    name = f"{report.backend} {report.version}".strip()
    if report.absent:
        return DoctorCheck(
            "Sandboxes", name, "broken" if report.version else "absent", fix=make_printable(report.absent)
        )
    reasons = {
        guarantee: "" if guarantee in report.holds else report.missing.get(guarantee) or "not probed"
        for guarantee in GUARANTEES
    }
    detail = " ".join(guarantee for guarantee, why in reasons.items() if not why) or "nothing holds"
    missing = {guarantee for guarantee, why in reasons.items() if why}
    if not missing:
        return DoctorCheck("Sandboxes", name, "ok", detail, "", reasons)
    if missing <= OPTIONAL_GUARANTEES.get(report.backend, frozenset()):
        fix = "its tool is offered, and says so" + (f"; {cgroups.HOW}" if report.backend == "bubblewrap" else "")
        return DoctorCheck("Sandboxes", name, "note", detail, fix, reasons)
    fix = "its tool is not offered; allow_degraded=[…] does without"
    if report.backend == "seatbelt":
        fix = "in a folder, every command asks; elsewhere its tool is not offered"
    return DoctorCheck("Sandboxes", name, "broken", detail, fix, reasons)


def _defaults() -> LoadedConfig:
    from everturn.config.load import load_config

    return load_config(os.devnull, {})


def _folder(loaded: LoadedConfig, environment: Mapping[str, str]) -> list[DoctorCheck]:
    from everturn.cli.doctor.folder import check_folder

    return check_folder(loaded, environment)


def _disk(loaded: LoadedConfig, environment: Mapping[str, str]) -> list[DoctorCheck]:
    from pathlib import Path

    try:
        location = resolve_configured_store(loaded, environment)
    except ConfigError:  # reported by the check of the store
        return []
    return [] if "://" in location or location == "memory" else [machine.check_disk(Path(location).parent)]


def _progress(names: Sequence[str]) -> None:
    """Show the checks that still run, in a line that is overwritten."""
    line = f"looking at {', '.join(names)} …"[:70] if names else ""
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _arrow() -> str:
    try:
        "→".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "->"
    return "→"
