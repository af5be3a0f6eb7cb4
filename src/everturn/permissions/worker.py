"""Worker process that reads command lines: lists of texts on stdin → what each of them would do, on stdout.

`bounded` starts it, and kills it when a line takes too long. On Unix it ends by itself before that: a timer of CPU time
whose signal nobody handles stops it even inside the parser, and a loaded machine makes nobody's command too slow.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from everturn.core.patterns import Subject
from everturn.errors import ConfigError
from everturn.permissions.shell import Unreadable, read_command

CPU_SECONDS: Final = 0.5  # for all the lines of one call
MEMORY: Final = 2**29


class ReadLine(Struct, frozen=True, omit_defaults=True):
    """What a command line would do; or why that cannot be said."""

    subjects: tuple[Subject, ...] = ()
    unreadable: str = ""
    misconfigured: str = ""


def main() -> None:
    """Answer each list of texts with a line of JSON, until there are no more."""
    _limit_memory()
    answer, asked = msgspec.json.Encoder(), msgspec.json.Decoder(list[str])
    for line in sys.stdin.buffer:
        texts = asked.decode(line)
        _set_timer(CPU_SECONDS)
        found = [_read(text) for text in texts]
        _set_timer(0)
        sys.stdout.buffer.write(answer.encode(found) + b"\n")
        sys.stdout.buffer.flush()


def _read(text: str) -> ReadLine:
    try:
        return ReadLine(tuple(read_command(text)))
    except Unreadable as error:
        return ReadLine(unreadable=str(error))
    except ConfigError as error:
        return ReadLine(misconfigured=str(error))
    except RecursionError:
        return ReadLine(unreadable="this command line is nested too deep to judge; split it")


def _set_timer(seconds: float) -> None:
    if sys.platform != "win32":  # there, whoever started this kills it
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
