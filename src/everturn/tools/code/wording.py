"""What became of a run → what a model reads of it."""

from __future__ import annotations

import math
from typing import Any

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.core.sandboxes import Ran
from everturn.errors import BadArguments, ConfigError

WHY = {
    "time": "it was ended: its time, {seconds:g} s, was over",
    "memory": "it was ended: it wanted more memory than it may have",
    "disk": "it was ended: it wrote more files, or larger ones, than a command may, or the disk is nearly full; what it wrote "
    "is still there",
    "output": "it was ended: it wrote more than anybody could read",
    "cancelled": "it was cancelled",
}
TITLE = 80  # characters of code that are shown


def schema(text: str, description: str, seconds: float, most: float) -> JsonObject:
    """Parameters: a text to be run, and how long it may take."""
    return {
        "type": "object",
        "properties": {
            text: {"type": "string", "description": description},
            "timeout": {
                "type": "number",
                "description": f"Seconds after which it is ended; {seconds:g} if not given, at most {most:g}.",
                "exclusiveMinimum": 0,
                "maximum": most,
            },
        },
        "required": [text],
        "additionalProperties": False,
    }


def checked(spec: ToolSpec, text: str, arguments: JsonObject, seconds: float, most: float) -> JsonObject:
    """The arguments with the time filled in.

    Raises:
        BadArguments: there is nothing to run, or too much time asked for.
    """
    code, timeout = arguments.get(text), arguments.get("timeout")
    if unknown := arguments.keys() - {text, "timeout"}:
        raise BadArguments(f"{spec.name} has no parameter {sorted(unknown)[0]!r}; there are: {text}, timeout")
    if not isinstance(code, str) or not code.strip() or "\0" in code:
        raise BadArguments(f"{spec.name} needs `{text}`: a text, not empty and without NUL characters")
    if timeout is None:
        timeout = seconds
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= most:
        raise BadArguments(f"{spec.name}: `timeout` is a number of seconds, more than 0 and at most {most:g}")
    return {text: code, "timeout": timeout}


def check_times(tool: str, seconds: float, most: float) -> None:
    """Refuse times that are none."""
    if not (0 < seconds <= most and math.isfinite(most)):
        raise ConfigError(f"{tool}: seconds={seconds!r}, most={most!r}: more than 0, and seconds at most `most`")


def output(ran: Ran, code: str, seconds: float, where: dict[str, Any], value: str = "") -> Output:
    """What a model reads: what was written, what it came to, and how it ended if not well."""
    pieces = [ran.stdout.rstrip("\n") + (" […]" if ran.is_stdout_cut else "")]
    if ran.stderr.strip():
        pieces.append("[stderr]\n" + ran.stderr.rstrip("\n") + (" […]" if ran.is_stderr_cut else ""))
    if value:
        pieces.append(f"[value] {value}")
    if ran.killed:
        pieces.append(f"[{WHY[ran.killed].format(seconds=seconds)}]")
    elif ran.error:
        pieces.append(f"[error] {ran.error}")
    elif ran.exit:
        pieces.append(f"[exit {ran.exit}]")
    text = "\n".join(piece for piece in pieces if piece.strip()) or "[it wrote nothing, and ended well]"
    line = " ".join(code.split())
    title = line if len(line) <= TITLE else line[: TITLE - 1] + "…"
    return Output(text, title=title, metadata={**where, "exit": ran.exit, "killed": ran.killed})
