"""Whatever a tool returned → what a model reads: text or JSON, cut to its head and tail where it is too long."""

from __future__ import annotations

import inspect
import re
import unicodedata
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical import clean, clean_all
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.errors import BadOutput, ToolError
from everturn.turn.privacy import STAND_IN, hide, mask
from everturn.turn.run import Run

LEFT_OUT: Final = (
    "[… {count} characters left out. The whole is $ref{{{call}}}: write that into the arguments of another call to pass "
    "it on unread, or read a part of it with read_result …]"
)
NEAR = 200  # characters within which a line that ends is a better place to cut
LONGEST_STAND_IN = 400  # characters
LONGEST_CLUSTER = 32  # code points that are shown as one; more of them is no script but a prank


class Limits(Struct, frozen=True):
    """How much at once, and how much of a result a model is shown."""

    parallel: int = 8
    output: int = 50_000  # characters


def to_output(value: object) -> Output:
    """Write down whatever a tool returned.

    Raises:
        BadOutput: it cannot be written as JSON.
    """
    match value:
        case Output():
            return tidy(value)
        case str():
            return Output(clean(value))
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
    """How a pydantic model is written, wherever in a result it stands; nothing else is guessed at."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not inspect.isclass(value):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not data")


def tidy(output: Output) -> Output:
    """An output that every store can keep, and read again.

    Raises:
        BadOutput: something in it cannot be written as JSON, or is not what it should be.
    """
    if output == Output(output.text) and isinstance(output.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Output(clean(output.text))
    try:
        return msgspec.convert(clean_all(msgspec.to_builtins(output)), Output)
    except Exception as error:
        raise BadOutput(f"the tool's output cannot be written down ({error})") from None


async def shape(
    run: Run, spec: ToolSpec, call: str, output: Output, limits: Limits, *, is_told: bool = False
) -> Output:
    """Take out what is private, then cut what is too long to its head and tail; the whole of that is kept as a blob.

    `is_told`: these are words a tool meant for the model, such as those of a `ToolError`, and no result.
    """
    if spec.private and not is_told:
        output = await hide(run, spec, call, output)
    output = await mask(run, output)
    limit = spec.limit or limits.output
    if len(output.text) <= limit:
        return output
    blob = await run.setup.store.put_blob(output.text.encode())
    return replace(output, text=excerpt(output.text, limit, call), blob=blob)


def excerpt(text: str, limit: int, call: str) -> str:
    """The head and the tail of a text, and between them what is left out and how to come by it."""
    head, tail = _head(text, limit - limit // 3), _tail(text, len(text) - limit // 3)
    note = LEFT_OUT.format(count=tail - head, call=call)
    first = text[:head] if text[:head].endswith("\n") else text[:head] + "\n"
    return f"{first}{note}\n{text[tail:]}"


def _head(text: str, end: int) -> int:
    """Where a head of about this size ends: behind a line if one ends near, and never inside of something."""
    line = text.rfind("\n", max(end - NEAR, end // 2), end)
    if line >= 0:
        return line + 1
    if (around := _stand_in_around(text, end)) is not None:
        return around.start()
    at = end
    while at > max(end - LONGEST_CLUSTER, 0) and _is_joined(text, at):
        at -= 1
    return at


def _tail(text: str, start: int) -> int:
    """Where a tail of about this size begins, likewise."""
    line = text.find("\n", start, min(start + NEAR, (start + len(text)) // 2))
    if line >= 0:
        return line + 1
    if (around := _stand_in_around(text, start)) is not None:
        return around.end()
    at = start
    while at < min(start + LONGEST_CLUSTER, len(text)) and _is_joined(text, at):
        at += 1
    return at


def _stand_in_around(text: str, at: int) -> re.Match[str] | None:
    """The stand-in that a cut here would break: half of one stands for nothing."""
    near = STAND_IN.finditer(text, max(at - LONGEST_STAND_IN, 0), at + LONGEST_STAND_IN)
    return next((match for match in near if match.start() < at < match.end()), None)


def _is_joined(text: str, at: int) -> bool:
    """Whether what stands here is shown as one with what stands before it."""
    if at <= 0 or at >= len(text):
        return False
    before, here = text[at - 1], text[at]
    if here.isascii():
        return before == "\r" and here == "\n"
    is_mark = unicodedata.category(here) in ("Mn", "Mc", "Me") or "\U0001f3fb" <= here <= "\U0001f3ff"  # and skin tones
    are_flag = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= here <= "\U0001f1ff"
    return is_mark or here == "\u200d" or before == "\u200d" or are_flag


def failure(error: BaseException) -> Output:
    """What a model is told of a failure: a `ToolError` in its own words, anything else by its type and text."""
    name = type(error).__name__
    is_told = isinstance(error, ToolError)
    try:
        text = str(error) if is_told else f"{name}: {error}"
    except BaseException:  # even to say what it is can fail
        text = name
    return Output(clean(text), code=error.code if is_told else "failed")
