"""Format detection: tells the message lists of OpenAI, Anthropic and Pydantic AI apart, and reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from everturn.core.canonical_json import parse_json
from everturn.core.requests import RequestMessage
from everturn.errors import ConfigError
from everturn.message_formats.anthropic import read_anthropic, read_system, write_anthropic
from everturn.message_formats.content import Json, as_list
from everturn.message_formats.conversation import ConversationBuilder
from everturn.message_formats.openai import read_openai, write_openai
from everturn.message_formats.pydantic_ai import is_model_message, read_pydantic_ai, write_pydantic_ai

MessageFormat = Literal["openai", "anthropic", "pydantic_ai"]

_READERS: Final[Mapping[MessageFormat, Callable[[list[object], ConversationBuilder], None]]] = {
    "openai": read_openai,
    "anthropic": read_anthropic,
    "pydantic_ai": read_pydantic_ai,
}
_WRITERS: Final[Mapping[MessageFormat, Callable[[Sequence[RequestMessage], Mapping[str, bytes]], list[Json]]]] = {
    "openai": write_openai,
    "anthropic": write_anthropic,
    "pydantic_ai": write_pydantic_ai,
}
_ANTHROPIC_BLOCKS: Final = frozenset(
    ("tool_use", "tool_result", "image", "document", "thinking", "redacted_thinking", "server_tool_use")
)
_OPENAI_PARTS: Final = frozenset(
    ("image_url", "input_audio", "file", "refusal", "input_text", "output_text", "input_image", "input_file")
)
_OPENAI_ROLES: Final = ("system", "developer", "tool", "function")
_OPENAI_KEYS: Final = ("tool_calls", "function_call", "tool_call_id")


def read_messages(messages: object, format: MessageFormat | None = None) -> ConversationBuilder:
    """Read a message list: the list, its JSON, or a request body that contains it. The format is detected.

    Raises:
        ConfigError: this is not a message list, its format cannot be told, or something in it is not a message.
    """
    builder = ConversationBuilder()
    if isinstance(messages, str | bytes):
        try:
            messages = parse_json(messages.decode() if isinstance(messages, bytes) else messages)
        except ValueError as error:
            raise ConfigError(f"messages must be a list, or its JSON: {error}") from None
    if isinstance(messages, Mapping):
        body = cast("Mapping[str, Any]", messages)
        builder.add_system(read_system(body.get("system", body.get("instructions"))))
        messages = body.get("messages", body.get("input"))
    if isinstance(messages, str) or not isinstance(messages, Iterable):
        raise ConfigError("messages must be a list of messages of OpenAI, Anthropic or Pydantic AI, or its JSON")
    items = list(cast("Iterable[object]", messages))
    _READERS[_check_format(format) if format is not None else detect_format(items)](items, builder)
    return builder


def write_messages(history: Sequence[RequestMessage], format: MessageFormat, files: Mapping[str, bytes]) -> list[Json]:
    """Write a history in a format, as plain JSON data."""
    return _WRITERS[_check_format(format)](history, files)


def detect_format(messages: Sequence[object]) -> MessageFormat:
    """Detect the format. Plain texts look the same for OpenAI and Anthropic, and are read the same.

    Raises:
        ConfigError: there are signs of several formats.
    """
    found: set[MessageFormat] = {sign for message in messages for sign in _signs(message)}
    if len(found) > 1:
        names = " and ".join(sorted(found))
        raise ConfigError(f"these messages look like {names}: name the format, for example format={sorted(found)[0]!r}")
    return found.pop() if found else "openai"


def _signs(message: object) -> Iterable[MessageFormat]:
    if is_model_message(message):
        yield "pydantic_ai"
        return
    if not isinstance(message, Mapping):
        # An object of a vendor's SDK says whose it is.
        module = type(message).__module__.split(".")[0]
        if module == "openai" or module == "anthropic":
            yield module
        return
    fields = cast("Mapping[str, Any]", message)
    if fields.get("kind") in ("request", "response") and "parts" in fields:
        yield "pydantic_ai"
        return
    if fields.get("role") in _OPENAI_ROLES or any(fields.get(key) is not None for key in _OPENAI_KEYS):
        yield "openai"
    if "role" not in fields and "type" in fields:
        yield "openai"
    content = fields.get("content")
    kinds = {part.get("type") for part in as_list(content)} if not isinstance(content, str) else set[Any]()
    if kinds & _ANTHROPIC_BLOCKS:
        yield "anthropic"
    if kinds & _OPENAI_PARTS:
        yield "openai"


def _check_format(format: str) -> MessageFormat:
    if format not in get_args(MessageFormat):
        raise ConfigError(f"format={format!r}; there are: {', '.join(get_args(MessageFormat))}")
    return cast("MessageFormat", format)
