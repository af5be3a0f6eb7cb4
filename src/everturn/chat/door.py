"""What people give → what is admitted, or an error that says what to give instead. Nothing here keeps anything."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from everturn.core.canonical import canonical, clean, clean_all, parse_object
from everturn.core.events import (
    HistoryPolicy,
    LatePolicy,
    TurnOptions,
)
from everturn.core.messages import Message
from everturn.core.parts import FilePart, Part, TextPart
from everturn.errors import ConfigError

LONGEST = 10 * 365 * 86_400.0  # seconds; anything longer is as good as no limit

Input = str | Iterable[TextPart | FilePart]


def checked_options(options: TurnOptions) -> TurnOptions:
    """Options that make sense; others are refused before anything is admitted."""
    for name in ("timeout", "gate_timeout"):
        seconds: object = getattr(options, name)
        # Not so that nonsense is caught: what cannot be written as JSON would be admitted, and never read again.
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
            raise ConfigError(f"{name}={seconds!r}: seconds, up to ten years of them; 0 is no limit")
    if not isinstance(options.max_steps, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"max_steps={options.max_steps!r}: a number of steps")
    if options.max_steps < 1:
        raise ConfigError(f"max_steps={options.max_steps}: a turn needs at least one step")
    if options.history not in get_args(HistoryPolicy):
        raise ConfigError(f"history={options.history!r}; there are: {', '.join(get_args(HistoryPolicy))}")
    if options.late not in get_args(LatePolicy):
        raise ConfigError(f"late={options.late!r}; there are: {', '.join(get_args(LatePolicy))}")
    return options


def id_of(message: str | Message) -> str:
    """A message is as good as its id."""
    return message.id if isinstance(message, Message) else message


def kind_of(name: str, data: bytes) -> str:
    """The type of a file by its name or, where that says little, by its first bytes; text is text under any name."""
    from everturn.models.media.kinds import look

    guess = mimetypes.guess_type(name)[0] or look(data).media_type or "application/octet-stream"
    if guess != "application/octet-stream" and not guess.startswith(("video/", "application/x-")):
        return guess
    try:
        return "text/plain" if b"\0" not in data and data.decode() else guess
    except UnicodeDecodeError:
        return guess


def plain_params(params: Mapping[str, Any]) -> dict[str, object]:
    """Parameters as they are kept: plain JSON, or refused before anything is admitted."""
    try:
        return parse_object(canonical(clean_all(dict(params)))) or {}
    except Exception as error:
        raise ConfigError(f"params must be plain JSON: {error}") from None


def parts_of(message: Input) -> tuple[Part, ...]:
    """The parts of a message: text and files, and at least one of them."""
    given = [TextPart(message)] if isinstance(message, str) else message
    if isinstance(given, Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("a message is a text, or a list of TextPart(...) and FilePart(...)")
    parts: list[Part] = []
    for part in given:
        if not isinstance(part, TextPart | FilePart):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a message is a text, or a list of TextPart(...) and FilePart(...), not of {part!r}")
        if isinstance(part, FilePart) or part.text:
            parts.append(TextPart(clean(part.text)) if isinstance(part, TextPart) else part)
    if not parts:
        raise ConfigError("there is nothing to send: the message is empty")
    return tuple(parts)
