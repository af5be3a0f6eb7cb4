"""Form prompt in line mode: a person fills in a form, field by field or as JSON. This module sends nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import UNSET

from everturn.core.canonical_json import encode_canonical, parse_json, replace_surrogates_in
from everturn.errors import ConfigError
from everturn.terminal.lines.editor import editor_command
from everturn.terminal.lines.gate_view import pretty_json
from everturn.terminal.text.forms import (
    EMPTY,
    KIND_LABELS,
    FormField,
    default_answer,
    format_value,
    parse_form,
    parse_value,
)
from everturn.terminal.text.screen import LineScreen
from everturn.terminal.text.visible_text import (
    INDENT,
    count_invisible,
    escape_invisible,
    print_lines,
    print_message,
    warn_invisible,
)

BACK = "Ctrl-D: back"
NO_JSON = "that is not JSON; nothing was changed"


class FormPrompter(Protocol):
    """The prompt through which a person fills in a form."""

    @property
    def screen(self) -> LineScreen:
        """The person's screen."""
        ...

    async def prompt(self, *texts: str) -> str | None:
        """Return a line that the person types; None to go back. Raises ConfigError if a part of the line was lost."""
        ...

    async def edit_text(self, words: Sequence[str], text: str, suffix: str) -> str:
        """Return the text after the person has edited it in their editor."""
        ...

    def print_message(self, text: str, style: str = "dim") -> None:
        """Print a message."""
        ...


async def fill_form(prompter: FormPrompter, form: str, before: str) -> str:
    """Ask for a form field by field, and return the answer as it is sent; return `before` if the person goes back."""
    fields = parse_form(form)
    if fields is None:
        prompter.print_message("this form cannot be asked for field by field, so it is filled in as JSON")
        return await fill_form_as_json(prompter, form, before)
    values: dict[str, Any] = {}
    for number, field in enumerate(fields, 1):
        _draw(prompter.screen, field, f"{number} of {len(fields)}: " if len(fields) > 1 else "")
        is_answered, value = await _ask(prompter, field)
        if not is_answered:
            return before
        if value is not UNSET:
            values[field.name] = value
    is_whole = len(fields) == 1 and not fields[0].name
    return encode_canonical(values.get("") if is_whole else values)


async def fill_form_as_json(prompter: FormPrompter, form: str, before: str) -> str:
    """Ask for a form as JSON, in an editor or on a line; return `before` if the person goes back."""
    words = editor_command(os.environ)
    if words:
        text = await prompter.edit_text(
            words, pretty_json(before or encode_canonical(default_answer(parse_form(form)))) + "\n", ".json"
        )
    else:
        prompter.screen.end()
        print_lines(
            prompter.screen, " " * 2 * INDENT, [escape_invisible(line) for line in pretty_json(form).split("\n")]
        )
        line = await prompter.prompt("Your answer, as JSON that fits this schema?", "Enter: back")
        if line is None or not line.strip():
            return before
        text = line
    try:
        return encode_canonical(replace_surrogates_in(parse_json(text)))
    except ValueError:
        raise ConfigError(NO_JSON) from None


def _draw(screen: LineScreen, field: FormField, position: str) -> None:
    """Print one field. Text from the form is indented further than our own."""
    screen.end()
    print_message(
        screen, f"{position}{KIND_LABELS[field.kind]}{'' if field.is_required else ', may be left out'}", "ask"
    )
    about = [line for text in (field.title, field.description) if text for line in text.split("\n")]
    if field.name and about:
        print_lines(
            screen, f"{' ' * 2 * INDENT}{escape_invisible(field.name)}  ", [escape_invisible(line) for line in about]
        )
    elif field.name or about:
        print_lines(screen, " " * 2 * INDENT, [escape_invisible(line) for line in (about or [field.name])])
    for number, (_, label) in enumerate(field.options, 1):
        print_lines(screen, f"{' ' * 2 * INDENT}{number:>{len(str(len(field.options)))}}  ", [escape_invisible(label)])
    if field.default is not UNSET:
        print_message(screen, "Enter alone means:")
        print_lines(screen, " " * 2 * INDENT, [escape_invisible(format_value(field.default))])
    texts = [field.name, *about, *(label for _, label in field.options)]
    warn_invisible(
        screen,
        sum(map(count_invisible, texts))
        + (0 if field.default is UNSET else count_invisible(format_value(field.default))),
    )


async def _ask(prompter: FormPrompter, field: FormField) -> tuple[bool, Any]:
    words = editor_command(os.environ) if field.kind == "json" else []
    while True:
        try:
            line = await prompter.prompt(*_texts(field, bool(words)))
            if line is None:
                return False, UNSET
            if words and line.strip() == "e":
                start = "null" if field.default is UNSET else encode_canonical(field.default)
                line = " ".join((await prompter.edit_text(words, pretty_json(start) + "\n", ".json")).split("\n"))
            return True, parse_value(field, line)
        except ConfigError as error:
            prompter.print_message(str(error), "bad")


def _texts(field: FormField, has_editor: bool) -> list[str]:
    count = len(field.options)
    hint = {
        "text": "Type it",
        "boolean": "y or n",
        "choice": f"A number from 1 to {count}",
        "choices": f"Numbers from 1 to {count}, such as 1,{count}; [] for none",
        "json": "JSON on one line" + (", or e: in your editor" if has_editor else ""),
    }.get(field.kind, "A number")
    texts = [hint]
    if field.default is not UNSET:
        texts.append("Enter: what is shown")
    elif not field.is_required:
        texts.append("Enter: leave it out")
    elif field.is_nullable:
        texts.append("Enter: nothing")
    if field.kind == "text" and len(texts) > 1:
        texts.append(f"{EMPTY}: an empty text")
    return [*texts, BACK]
