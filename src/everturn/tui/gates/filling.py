"""A schema and a value → another value, field by field or as JSON; nothing is sent from here."""

from __future__ import annotations

import json
from typing import Any, ClassVar, cast

from msgspec import UNSET
from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from everturn.core.asking import Gate
from everturn.core.canonical import canonical, clean_all, parse
from everturn.core.schemas import misfits
from everturn.errors import ConfigError
from everturn.terminal.forms import Field, fields_of
from everturn.tui.gates.asked import written
from everturn.tui.gates.fields import FieldBox
from everturn.tui.gates.keys import Key
from everturn.tui.gates.page import Page
from everturn.tui.gates.panels import Panel
from everturn.tui.words.gates import GateWords


class FillPanel(Panel):
    """Fields, or a page of JSON. `Filled` is the value as text, to be shown again."""

    DEFAULT_CSS = """
    FillPanel { height: 1fr; }
    FillPanel VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    FillPanel > Page { height: 1fr; }
    """
    IS_TALL = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True),
        Binding("ctrl+t", "press('ctrl+t')", show=False, priority=True),
    ]

    class Filled(Message):
        """What was filled in, as JSON."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(
        self, gate: Gate, words: GateWords, schema: dict[str, Any] | None, value: Any, *, is_edit: bool
    ) -> None:
        super().__init__(gate, words)
        self._schema, self._is_edit = schema, is_edit
        self._first: Any = value
        self.fields = self._read(value)
        self.is_json = self.fields is None

    def _read(self, value: Any) -> list[Field] | None:
        fields = fields_of(canonical(self._schema)) if self._schema is not None else None
        if not fields or (self._is_edit and not isinstance(value, dict)):
            return None
        # What a call leaves out stays out: a default is for the tool to fill in.
        return [replace(field, default=UNSET) for field in fields] if self._is_edit else fields

    def compose(self) -> ComposeResult:
        """The fields; as JSON where there are none."""
        yield Static(
            self.words.edit_title if self._is_edit else self.words.fill_title, classes="panel-title", markup=False
        )
        yield self._entry(self._first)

    def _entry(self, value: Any) -> Page | VerticalScroll:
        if self.is_json:
            return Page(written(_skeleton(self.fields) if value is UNSET else value))
        boxes = [FieldBox(field, _value_in(value, field), self.words) for field in self.fields or ()]
        return VerticalScroll(*boxes, can_focus=False)

    def begin(self) -> None:
        """Type at once."""
        if self.is_json:
            self.query_one(Page).focus()
        elif boxes := list(self.query(FieldBox)):
            boxes[0].begin()

    @property
    def keys(self) -> list[Key]:
        """Ctrl-S shows it again, and only then can it be sent."""
        words = self.words
        other = [("ctrl+t", words.k_form if self.is_json else words.k_json)] if self.fields else []
        return [("ctrl+s", words.k_show), ("tab", words.k_next), *other, ("escape", words.k_back)]

    async def action_press(self, key: str) -> None:
        """A key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Done, or in the other way."""
        try:
            if key == "ctrl+s":
                self._done()
            elif key == "ctrl+t" and self.fields:
                self._turn()
        except ConfigError as error:
            self.post_message(self.Wrong(str(error)))

    def _done(self) -> None:
        value = self.value()
        if wrong := misfits(value, self._schema) if self._schema is not None else []:
            raise ConfigError("; ".join(map(str, wrong)))
        if self._is_edit and not isinstance(value, dict):
            raise ConfigError(self.words.no_object)
        if self._is_edit and canonical(cast("object", value)) == canonical(self._first):
            raise ConfigError(self.words.unchanged)
        self.post_message(self.Filled(json.dumps(value, ensure_ascii=False)))

    def _turn(self) -> None:
        try:
            value = self.value()
        except ConfigError:
            if self.is_json:
                raise
            value = self._first  # what is half filled in is not worth more than what was there
        self.is_json = not self.is_json
        self.run_worker(self._compose_again(value), exclusive=True)

    async def _compose_again(self, value: Any) -> None:
        await self.remove_children("Page, VerticalScroll")
        await self.mount(self._entry(value))
        self.begin()
        self.post_message(self.Wrong(""))

    def value(self) -> Any:
        """What is filled in.

        Raises:
            ConfigError: something is not what it has to be; it says so in its place.
        """
        if self.is_json:
            try:
                return clean_all(parse(self.query_one(Page).text))
            except ValueError:
                raise ConfigError(self.words.no_json) from None
        found, wrong = dict[str, Any](), list[tuple[FieldBox, ConfigError]]()
        for box in self.query(FieldBox):
            try:
                found[box.field.name] = box.value()
            except ConfigError as error:
                wrong.append((box, error))
        if wrong:
            wrong[0][0].begin()
            name = wrong[0][0].field.name
            raise ConfigError(f"{name}: {wrong[0][1]}" if name else str(wrong[0][1]))
        return self._whole(found)

    def _whole(self, found: dict[str, Any]) -> Any:
        if list(found) == [""]:
            return found[""]
        given: object = self._first
        first = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        # In the order of the call, and what the schema does not know of stays.
        kept = {name: found.get(name, value) for name, value in first.items()}
        return {name: value for name, value in {**kept, **found}.items() if value is not UNSET}


def _value_in(value: Any, field: Field) -> Any:
    """What a field begins with."""
    if not field.name:
        return field.default if value is UNSET else value
    found = cast("dict[str, Any]", value).get(field.name, UNSET) if isinstance(value, dict) else UNSET
    return field.default if found is UNSET else found


def _skeleton(fields: list[Field] | None) -> Any:
    """What an answer looks like before anything is filled in."""
    if fields and len(fields) == 1 and not fields[0].name:
        return None if fields[0].default is UNSET else fields[0].default
    return {field.name: None if field.default is UNSET else field.default for field in fields or ()}
