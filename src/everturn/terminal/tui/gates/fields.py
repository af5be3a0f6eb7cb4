"""Form field widgets: an input for one field, its description, and its error message."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from msgspec import UNSET
from msgspec.structs import replace
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Select, Static

from everturn.core.canonical_json import replace_surrogates_in
from everturn.core.json_schema import validate_schema
from everturn.errors import ConfigError
from everturn.terminal.text.forms import EMPTY, FormField, parse_value
from everturn.terminal.text.visible_text import count_invisible, escape_invisible
from everturn.terminal.tui.gates.keys import Checkbox
from everturn.terminal.tui.gates.summary import editable_json
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.texts.gates import GateTexts

MIN_MULTILINE: Final = 60  # characters from which on a text has a multi-line input
MAX_LINES: Final = 6  # lines of a multi-line input


def editable_field(field: FormField, value: Any) -> FormField:
    """Return the field in a form that can represent a value exactly: what a line cannot hold is edited as JSON."""
    if field.kind == "text":
        is_plain = isinstance(value, str) and not count_invisible(value) and "\t" not in value and value != EMPTY
        is_plain = is_plain and (value == "" or bool(value.strip()))
    elif field.kind in ("number", "integer"):
        is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    elif field.kind == "boolean":
        is_plain = isinstance(value, bool)
    elif field.kind == "choice":
        is_plain = any(_is_same(value, item) for item, _ in field.options)
    elif field.kind == "choices":
        is_plain = isinstance(value, list) and all(
            any(_is_same(item, option) for option, _ in field.options) for item in cast("list[object]", value)
        )
    else:
        is_plain = True
    return field if value is UNSET or is_plain else replace(field, kind="json", options=())


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and value == other


def initial_text(field: FormField, value: Any) -> str:
    """Return the initial text of the input."""
    if value is UNSET:
        return ""
    if field.kind == "text":
        return EMPTY if value == "" else value
    return editable_json(value) if field.kind == "json" else json.dumps(value)


class MultiSelect(Vertical):
    """Checkboxes for several options."""

    DEFAULT_CSS = "MultiSelect { height: auto; }"

    def focus(self, scroll_visible: bool = True) -> MultiSelect:
        """Focus the first checkbox."""
        next(iter(self.query(Checkbox))).focus(scroll_visible)
        return self


class FieldBox(Vertical):
    """One field: its name, description, input and error message."""

    DEFAULT_CSS = """
    FieldBox { height: auto; margin: 0 0 1 0; }
    FieldBox Static { height: auto; }
    FieldBox .about { color: $text-muted; }
    FieldBox .wrong { color: $text-error; text-style: bold; display: none; }
    FieldBox.-wrong .wrong { display: block; }
    FieldBox Select { width: 1fr; }
    """

    class FieldResized(Message):
        """The height of the field has changed."""

    def on_resize(self) -> None:
        """Report it: the panel has to be as tall."""
        self.post_message(self.FieldResized())

    def __init__(self, field: FormField, value: Any, texts: GateTexts) -> None:
        super().__init__()
        self.field, self.texts = editable_field(field, value), texts
        self._value = value
        self._options: list[Any] = []
        self._entry_widget = self._entry()

    def compose(self) -> ComposeResult:
        """The parts of the field, by its kind."""
        field, texts = self.field, self.texts
        name = Content.styled(escape_invisible(field.name or texts.answer), "bold")
        notes = [texts.as_json] if field.kind == "json" else []
        notes += [] if field.is_required else [texts.optional]
        yield Static(Content.assemble(name, Content.styled("".join(f" · {note}" for note in notes), "$text-muted")))
        if about := "\n".join(text for text in (field.title, field.description) if text):
            yield Static(Content("\n".join(map(escape_invisible, about.split("\n")))), classes="about", markup=False)
        yield self._entry_widget
        yield Static("", classes="wrong", markup=False)

    def _entry(self) -> Input | TextView | Select[int] | MultiSelect:
        field = self.field
        if field.kind == "boolean":
            return self._select([(self.texts.yes, True), (self.texts.no, False)])
        if field.kind == "choice":
            return self._select([(escape_invisible(label), value) for value, label in field.options])
        if field.kind == "choices":
            selected: list[Any] = [] if self._value is UNSET else self._value
            options = (
                (escape_invisible(label), any(_is_same(item, value) for item in selected))
                for value, label in field.options
            )
            return MultiSelect(*(Checkbox(label, is_selected) for label, is_selected in options))
        line = initial_text(field, self._value)
        if field.kind == "json" or "\n" in line or len(line) > MIN_MULTILINE:
            page = TextView(line)
            page.styles.height = min(max(line.count("\n") + 1, 2), MAX_LINES)
            return page
        return Input(line)

    def _select(self, options: list[tuple[str, Any]]) -> Select[int]:
        self._options = [value for _, value in options]
        index = next((index for index, value in enumerate(self._options) if _is_same(value, self._value)), None)
        rows = [(Content(label), index) for index, (label, _) in enumerate(options)]
        blank = Content(self.texts.left_out if not self.field.is_required else "…")
        return Select(rows, value=Select.NULL if index is None else index, prompt=blank.plain, compact=True)

    def value(self) -> Any:
        """Return the value; `UNSET` if the field is left out. An error is shown in the field.

        Raises:
            ConfigError: the input is not a valid value.
        """
        try:
            value = self._parse_entry()
        except ConfigError as error:
            self.show_error(str(error))
            raise
        self.show_error("")
        return value

    def _parse_entry(self) -> Any:
        field = self.field
        match self._entry_widget:
            case Select() as select:
                index = select.value
                return self._options[index] if isinstance(index, int) else parse_value(field, "")
            case MultiSelect() as boxes:
                ticked = zip(boxes.query(Checkbox), field.options, strict=True)
                return self._several([value for tick, (value, _) in ticked if tick.value])
            case Input() as line:
                return replace_surrogates_in(parse_value(field, line.value))
            case page:
                return replace_surrogates_in(parse_value(field, page.text))

    def _several(self, values: list[Any]) -> Any:
        if not values and not self.field.is_required:
            return UNSET
        if mismatches := validate_schema(values, self.field.schema):
            raise ConfigError("; ".join(map(str, mismatches)))
        return values

    def show_error(self, wrong: str) -> None:
        """Show an error; "" clears it."""
        self.set_class(bool(wrong), "-wrong")
        self.query_one(".wrong", Static).update(Content(f"! {escape_invisible(wrong)}" if wrong else ""))

    def begin(self) -> None:
        """Focus the input."""
        self._entry_widget.focus()
