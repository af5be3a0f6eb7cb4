"""Saved prompts: texts that people use by name, with arguments, and how they are written and stored. Pure.

A saved prompt is expanded before it is sent: the log has the text that the person sent, and no reference to the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from everturn.errors import ConfigError

PROMPT_NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,63}$"
MAX_PROMPT_CHARS: Final = 20_000
MAX_PROMPT_ARGUMENTS: Final = 20

_NAME: Final = re.compile(PROMPT_NAME_PATTERN)
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}\s]+)\s*\}\}")


class PromptArgument(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """An argument of a saved prompt. Without a default, the person has to give a value."""

    name: str
    description: str = ""
    default: str | None = None


class SavedPrompt(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A text with a name. `{{argument}}` in it stands for the value of an argument."""

    name: str
    text: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


def check_prompt(prompt: SavedPrompt) -> SavedPrompt:
    """Check a prompt. Its arguments get the order of its text, with those that only the text names.

    Raises:
        ConfigError: it is invalid; the text says what to change.
    """
    if not _NAME.match(prompt.name):
        raise ConfigError(
            f"name: {prompt.name[:80]!r}: must have lowercase letters, digits, `-` and `_`, at most 64, as in "
            "`review-branch`"
        )
    if not prompt.text.strip():
        raise ConfigError("text: a prompt needs a text; `{{topic}}` in it stands for the argument `topic`")
    if len(prompt.text) > MAX_PROMPT_CHARS:
        raise ConfigError(f"text: at most {MAX_PROMPT_CHARS:,} characters, not {len(prompt.text):,}")
    named = list(dict.fromkeys(_PLACEHOLDER.findall(prompt.text)))
    declared = [argument.name for argument in prompt.arguments]
    for name in (*declared, *named):
        if not _NAME.match(name):
            raise ConfigError(
                f"arguments: {name[:80]!r}: must have lowercase letters, digits, `-` and `_`, as in `{{{{base_branch}}}}`"
            )
    if len(set(declared)) < len(declared):
        raise ConfigError("arguments: two of them have the same name; names must be unique")
    if unused := [name for name in declared if name not in named]:
        raise ConfigError(
            f"arguments: the text does not use {unused[0]!r}; write {{{{{unused[0]}}}}} in it, or leave it out"
        )
    if len(named) > MAX_PROMPT_ARGUMENTS:
        raise ConfigError(f"arguments: at most {MAX_PROMPT_ARGUMENTS}, not {len(named)}")
    described = {argument.name: argument for argument in prompt.arguments}
    arguments = tuple(described.get(name) or PromptArgument(name) for name in named)
    return SavedPrompt(prompt.name, prompt.text, prompt.description, arguments)


def expand_prompt(prompt: SavedPrompt, values: Mapping[str, str]) -> str:
    """The text with its arguments filled in. A value is inserted as it is: placeholders in it stand for nothing.

    Raises:
        ConfigError: an argument is missing, or there is none of this name.
    """
    known = {argument.name: argument for argument in prompt.arguments}
    for name in values:
        if name not in known:
            choices = ", ".join(known) or "none"
            raise ConfigError(f"prompt {prompt.name!r} has no argument {name[:80]!r}; its arguments: {choices}")
    missing = [name for name, argument in known.items() if name not in values and argument.default is None]
    if missing:
        usage = " ".join(f"{name}=…" for name in missing)
        raise ConfigError(f"prompt {prompt.name!r} needs {', '.join(missing)}; write /{prompt.name} {usage}")
    filled = {name: values.get(name, argument.default or "") for name, argument in known.items()}
    return _PLACEHOLDER.sub(lambda match: filled.get(match[1], match[0]), prompt.text)


def parse_arguments(prompt: SavedPrompt, words: str) -> dict[str, str]:
    """The arguments that a person wrote after the name of a prompt: `name=value`, or values in order.

    The last argument takes all that is left, so that a prompt with one argument needs no quotes. A value with spaces
    before it stands in quotes: `base="release 2"`.
    """
    values: dict[str, str] = {}
    order = [argument.name for argument in prompt.arguments]
    rest = words.strip()
    while rest:
        named, separator, after = rest.partition("=")
        is_named = bool(separator) and named in order
        name = named if is_named else next((candidate for candidate in order if candidate not in values), "")
        if not name:
            raise ConfigError(f"prompt {prompt.name!r} takes {len(order)} arguments; there is more: {rest[:80]!r}")
        rest = after if is_named else rest
        is_last = all(candidate in values or candidate == name for candidate in order)
        value, rest = _read_value(rest, is_last)
        values[name] = value
    return values


def _read_value(text: str, is_last: bool) -> tuple[str, str]:
    if text[:1] in ('"', "'") and (end := text.find(text[0], 1)) > 0 and text[end + 1 : end + 2] in ("", " "):
        return text[1:end], text[end + 1 :].lstrip()
    if is_last:
        return text, ""
    value, _, rest = text.partition(" ")
    return value, rest.lstrip()


def find_prompt(prompts: Sequence[SavedPrompt], name: str) -> SavedPrompt | None:
    """The prompt of this name."""
    return next((prompt for prompt in prompts if prompt.name == name), None)


def dump_prompt(prompt: SavedPrompt) -> str:
    """A prompt as it is stored."""
    return msgspec.json.encode(prompt).decode()


def load_prompt(text: str) -> SavedPrompt | None:
    """A stored prompt; None if the text is not one."""
    try:
        return msgspec.json.decode(text, type=SavedPrompt)
    except msgspec.MsgspecError:
        return None
