"""A field of a form → something to type or choose in, what it means, and what is wrong with it, in its place."""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Select, Static

from everturn.core.canonical import clean_all
from everturn.core.schemas import misfits
from everturn.errors import ConfigError
from everturn.terminal.exact import hidden, seen
from everturn.terminal.forms import EMPTY, Field, value_of
from everturn.tui.gates.asked import written
from everturn.tui.gates.keys import Tick
from everturn.tui.gates.page import Page
from everturn.tui.words.gates import GateWords

LONG: Final = 60  # characters from which on a text has a page, and no line
TALLEST: Final = 6  # lines of such a page


def fitted(field: Field, value: Any) -> Field:
    """The field as it can hold a value to the letter: what a line cannot hold is typed as JSON."""
    if field.kind == "text":
        is_plain = isinstance(value, str) and not hidden(value) and "\t" not in value and value != EMPTY
        is_plain = is_plain and (value == "" or bool(value.strip()))
    elif field.kind in ("number", "integer"):
        is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    elif field.kind == "boolean":
        is_plain = isinstance(value, bool)
    elif field.kind == "choice":
        is_plain = any(_is_same(value, one) for one, _ in field.options)
    elif field.kind == "choices":
        is_plain = isinstance(value, list) and all(any(_is_same(one, two) for two, _ in field.options) for one in value)  # pyright: ignore[reportUnknownVariableType]
    else:
        is_plain = True
    return field if value is UNSET or is_plain else replace(field, kind="json", options=())


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def line_of(field: Field, value: Any) -> str:
    """What stands in the line before anything is typed."""
    if value is UNSET:
        return ""
    if field.kind == "text":
        return EMPTY if value == "" else value
    return written(value) if field.kind == "json" else json.dumps(value)


class Ticks(Vertical):
    """Some of these."""

    DEFAULT_CSS = "Ticks { height: auto; }"

    def focus(self, scroll_visible: bool = True) -> Ticks:
        """The first of them."""
        next(iter(self.query(Tick))).focus(scroll_visible)
        return self


class FieldBox(Vertical):
    """One field: its name, what it is for, where it is filled in, and what is wrong."""

    DEFAULT_CSS = """
    FieldBox { height: auto; margin: 0 0 1 0; }
    FieldBox Static { height: auto; }
    FieldBox .about { color: $text-muted; }
    FieldBox .wrong { color: $text-error; text-style: bold; display: none; }
    FieldBox.-wrong .wrong { display: block; }
    FieldBox Select { width: 1fr; }
    """

    def __init__(self, field: Field, value: Any, words: GateWords) -> None:
        super().__init__()
        self.field, self.words = fitted(field, value), words
        self._value = value
        self._options: list[Any] = []
        self._made = self._entry()

    def compose(self) -> ComposeResult:
        """Whatever suits its kind."""
        field, words = self.field, self.words
        name = Content.styled(seen(field.name or words.answer), "bold")
        notes = [words.as_json] if field.kind == "json" else []
        notes += [] if field.is_needed else [words.optional]
        yield Static(Content.assemble(name, Content.styled("".join(f" · {note}" for note in notes), "dim")))
        if about := "\n".join(text for text in (field.title, field.about) if text):
            yield Static(Content("\n".join(map(seen, about.split("\n")))), classes="about", markup=False)
        yield self._made
        yield Static("", classes="wrong", markup=False)

    def _entry(self) -> Input | Page | Select[int] | Ticks:
        field = self.field
        if field.kind == "boolean":
            return self._select([(self.words.yes, True), (self.words.no, False)])
        if field.kind == "choice":
            return self._select([(seen(called), value) for value, called in field.options])
        if field.kind == "choices":
            taken: list[Any] = [] if self._value is UNSET else self._value
            options = ((seen(called), any(_is_same(one, value) for one in taken)) for value, called in field.options)
            return Ticks(*(Tick(called, is_taken) for called, is_taken in options))
        line = line_of(field, self._value)
        if field.kind == "json" or "\n" in line or len(line) > LONG:
            page = Page(line)
            page.styles.height = min(max(line.count("\n") + 1, 2), TALLEST)
            return page
        return Input(line)

    def _select(self, options: list[tuple[str, Any]]) -> Select[int]:
        self._options = [value for _, value in options]
        at = next((at for at, value in enumerate(self._options) if _is_same(value, self._value)), None)
        rows = [(Content(called), at) for at, (called, _) in enumerate(options)]
        blank = Content(self.words.left_out if not self.field.is_needed else "…")
        return Select(rows, value=Select.NULL if at is None else at, prompt=blank.plain, compact=True)

    def value(self) -> Any:
        """What is meant; `UNSET`: it is left out. What is wrong is shown here.

        Raises:
            ConfigError: it means nothing.
        """
        try:
            value = self._meant()
        except ConfigError as error:
            self.say(str(error))
            raise
        self.say("")
        return value

    def _meant(self) -> Any:
        field = self.field
        match self._made:
            case Select() as select:
                at = select.value
                return self._options[at] if isinstance(at, int) else value_of(field, "")
            case Ticks() as several:
                ticked = zip(several.query(Tick), field.options, strict=True)
                return self._several([value for tick, (value, _) in ticked if tick.value])
            case Input() as line:
                return clean_all(value_of(field, line.value))
            case page:
                return clean_all(value_of(field, page.text))

    def _several(self, values: list[Any]) -> Any:
        if not values and not self.field.is_needed:
            return UNSET
        if wrong := misfits(values, self.field.schema):
            raise ConfigError("; ".join(map(str, wrong)))
        return values

    def say(self, wrong: str) -> None:
        """Say what is wrong; "": nothing is."""
        self.set_class(bool(wrong), "-wrong")
        self.query_one(".wrong", Static).update(Content(f"! {seen(wrong)}" if wrong else ""))

    def begin(self) -> None:
        """Take the focus here."""
        self._made.focus()
