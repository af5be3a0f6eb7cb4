"""Messages that a hook appends: what `append_message` accepts, as roles and parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast, get_args

import msgspec

from everturn.core.canonical_json import replace_surrogates_in
from everturn.core.messages import Message, Role
from everturn.core.parts import Part, TextPart
from everturn.errors import ConfigError

Appendable = str | Message | Iterable[Part] | Iterable[str] | Iterable[Message]
"""A text, a message or the parts of one; or a list of texts or messages, which are several."""

_PARTS = cast("tuple[type[Part], ...]", get_args(Part))
HINT = "append_message takes a text, a message, a list of the parts of one message, or a list of texts or of messages"


def split_messages(content: Appendable, role: Role) -> list[tuple[Role, tuple[Part, ...]]]:
    """The messages that were meant, each as its role and its parts. A `Message` brings its own role.

    Raises:
        ConfigError: it is none of what can be appended, or a mixture.
    """
    if isinstance(content, str):
        return [(role, _checked((TextPart(content),)))]
    if isinstance(content, Message):
        return [(content.role, _checked(content.parts))]
    if not isinstance(content, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{HINT}; this is a {type(content).__name__}")
    items: list[object] = list(content)
    if all(isinstance(item, _PARTS) for item in items):
        return [(role, _checked(tuple(cast("list[Part]", items))))]
    if all(isinstance(item, str) for item in items):
        return [(role, _checked((TextPart(text),))) for text in cast("list[str]", items)]
    if all(isinstance(item, Message) for item in items):
        return [(message.role, _checked(message.parts)) for message in cast("list[Message]", items)]
    kinds = ", ".join(dict.fromkeys(type(item).__name__ for item in items))
    raise ConfigError(f"{HINT}; this list has {kinds}: append them one by one")


def _checked(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return msgspec.convert(replace_surrogates_in(msgspec.to_builtins(parts)), tuple[Part, ...])
