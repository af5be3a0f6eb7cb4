"""What people give → what is admitted, or an error that says what to give instead. Nothing here keeps anything."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

import msgspec
from msgspec.structs import replace

from everturn.core.canonical import canonical, clean, clean_all, parse_object
from everturn.core.given import checked_budget, checked_rules
from everturn.core.messages import Message
from everturn.core.options import ClientTool, HistoryPolicy, LatePolicy, ResultPolicy, TurnOptions
from everturn.core.parts import FilePart, Part, TextPart
from everturn.core.policy import Rule
from everturn.errors import ConfigError
from everturn.tools.client import ByClient
from everturn.tools.registry import RESERVED
from everturn.tools.skills import spelling

_SAYABLE = ("agent", "session")
LONGEST = 10 * 365 * 86_400.0  # seconds; anything longer is as good as no limit

Input = str | Iterable[TextPart | FilePart]


def checked_options(options: TurnOptions) -> TurnOptions:
    """Options that make sense; others are refused before anything is admitted."""
    if not isinstance(options, TurnOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"options are a TurnOptions(...), not a {type(options).__name__}")
    for name in ("timeout", "gate_timeout"):
        seconds: object = getattr(options, name)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
            raise ConfigError(f"{name}={seconds!r}: seconds, up to ten years of them; 0 is no limit")
    if isinstance(options.max_steps, bool) or not isinstance(options.max_steps, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"max_steps={options.max_steps!r}: a number of steps")
    if options.max_steps < 1:
        raise ConfigError(f"max_steps={options.max_steps}: a turn needs at least one step")
    for name, policy in (("history", HistoryPolicy), ("late", LatePolicy), ("result", ResultPolicy)):
        if getattr(options, name) not in get_args(policy):
            raise ConfigError(f"{name}={getattr(options, name)!r}; there are: {', '.join(get_args(policy))}")
    if options.above is not None:
        raise ConfigError(
            "`above` is said of a sub-turn by the turn that asks for it; a tool does, with ctx.sub_turn(…)"
        )
    _check_lists(options)
    checked_budget(options.budget)
    rules = checked_rules(options.rules)
    return _readable(replace(options, rules=tuple(_said_here(rule) for rule in rules)))


def _readable(options: TurnOptions) -> TurnOptions:
    """Options as they are read again: what cannot be would be admitted, and be in the way of its session for ever."""
    try:
        return msgspec.json.decode(msgspec.json.encode(options), type=TurnOptions)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        raise ConfigError(f"options: {where.strip('`$.') or 'one of them'}: {what}") from None
    except Exception as error:
        raise ConfigError(f"options have to be plain data: {error}") from None


def _said_here(rule: Rule) -> Rule:
    """A rule that was given for a turn is one of the session, unless it says that it is the agent's."""
    return rule if rule.layer in _SAYABLE else replace(rule, layer="session")


def _check_lists(options: TurnOptions) -> None:
    for name in ("tools", "by_hand"):
        patterns: Any = getattr(options, name)
        if patterns is not None and not (isinstance(patterns, tuple) and _are_words(cast("tuple[Any, ...]", patterns))):
            raise ConfigError(f'{name}=("look", "mail_*"): a tuple of names or patterns of tools')


def check_by_hand(patterns: Iterable[str], tools: Iterable[str]) -> None:
    """Refuse a name that no tool has: what a person wanted to do themselves would run without them.

    A pattern may be for tools that are still to come.
    """
    names = list(tools)
    for pattern in patterns:
        if pattern not in names and not any(char in "*?[" for char in pattern):
            raise ConfigError(f"by_hand: there is no tool {pattern!r}; there are: {', '.join(names) or 'none'}")


def check_clients(clients: Iterable[ClientTool], tools: Iterable[str]) -> None:
    """Refuse a tool of a face that could be taken for one that is here: whoever declares it would get its calls."""
    known = {spelling(name): name for name in tools}
    for declared in clients:
        if not isinstance(declared, ClientTool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                "clients are ClientTool(name, description, schema), such as those of everturn.tools.browser"
            )
        ByClient(declared)
        plain = spelling(declared.name)
        if plain in known or plain in map(spelling, RESERVED):
            raise ConfigError(f"the name {declared.name!r} is taken; a tool of a client needs one of its own")
        known[plain] = declared.name


def _are_words(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


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


# What a chat on a runtime cannot be given, and where it is given instead.
WITH_RUNTIME: Final = {
    "tools": "Runtime(tools=…); a turn has some of them with send(tools=[names])",
    "plugins": "Runtime(plugins=…)",
    "system": "options=TurnOptions(system=…) for this chat, or Runtime(settings=Settings(prompt=Prompt(agent=…))) for all",
    "store": "Runtime(store=…)",
    "settings": "Runtime(settings=…)",
    "rules": "Runtime(rules=…), or options=TurnOptions(rules=(…,)) for this chat",
}


def refuse_with_runtime(given: Mapping[str, object]) -> None:
    """Refuse what a runtime has already.

    Raises:
        ConfigError: and it says where each of these is given instead.
    """
    if wrong := [f"{name}: {instead}" for name, instead in WITH_RUNTIME.items() if given[name]]:
        raise ConfigError(f"Chat(runtime=…) takes these from elsewhere: {'; '.join(wrong)}")


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
