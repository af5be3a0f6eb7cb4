"""This machine → what of Everturn works on it, what does not, and how to mend it.

Only names of keys are read, and never their values; of addresses only host and port are shown. Everything is looked at
at once, and nothing is waited for longer than `LONGEST`.
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
from everturn.cli import doctor_machine, doctor_models
from everturn.cli.doctor_checks import Check, lines, plain
from everturn.cli.doctor_extras import extras, needed_by
from everturn.cli.doctor_server import configuration, server
from everturn.cli.doctor_services import addresses, service
from everturn.cli.doctor_store import place_of, store
from everturn.core.sandboxes import GUARANTEES, Report
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.loading import Loaded

LONGEST: Final = 20.0  # seconds for all of it; it takes one or two, and more where the machine is busy
LATER: Final = "look again; if this stays, please report it"
QUIET: Final = 1.0  # seconds until a person is told what is still looked at

Look = Callable[[], list[Check]]
Told = Callable[[Sequence[str]], None]


def doctor(argv: Sequence[str] = ()) -> int:
    """Look at everything and say it: 0 if what is installed works, 1 if something of it is broken."""
    parser = argparse.ArgumentParser(prog="everturn doctor", allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-color", action="store_true")
    options = parser.parse_args(argv)
    checks = examine(os.environ, _progress if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode({"version": __version__, "checks": checks}), indent=2).decode())
    else:
        is_plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        for line in lines(checks, color=sys.stdout.isatty() and not is_plain, arrow=_arrow()):
            print(line)
    return 1 if any(check.state == "broken" for check in checks) else 0


def examine(environment: Mapping[str, str], told: Told | None = None) -> list[Check]:
    """Look at everything, each thing beside the others; what depends on the configuration follows on it."""
    looks: dict[str, Look] = {
        "the machine": lambda: [*doctor_machine.base(), doctor_machine.clock(), doctor_machine.temporary()],
        "the terminal": lambda: doctor_machine.terminal(environment),
        "the configuration": lambda: configured(environment),
        "keys": lambda: doctor_models.keys(environment),
        "sandboxes": sandboxes,
        **{name: lambda name=name: [doctor_machine.program(name)] for name in doctor_machine.PROGRAMS},
    }
    found = together(looks, told, LONGEST)
    return sorted(found, key=lambda check: ORDER.get(check.about.split()[0], len(ORDER)))


ORDER: Final = {
    name: at
    for at, name in enumerate(
        "Everturn Configuration Models Keys Sessions Server Services Terminal Extras Sandboxes Programs".split()
    )
}


def configured(environment: Mapping[str, str]) -> list[Check]:
    """The configuration, and everything for which it has to be known."""
    found, loaded = configuration(environment)
    usual = loaded or _defaults()
    looks: dict[str, Look] = {"extras": lambda: extras(needed_by(usual))}
    for name, address in addresses(loaded, environment).items():
        looks[name] = lambda name=name, address=address: [service(name, address)]
    if loaded is not None:
        looks["models"] = lambda: doctor_models.meant(loaded, environment)
    looks["servers for models"] = lambda: doctor_models.local(usual)
    if loaded is not None:
        looks["sessions"] = lambda: [*store(loaded, environment), *_disk(loaded, environment)]
        looks["the server"] = lambda: server(loaded, environment)
    return found + together(looks, None, LONGEST - 1)


def together(looks: Mapping[str, Look], told: Told | None, longest: float) -> list[Check]:
    """Look at many things at once, and have what was found in the order they are named.

    Threads that die with the process: what never answers must not keep it.
    """
    done: SimpleQueue[tuple[str, list[Check]]] = SimpleQueue()

    def keep(name: str, look: Look) -> None:
        done.put((name, _safely(name, look)))

    for one in looks.items():
        Thread(target=keep, args=one, daemon=True).start()
    found: dict[str, list[Check]] = {}
    began, is_told = time.monotonic(), False
    while len(found) < len(looks) and (left := began + longest - time.monotonic()) > 0:
        try:
            name, checks = done.get(timeout=min(left, QUIET))
            found[name] = checks
        except Empty:
            pass
        if told is not None and time.monotonic() - began >= QUIET:
            told([name for name in looks if name not in found])
            is_told = True
    if told is not None and is_told:
        told(())
    late = [Check("Everturn " + __version__, name, "note", f"no answer in {longest:.0f} s", LATER)
            for name in looks if name not in found]  # fmt: skip
    return [check for name in looks for check in found.get(name, ())] + late


def _safely(name: str, look: Look) -> list[Check]:
    try:
        return look()
    except Exception as error:  # whatever one look ran into, the rest is still worth saying
        said = plain(f"{type(error).__name__}: {error}")
        return [Check("Everturn " + __version__, name, "broken", said, "please report this")]


def sandboxes() -> list[Check]:
    """What code that a model wrote is kept from, as probed just now."""
    from everturn.sandbox import available

    return [sandbox(report) for report in available()]


def sandbox(report: Report) -> Check:
    """One backend: it is broken if it is here and holds less than its tool needs."""
    from everturn.sandbox import NOT_NEEDED, cgroups

    name = f"{report.backend} {report.version}".strip()
    if report.absent:
        return Check("Sandboxes", name, "broken" if report.version else "absent", mend=plain(report.absent))
    held = {one: "" if one in report.holds else report.missing.get(one) or "not probed" for one in GUARANTEES}
    detail = " ".join(one for one, why in held.items() if not why) or "nothing holds"
    lost = {one for one, why in held.items() if why}
    if not lost:
        return Check("Sandboxes", name, "ok", detail, "", held)
    if lost <= NOT_NEEDED.get(report.backend, frozenset()):
        mend = f"its tool is offered, and says so; {cgroups.HOW}"
        return Check("Sandboxes", name, "note", detail, mend, held)
    return Check("Sandboxes", name, "broken", detail, "its tool is not offered; allow_degraded=[…] does without", held)


def _defaults() -> Loaded:
    from everturn.config.loading import load

    return load(os.devnull, {})


def _disk(loaded: Loaded, environment: Mapping[str, str]) -> list[Check]:
    from pathlib import Path

    try:
        place = place_of(loaded, environment)
    except ConfigError:  # told with the store
        return []
    return [] if "://" in place or place == "memory" else [doctor_machine.disk(Path(place).parent)]


def _progress(names: Sequence[str]) -> None:
    """Say what is still looked at, in a line that goes again."""
    said = f"looking at {', '.join(names)} …"[:70] if names else ""
    print(f"\r\x1b[K{said}", end="", file=sys.stderr, flush=True)


def _arrow() -> str:
    try:
        "→".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "->"
    return "→"
