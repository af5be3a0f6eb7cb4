"""A form → the answer to it, field by field or as JSON: what a person types, and nothing is sent here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import UNSET

from everturn.core.canonical import canonical, clean_all, parse
from everturn.errors import ConfigError
from everturn.terminal.editing import editor
from everturn.terminal.exact import STEP, hidden, say, seen, warn, write
from everturn.terminal.forms import CALLED, EMPTY, Field, fields_of, shown, value_of
from everturn.terminal.gate import filled
from everturn.terminal.screen import Screen

BACK = "Ctrl-D: back"
NO_JSON = "that is not JSON; nothing was changed"


class Asks(Protocol):
    """Whoever has a person in front of them."""

    @property
    def screen(self) -> Screen:
        """What they see."""
        ...

    async def prompt(self, *texts: str) -> str | None:
        """A line that they type; None if they want to go back. ConfigError: it was lost."""
        ...

    async def in_editor(self, words: Sequence[str], text: str, suffix: str) -> str:
        """What they make of a text in their editor."""
        ...

    def tell(self, text: str, style: str = "dim") -> None:
        """Tell them something."""
        ...


async def fill_in(desk: Asks, form: str, before: str) -> str:
    """The answer to a form as it is sent, field by field; what it was `before` if they go back."""
    fields = fields_of(form)
    if fields is None:
        desk.tell("this form cannot be asked for field by field, so it is filled in as JSON")
        return await as_json(desk, form, before)
    values: dict[str, Any] = {}
    for number, field in enumerate(fields, 1):
        _draw(desk.screen, field, f"{number} of {len(fields)}: " if len(fields) > 1 else "")
        is_answered, value = await _ask(desk, field)
        if not is_answered:
            return before
        if value is not UNSET:
            values[field.name] = value
    is_whole = len(fields) == 1 and not fields[0].name
    return canonical(values.get("") if is_whole else values)


async def as_json(desk: Asks, form: str, before: str) -> str:
    """The answer to a form, as JSON in their editor or on a line; what it was `before` if they go back."""
    words = editor(os.environ)
    if words:
        text = await desk.in_editor(words, filled(before or _skeleton(form)) + "\n", ".json")
    else:
        desk.screen.end()
        write(desk.screen, " " * 2 * STEP, [seen(line) for line in filled(form).split("\n")])
        line = await desk.prompt("Your answer, as JSON that fits this schema?", "Enter: back")
        if line is None or not line.strip():
            return before
        text = line
    try:
        return canonical(clean_all(parse(text)))
    except ValueError:
        raise ConfigError(NO_JSON) from None


def _skeleton(form: str) -> str:
    """What an answer looks like before anything is filled in."""
    fields = fields_of(form) or []
    if len(fields) == 1 and not fields[0].name:
        return canonical(None if fields[0].default is UNSET else fields[0].default)
    return canonical({field.name: None if field.default is UNSET else field.default for field in fields})


def _draw(screen: Screen, field: Field, place: str) -> None:
    """Draw what is asked for. What the form says of it stands further to the right than what we say."""
    screen.end()
    say(screen, f"{place}{CALLED[field.kind]}{'' if field.is_needed else ', may be left out'}", "ask")
    about = [line for text in (field.title, field.about) if text for line in text.split("\n")]
    if field.name and about:
        write(screen, f"{' ' * 2 * STEP}{seen(field.name)}  ", [seen(line) for line in about])
    elif field.name or about:
        write(screen, " " * 2 * STEP, [seen(line) for line in (about or [field.name])])
    for number, (_, called) in enumerate(field.options, 1):
        write(screen, f"{' ' * 2 * STEP}{number:>{len(str(len(field.options)))}}  ", [seen(called)])
    if field.default is not UNSET:
        say(screen, "Enter alone means:")
        write(screen, " " * 2 * STEP, [seen(shown(field.default))])
    told = [field.name, *about, *(called for _, called in field.options)]
    warn(screen, sum(map(hidden, told)) + (0 if field.default is UNSET else hidden(shown(field.default))))


async def _ask(desk: Asks, field: Field) -> tuple[bool, Any]:
    words = editor(os.environ) if field.kind == "json" else []
    while True:
        try:
            line = await desk.prompt(*_texts(field, bool(words)))
            if line is None:
                return False, UNSET
            if words and line.strip() == "e":
                start = "null" if field.default is UNSET else canonical(field.default)
                line = " ".join((await desk.in_editor(words, filled(start) + "\n", ".json")).split("\n"))
            return True, value_of(field, line)
        except ConfigError as error:
            desk.tell(str(error), "bad")


def _texts(field: Field, has_editor: bool) -> list[str]:
    count = len(field.options)
    how = {
        "text": "Type it",
        "boolean": "y or n",
        "choice": f"A number from 1 to {count}",
        "choices": f"Numbers from 1 to {count}, such as 1,{count}; [] for none",
        "json": "JSON on one line" + (", or e: in your editor" if has_editor else ""),
    }.get(field.kind, "A number")
    texts = [how]
    if field.default is not UNSET:
        texts.append("Enter: what is shown")
    elif not field.is_needed:
        texts.append("Enter: leave it out")
    elif field.is_nullable:
        texts.append("Enter: nothing")
    if field.kind == "text" and len(texts) > 1:
        texts.append(f"{EMPTY}: an empty text")
    return [*texts, BACK]
