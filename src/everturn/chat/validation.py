"""Input validation of the library API: messages, options and client tools. The errors say what is valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, cast, get_args

import msgspec
from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, parse_object, replace_surrogates, replace_surrogates_in
from everturn.core.context.compaction import check_context
from everturn.core.messages import Message
from everturn.core.options import (
    ClientTool,
    LatePolicy,
    PermissionMode,
    Review,
    StepLimitPolicy,
    ToolHistory,
    TurnOptions,
)
from everturn.core.parts import ContextPart, FilePart, Part, TextPart
from everturn.core.rate_limits import Priority
from everturn.core.rules.policy import Rule
from everturn.core.validate import validate_budget, validate_rules
from everturn.errors import ConfigError
from everturn.tools.client import ClientRunTool
from everturn.tools.registry import RESERVED, ToolRegistry
from everturn.tools.skills import normalize_name

_TURN_LAYERS = ("agent", "session")
MAX_SECONDS = 10 * 365 * 86_400.0  # seconds; anything longer is as good as no limit

InputPart = TextPart | FilePart | ContextPart
MessageInput = str | Iterable[InputPart]


def timestamp(at: datetime | float) -> float:
    """A time as a Unix timestamp.

    Raises:
        ConfigError: the time has no time zone, or is not a time.
    """
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ConfigError(f"at={at!r} has no time zone; for example datetime.now(UTC) + timedelta(hours=3)")
        return at.timestamp()
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < 1e11:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"at={at!r}: must be a datetime with a time zone, or a Unix timestamp in seconds")
    return float(at)


def validate_options(options: TurnOptions) -> TurnOptions:
    """Validate options; invalid ones are refused before anything is admitted."""
    if not isinstance(options, TurnOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"options must be a TurnOptions(...), not a {type(options).__name__}")
    for name in ("timeout", "gate_timeout"):
        seconds: object = getattr(options, name)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_SECONDS:
            raise ConfigError(f"{name}={seconds!r}: must be a number of seconds, at most ten years; 0: no limit")
    if isinstance(options.max_steps, bool) or not isinstance(options.max_steps, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"max_steps={options.max_steps!r}: must be a number of steps")
    if options.max_steps < 1:
        raise ConfigError(f"max_steps={options.max_steps}: a turn needs at least one step")
    for name, policy in (
        ("tool_history", ToolHistory),
        ("late", LatePolicy),
        ("review", Review),
        ("priority", Priority),
        ("mode", PermissionMode),
        ("at_step_limit", StepLimitPolicy),
    ):
        if getattr(options, name) not in get_args(policy):
            raise ConfigError(f"{name}={getattr(options, name)!r}; there are: {', '.join(get_args(policy))}")
    check_context(options.context)
    if options.lineage is not None:
        raise ConfigError(
            "`lineage` is set by the turn that starts a sub-agent run; a tool starts one with ctx.run_subagent(…)"
        )
    _check_lists(options)
    validate_budget(options.budget)
    rules = validate_rules(options.rules)
    return _check_decodable(replace(options, rules=tuple(_with_session_layer(rule) for rule in rules)))


def _check_decodable(options: TurnOptions) -> TurnOptions:
    """Check that options can be decoded again: otherwise an admitted command would block its session forever."""
    try:
        return msgspec.json.decode(msgspec.json.encode(options), type=TurnOptions)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        raise ConfigError(f"options: {where.strip('`$.') or 'one of them'}: {problem}") from None
    except Exception as error:
        raise ConfigError(f"options must be plain data: {error}") from None


def _with_session_layer(rule: Rule) -> Rule:
    """Set the layer of a turn's rule to `session`, unless it is `agent`."""
    return rule if rule.layer in _TURN_LAYERS else replace(rule, layer="session")


def _check_lists(options: TurnOptions) -> None:
    for name in ("tools", "manual"):
        patterns: Any = getattr(options, name)
        if patterns is not None and not (isinstance(patterns, tuple) and _are_texts(cast("tuple[Any, ...]", patterns))):
            raise ConfigError(f'{name}=("look", "mail_*"): a tuple of names or patterns of tools')


def check_manual(patterns: Iterable[str], tools: Iterable[str]) -> None:
    """Refuse an unknown tool name: a call that a person wanted to run by hand would run without them.

    A pattern may be for tools added later.
    """
    names = list(tools)
    for pattern in patterns:
        if pattern not in names and not any(char in "*?[" for char in pattern):
            raise ConfigError(f"manual: there is no tool {pattern!r}; there are: {', '.join(names) or 'none'}")


def check_clients(clients: Iterable[ClientTool], tools: Iterable[str]) -> None:
    """Refuse a client tool whose name resembles that of another tool: the client would get its calls."""
    known = {normalize_name(name): name for name in tools}
    for declared in clients:
        if not isinstance(declared, ClientTool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                "clients are ClientTool(name, description, schema), such as those of everturn.tools.browser"
            )
        ClientRunTool(declared)
        plain = normalize_name(declared.name)
        if plain in known or plain in map(normalize_name, RESERVED):
            raise ConfigError(f"the name {declared.name!r} is already used; a tool of a client needs a different one")
        known[plain] = declared.name


def check_tools(selection: Any, own: ToolRegistry, others: Iterable[ToolRegistry]) -> tuple[str, ...] | None:
    """Validate a selection of tools: each entry is one of the agent's own, or of others that may be asked.

    Raises:
        ConfigError: an entry matches nothing; the message lists the agent's own tools.
    """
    if selection is None or isinstance(selection, str):
        return own.check_selection(selection)
    selected, registries = tuple(selection), tuple(others)
    for entry in selected:
        if not any(_has_selection(registry, entry) for registry in registries):
            own.check_selection((entry,))
    return selected


def _has_selection(registry: ToolRegistry, entry: Any) -> bool:
    try:
        registry.check_selection((entry,))
    except ConfigError:
        return False
    return True


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def id_of(message: str | Message) -> str:
    """The id of a message."""
    return message.id if isinstance(message, Message) else message


def validate_params(params: Mapping[str, Any]) -> dict[str, object]:
    """Validate parameters as plain JSON, before anything is admitted."""
    try:
        return parse_object(encode_canonical(replace_surrogates_in(dict(params)))) or {}
    except Exception as error:
        raise ConfigError(f"params must be plain JSON: {error}") from None


_NO_MESSAGE: Final = "a message is a text, or a list of TextPart(...), FilePart(...) and ContextPart(...)"


def _checked_context(part: ContextPart) -> ContextPart:
    if not part.kind or not part.text:
        raise ConfigError("a ContextPart needs a kind, such as 'selection', 'page' or 'note', and a text")
    kind, text = replace_surrogates(part.kind), replace_surrogates(part.text)
    return ContextPart(kind, text, replace_surrogates(part.title), replace_surrogates(part.source), part.untrusted)


def message_parts(message: MessageInput) -> tuple[Part, ...]:
    """The parts of a message: text and files, at least one of them, and the context that the client attached."""
    items = [TextPart(message)] if isinstance(message, str) else message
    if isinstance(items, Mapping) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(_NO_MESSAGE)
    parts: list[Part] = []
    for part in items:
        match part:
            case TextPart(text=text):
                if text:
                    parts.append(TextPart(replace_surrogates(text)))
            case ContextPart():
                parts.append(_checked_context(part))
            case FilePart():
                parts.append(part)
            case _:
                raise ConfigError(f"{_NO_MESSAGE}, not of {part!r}")
    if not parts:
        raise ConfigError("there is nothing to send: the message is empty")
    if all(isinstance(part, ContextPart) for part in parts):
        raise ConfigError("a message with context needs a text or a file as well: what should be done with it?")
    return tuple(parts)
