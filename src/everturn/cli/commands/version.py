"""`everturn version` and `everturn demo`: prints the version, and plays the offline demo turn."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from everturn import __version__
from everturn.cli.output import is_terminal, print_error, wants_color

NO_TERMINAL: Final = "the demo asks you a question, and there is no terminal to ask on; run `everturn demo --auto`"


def version(options: argparse.Namespace) -> int:
    """Print the version; with --json also Python, the platform and the installed extras."""
    if not options.json:
        print(f"everturn {__version__}")
        return 0
    import json
    import platform

    facts = {
        "everturn": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "extras": extras(),
    }
    print(json.dumps(facts, indent=2))
    return 0


def extras() -> list[str]:
    """List the extras whose packages are all installed."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires("everturn") or []
    except metadata.PackageNotFoundError:  # run from its source
        return []
    wanted: dict[str, set[str]] = {}
    for line in lines:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        # A package for another platform (`sys_platform != 'win32'`) may be absent; the packages of an extra that another
        # extra names are in lines of their own.
        if name and extra and name[0] != "everturn" and "sys_platform" not in line:
            wanted.setdefault(extra[1], set()).add(name[0])
    return sorted(extra for extra, names in wanted.items() if all(map(_is_installed, names)))


def _is_installed(name: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def demo(options: argparse.Namespace) -> int:
    """Play the demo turn."""
    if not (options.auto or (is_terminal(sys.stdin) and is_terminal(sys.stdout))):
        return print_error(NO_TERMINAL, 2)
    from everturn.demo import DemoOptions, run_demo

    pace = {"word": 0.0, "moment": 0.0} if options.fast else {}
    return run_demo(DemoOptions(options.auto, wants_color(options), **pace))
