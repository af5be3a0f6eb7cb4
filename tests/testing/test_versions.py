"""Two releases side by side: what each writes, the other reads or refuses in so many words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from everturn import wire
from everturn.core.events import CallFinished
from everturn.core.parts import Output
from everturn.errors import ConfigError, UnreadableLog
from tools.chaos.versions import NEXT, NOW
from tools.environment import child_environment

SETTLED = CallFinished(turn="t", call="c", state="completed", output=Output("ok"))


def next_release(script: str, line: bytes = b"") -> bytes:
    """Run a few lines as the release that comes next."""
    start = "import sys\nfrom everturn import wire\nfrom tools.chaos.versions import NOW, pretend\npretend(NOW + 1)\n"
    done = subprocess.run(
        [sys.executable, "-c", start + script], input=line, capture_output=True, check=True, env=child_environment()
    )
    return done.stdout


MAKE = """
from everturn.core.events import CallFinished
from everturn.core.parts import Output
settled = CallFinished(turn="t", call="c", state="completed", output=Output("ok"))
sys.stdout.buffer.write(wire.dump_event(settled))
"""


def test_the_next_release_reads_what_this_one_wrote() -> None:
    read = "sys.stdout.write(repr(wire.load_event(sys.stdin.buffer.read())))"
    assert next_release(read, wire.dump_event(SETTLED)).decode() == repr(SETTLED)


def test_what_the_next_release_writes_this_one_refuses_and_says_what_to_do() -> None:
    line = next_release(MAKE)
    assert b'"end":"completed"' in line
    with pytest.raises(UnreadableLog, match=f"version {NEXT} of the log format and this is {NOW}: upgrade"):
        wire.load_event(line)


def test_while_it_is_told_to_the_next_release_writes_what_this_one_reads() -> None:
    assert wire.load_event(next_release(f"wire.set_write_version({NOW})\n{MAKE}")) == SETTLED


def test_the_next_release_reads_what_it_wrote_itself() -> None:
    again = MAKE + "assert wire.load_event(wire.dump_event(settled)) == settled"
    next_release(again)


def test_a_version_that_never_was_cannot_be_written() -> None:
    with pytest.raises(ConfigError, match="there is no version 99"):
        wire.set_write_version(99)
