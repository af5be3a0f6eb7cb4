"""Worker process for command lines: reads lists of texts from stdin, and writes what each of them would do to stdout.

`bounded_reader` starts it, and kills it when a line takes too long. On Unix it ends by itself before that: a CPU timer
whose signal is not handled stops it even inside the parser, and a loaded machine makes no command line too slow.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from everturn.core.rules.patterns import Subject
from everturn.errors import ConfigError
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

CPU_SECONDS: Final = 0.5  # for all the lines of one call
MEMORY: Final = 2**29


class CommandReading(Struct, frozen=True, omit_defaults=True):
    """What a command line would do; or why it cannot be read."""

    subjects: tuple[Subject, ...] = ()
    unreadable: str = ""
    misconfigured: str = ""


def main() -> None:
    """Answer each list of texts with a line of JSON, until there are no more."""
    _limit_memory()
    answer, request_decoder = msgspec.json.Encoder(), msgspec.json.Decoder(list[str])
    for line in sys.stdin.buffer:
        texts = request_decoder.decode(line)
        _set_timer(CPU_SECONDS)
        readings = [_read(text) for text in texts]
        _set_timer(0)
        sys.stdout.buffer.write(answer.encode(readings) + b"\n")
        sys.stdout.buffer.flush()


def _read(text: str) -> CommandReading:
    try:
        return CommandReading(tuple(read_command(text)))
    except UnreadableCommand as error:
        return CommandReading(unreadable=str(error))
    except ConfigError as error:
        return CommandReading(misconfigured=str(error))
    except RecursionError:
        return CommandReading(unreadable="this command line is nested too deep to judge; split it")


def _set_timer(seconds: float) -> None:
    if sys.platform != "win32":  # there, the parent process kills it
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
