"""Tool output: converts a return value into the text that the model reads, truncated to its head and tail if too long."""

from __future__ import annotations

import inspect
import re
import unicodedata
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.calls.private_values import (
    PLACEHOLDER_PATTERN,
    hide_private_fields,
    mask_private_values,
    may_have_private_values,
)
from everturn.core.canonical_json import replace_surrogates, replace_surrogates_in
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.errors import BadOutput, ToolError
from everturn.running.active_turn import ActiveTurn

TRUNCATION_NOTE: Final = (
    "[… {count} characters left out. The whole is $ref{{{call}}}: write that into the arguments of another call to pass "
    "it on unread, or read a part of it with read_result …]"
)
LINE_BREAK_DISTANCE = 200  # characters within which a line end is preferred for the cut
MAX_PLACEHOLDER_LENGTH = 400  # characters
MAX_CLUSTER_LENGTH = 32  # code points that are shown as one character; no real script needs more


class OutputLimits(Struct, frozen=True):
    """Limits of tool calls: how many run in parallel, and how much of a result the model reads."""

    parallel: int = 8
    output: int = 50_000  # characters


def to_output(value: object) -> Output:
    """Convert a tool's return value into an output.

    Raises:
        BadOutput: the value cannot be encoded as JSON.
    """
    match value:
        case Output():
            return normalize_output(value)
        case str():
            return Output(replace_surrogates(value))
        case None:
            return Output("done")
        case _:
            pass
    try:
        return Output(msgspec.json.encode(value, enc_hook=_plain_data).decode())
    except Exception as error:
        kind = type(value).__name__
        raise BadOutput(
            f"the tool returned a {kind} that cannot be written as JSON ({error}); return text or data"
        ) from None


def _plain_data(value: Any) -> Any:
    """Encode a pydantic model anywhere in a result; other types raise."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not inspect.isclass(value):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not plain data")


def normalize_output(output: Output) -> Output:
    """Normalise an output so that every store can encode and decode it.

    Raises:
        BadOutput: a value in it cannot be encoded as JSON, or has the wrong type.
    """
    if output == Output(output.text) and isinstance(output.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Output(replace_surrogates(output.text))
    try:
        return msgspec.convert(replace_surrogates_in(msgspec.to_builtins(output)), Output)
    except Exception as error:
        raise BadOutput(f"the tool's output cannot be stored ({error})") from None


async def prepare_output(
    run: ActiveTurn, spec: ToolSpec, call: str, output: Output, limits: OutputLimits, *, is_told: bool = False
) -> Output:
    """Hide private values, then truncate long text to its head and tail; the whole text is stored as a blob.

    `is_told`: this is a message of the tool for the model, such as a `ToolError`, and not a result.
    """
    if spec.private and not is_told:
        output = await hide_private_fields(run, spec, call, output)
    if may_have_private_values(run):
        output = await mask_private_values(run, output)
    limit = spec.limit or limits.output
    if len(output.text) <= limit:
        return output
    blob = await run.setup.store.put_blob(output.text.encode())
    return replace(output, text=excerpt(output.text, limit, call), blob=blob)


def excerpt(text: str, limit: int, call: str) -> str:
    """The head and the tail of a text, with a note between them of what is left out and how to read it."""
    head, tail = _head(text, limit - limit // 3), _tail(text, len(text) - limit // 3)
    note = TRUNCATION_NOTE.format(count=tail - head, call=call)
    first = text[:head] if text[:head].endswith("\n") else text[:head] + "\n"
    return f"{first}{note}\n{text[tail:]}"


def _head(text: str, end: int) -> int:
    """Where a head of about this size ends: after a line if one ends near, never inside a placeholder or a character."""
    line = text.rfind("\n", max(end - LINE_BREAK_DISTANCE, end // 2), end)
    if line >= 0:
        return line + 1
    if (around := _placeholder_around(text, end)) is not None:
        return around.start()
    at = end
    while at > max(end - MAX_CLUSTER_LENGTH, 0) and _is_joined(text, at):
        at -= 1
    return at


def _tail(text: str, start: int) -> int:
    """Where a tail of about this size begins, by the same rules."""
    line = text.find("\n", start, min(start + LINE_BREAK_DISTANCE, (start + len(text)) // 2))
    if line >= 0:
        return line + 1
    if (around := _placeholder_around(text, start)) is not None:
        return around.end()
    at = start
    while at < min(start + MAX_CLUSTER_LENGTH, len(text)) and _is_joined(text, at):
        at += 1
    return at


def _placeholder_around(text: str, at: int) -> re.Match[str] | None:
    """The placeholder token that a cut here would break."""
    near = PLACEHOLDER_PATTERN.finditer(text, max(at - MAX_PLACEHOLDER_LENGTH, 0), at + MAX_PLACEHOLDER_LENGTH)
    return next((match for match in near if match.start() < at < match.end()), None)


def _is_joined(text: str, at: int) -> bool:
    """Whether the code point here is displayed together with the one before it."""
    if at <= 0 or at >= len(text):
        return False
    before, here = text[at - 1], text[at]
    if here.isascii():
        return before == "\r" and here == "\n"
    is_mark = unicodedata.category(here) in ("Mn", "Mc", "Me") or "\U0001f3fb" <= here <= "\U0001f3ff"  # and skin tones
    are_flag = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= here <= "\U0001f1ff"
    return is_mark or here == "\u200d" or before == "\u200d" or are_flag


def failure_output(error: BaseException) -> Output:
    """The output for a failure: the text of a `ToolError`, or the type and text of any other error."""
    name = type(error).__name__
    is_told = isinstance(error, ToolError)
    try:
        text = str(error) if is_told else f"{name}: {error}"
    except BaseException:  # even `str(error)` can raise
        text = name
    return Output(replace_surrogates(text), code=error.code if is_told else "failed")
