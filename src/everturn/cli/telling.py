"""`everturn version` and `everturn demo`: what this is, and what it does."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from everturn import __version__
from everturn.cli.saying import complain, is_terminal, wants_color

NO_TERMINAL: Final = "the demo asks you a question, and there is no terminal to ask on; run `everturn demo --auto`"


def version(options: argparse.Namespace) -> int:
    """Say which version this is, and with --json on what it runs."""
    if not options.json:
        print(f"everturn {__version__}")
        return 0
    import json
    import platform

    told = {
        "everturn": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "extras": extras(),
    }
    print(json.dumps(told, indent=2))
    return 0


def extras() -> list[str]:
    """The extras of which everything is installed."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires("everturn") or []
    except metadata.PackageNotFoundError:  # run from its source
        return []
    wanted: dict[str, set[str]] = {}
    for line in lines:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        # Of another platform (`sys_platform != 'win32'`) it may be absent; of an extra of ours, its own lines say more.
        if name and extra and name[0] != "everturn" and "sys_platform" not in line:
            wanted.setdefault(extra[1], set()).add(name[0])
    return sorted(extra for extra, names in wanted.items() if all(map(_is_here, names)))


def _is_here(name: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def demo(options: argparse.Namespace) -> int:
    """Play a turn."""
    if not (options.auto or (is_terminal(sys.stdin) and is_terminal(sys.stdout))):
        return complain(NO_TERMINAL, 2)
    from everturn.demo import Options, play

    pace = {"word": 0.0, "moment": 0.0} if options.fast else {}
    return play(Options(options.auto, wants_color(options), **pace))
