"""Arguments and output of the code execution tools: the common schema, its validation, and the report of a run."""

from __future__ import annotations

import math
from typing import Any

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.core.sandbox import SandboxResult
from everturn.errors import BadArguments, ConfigError

KILL_REASONS = {
    "time": "it was ended: its time, {seconds:g} s, was over",
    "memory": "it was ended: it wanted more memory than it may have",
    "disk": "it was ended: it wrote more files, or larger ones, than a command may, or the disk is nearly full; what it wrote "
    "is still there",
    "output": "it was ended: it wrote more than anybody could read",
    "cancelled": "it was cancelled",
}
TITLE = 80  # characters of code in the title


def run_schema(text: str, description: str, seconds: float, most: float) -> JsonObject:
    """The parameters: a text to run, and its timeout."""
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


def validate_run_arguments(spec: ToolSpec, text: str, arguments: JsonObject, seconds: float, most: float) -> JsonObject:
    """Validate the arguments, and fill in the timeout.

    Raises:
        BadArguments: there is nothing to run, or the timeout is too long.
    """
    code, timeout = arguments.get(text), arguments.get("timeout")
    if unknown := arguments.keys() - {text, "timeout"}:
        raise BadArguments(f"{spec.name} has no parameter {sorted(unknown)[0]!r}; there are: {text}, timeout")
    if not isinstance(code, str) or not code.strip() or "\0" in code:
        raise BadArguments(f"{spec.name} needs `{text}`: a text, not empty and without NUL characters")
    if timeout is None:
        timeout = seconds
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= most:
        raise BadArguments(f"{spec.name}: `timeout` must be a number of seconds, more than 0 and at most {most:g}")
    return {text: code, "timeout": timeout}


def check_timeouts(tool: str, seconds: float, most: float) -> None:
    """Refuse invalid timeouts."""
    if not (0 < seconds <= most and math.isfinite(most)):
        raise ConfigError(f"{tool}: seconds={seconds!r}, most={most!r}: more than 0, and seconds at most `most`")


def render_run_result(
    result: SandboxResult, code: str, seconds: float, where: dict[str, Any], value: str = ""
) -> Output:
    """The report for the model: output, value, and how the run ended if it failed."""
    pieces = [result.stdout.rstrip("\n") + (" […]" if result.is_stdout_cut else "")]
    if result.stderr.strip():
        pieces.append("[stderr]\n" + result.stderr.rstrip("\n") + (" […]" if result.is_stderr_cut else ""))
    if value:
        pieces.append(f"[value] {value}")
    if result.killed:
        pieces.append(f"[{KILL_REASONS[result.killed].format(seconds=seconds)}]")
    elif result.error:
        pieces.append(f"[error] {result.error}")
    elif result.exit:
        pieces.append(f"[exit {result.exit}]")
    text = "\n".join(piece for piece in pieces if piece.strip()) or "[it wrote nothing, and ended well]"
    line = " ".join(code.split())
    title = line if len(line) <= TITLE else line[: TITLE - 1] + "…"
    return Output(text, title=title, metadata={**where, "exit": result.exit, "killed": result.killed})
