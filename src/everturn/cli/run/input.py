"""Input of `everturn run`: the prompt, from the arguments and stdin."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from everturn.errors import ConfigError

LONGEST: Final = 1_000_000  # characters of a message; the server has the same limit
SHELL_TOOK_PROMPT: Final = (
    "--shell took {!r} as its folder, so there is no prompt; write the prompt first, or name the folder, as in "
    '`everturn run "…" --shell` or `everturn run --shell . "…"`'
)
NOTHING: Final = 'there is no message. For example: `everturn run "What time is it?"`, or something on stdin'


def read_prompt(options: argparse.Namespace) -> str:
    """Return the prompt, a blank line and the text from stdin, or the one of them that there is.

    Raises:
        ConfigError: there is no text, too much, or it is not UTF-8.
    """
    argument = "" if options.prompt in (None, "-") else options.prompt
    wants_input = options.prompt in (None, "-")
    if options.prompt is None and options.shell and (options.no_stdin or sys.stdin is None or sys.stdin.isatty()):
        raise ConfigError(SHELL_TOOK_PROMPT.format(options.shell))
    if wants_input and options.no_stdin and not options.attach:
        raise ConfigError(NOTHING)
    stdin_text = "" if options.no_stdin else _read(wants_input and not options.attach)
    text = "\n\n".join(filter(str.strip, (argument, stdin_text)))
    if not text and not options.attach:
        raise ConfigError(NOTHING)
    if len(text) > LONGEST:
        raise ConfigError(f"the message is too long: at most {LONGEST:,} characters; send a file with --attach")
    return text


def _read(is_needed: bool) -> str:
    if sys.stdin is None or sys.stdin.isatty():  # `<&-`
        if is_needed:
            raise ConfigError(NOTHING)
        return ""
    data = sys.stdin.buffer.read(4 * LONGEST + 1)
    try:
        return data.decode("utf-8-sig").removesuffix("\n") if len(data) <= 4 * LONGEST else "x" * (LONGEST + 1)
    except UnicodeDecodeError:
        raise ConfigError("stdin is not UTF-8 text; --attach FILE sends any file") from None
