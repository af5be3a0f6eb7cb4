"""`sandbox-exec` for a machine that is no Mac: reads a profile, and has bubblewrap enforce what it says about files,
the network and processes.

It shows that a profile says what it should, and how a command behaves under it; it does not show what macOS makes of
that profile.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Literal

from tests.helpers.sbpl import Profile
from tools.environment import ROOT

Fault = Literal["", "open", "refuses", "net"]
"""How it is wrong: it enforces nothing, does not start a command, or leaves the network open."""


def write_fake(path: Path, fault: Fault = "") -> str:
    """Write the program; returns its path."""
    settings = f"PYTHONPATH='{ROOT}' SEATBELT_FAULT='{fault}' SEATBELT_BWRAP='{shutil.which('bwrap')}'"
    path.write_text(
        f"#!/bin/sh\n{settings} exec '{sys.executable}' -m tests.helpers.fake_sandbox_exec \"$@\"\n", encoding="utf-8"
    )
    path.chmod(0o755)
    return str(path)


def options(profile: Profile) -> list[str]:
    """The options of bubblewrap that have the effect of the profile."""
    words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--die-with-parent"]
    if not profile.allows("network-outbound", "192.0.2.1", "remote"):
        words.append("--unshare-net")
    if not profile.allows("signal", "others", "target"):
        words.append("--unshare-pid")
    closed: list[str] = []
    for path in sorted(set(profile.paths()), key=lambda path: path.split("/")):
        if path == "/" or path.startswith(("/dev", "/proc")) or not os.path.exists(path):
            continue
        if profile.allows("file-write-data", path):
            words += ["--bind", path, path]
        elif profile.allows("file-read-data", path):
            words += ["--ro-bind", path, path]
        elif os.path.isdir(path):
            words += ["--tmpfs", path]
            closed.append(path)
        else:
            words += ["--ro-bind", "/dev/null", path]
    return words + [word for path in closed for word in ("--remount-ro", path)]


def main(flag: str, file: str, *command: str) -> None:
    """Run the command."""
    assert flag == "-f"
    fault, bwrap = os.environ.pop("SEATBELT_FAULT"), os.environ.pop("SEATBELT_BWRAP")
    os.environ.pop("PYTHONPATH")
    if fault == "refuses":
        sys.exit("sandbox-exec: sandbox_apply: Operation not permitted")
    try:
        text = Path(file).read_text(encoding="utf-8")
        profile = Profile(text.replace('"/private/', '"/'))  # here /tmp is no link to /private/tmp
    except (ValueError, IndexError, KeyError) as error:
        sys.exit(f"sandbox-exec: {error}")
    words = [] if fault == "open" else options(profile)
    if fault == "net":
        words.remove("--unshare-net")
    os.execvp(bwrap if words else command[0], [bwrap, *words, "--", *command] if words else command)


if __name__ == "__main__":
    main(*sys.argv[1:])
