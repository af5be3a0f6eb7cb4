"""Form panel: edits a value by its schema, field by field or as JSON. It posts the value, and sends nothing itself."""

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

from everturn.core.canonical_json import encode_canonical, parse_json, replace_surrogates_in
from everturn.core.gates import Gate
from everturn.core.json_schema import validate_schema
from everturn.errors import ConfigError
from everturn.localization import format_text
from everturn.terminal.text.forms import FormField, default_answer, parse_form
from everturn.terminal.tui.gates.fields import FieldBox
from everturn.terminal.tui.gates.keys import Key
from everturn.terminal.tui.gates.panels import Panel
from everturn.terminal.tui.gates.summary import editable_json
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.texts.gates import GateTexts


class FormPanel(Panel):
    """Fields, or a JSON text. `Filled` has the value as text, to be shown again before it is sent."""

    DEFAULT_CSS = """
    FormPanel { height: 1fr; }
    FormPanel VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    FormPanel > TextView { height: 1fr; }
    """
    IS_TALL = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True),
        Binding("ctrl+t", "press('ctrl+t')", show=False, priority=True),
    ]

    class Filled(Message):
        """The filled-in value, as JSON."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(
        self, gate: Gate, texts: GateTexts, schema: dict[str, Any] | None, value: Any, *, is_edit: bool
    ) -> None:
        super().__init__(gate, texts)
        self._schema, self._is_edit = schema, is_edit
        self._start_value: Any = value
        self.fields = self._read(value)
        self.is_json = self.fields is None

    def _read(self, value: Any) -> list[FormField] | None:
        fields = parse_form(encode_canonical(self._schema)) if self._schema is not None else None
        if not fields or (self._is_edit and not isinstance(value, dict)):
            return None
        # An argument that the call left out stays out: the tool applies its own default.
        return [replace(field, default=UNSET) for field in fields] if self._is_edit else fields

    def compose(self) -> ComposeResult:
        """The fields; a JSON text if there are none."""
        yield Static(
            self.texts.edit_title if self._is_edit else self.texts.fill_title, classes="panel-title", markup=False
        )
        yield self._entry(self._start_value)

    def _entry(self, value: Any) -> TextView | VerticalScroll:
        if self.is_json:
            return TextView(editable_json(default_answer(self.fields) if value is UNSET else value))
        boxes = [FieldBox(field, _value_in(value, field), self.texts) for field in self.fields or ()]
        return VerticalScroll(*boxes, can_focus=False)

    @property
    def wanted_height(self) -> int:
        """The title, the fields, and the border above; 0 for a JSON text."""
        boxes = list(self.query(FieldBox))
        title = sum(widget.outer_size.height for widget in self.query(".panel-title"))
        return 1 + title + sum(box.outer_size.height + box.styles.margin.bottom for box in boxes) if boxes else 0

    def on_field_box_field_resized(self) -> None:
        """A field was drawn, or shows an error: the panel needs another height."""
        self.post_message(self.HeightChanged())

    def begin(self) -> None:
        """Focus the first input."""
        if self.is_json:
            self.query_one(TextView).focus()
        elif boxes := list(self.query(FieldBox)):
            boxes[0].begin()

    @property
    def keys(self) -> list[Key]:
        """Ctrl-S shows the value again; only then can it be sent."""
        texts = self.texts
        other = [("ctrl+t", texts.k_form if self.is_json else texts.k_json)] if self.fields else []
        return [("ctrl+s", texts.k_show), ("tab", texts.k_next), *other, ("escape", texts.k_back)]

    async def action_press(self, key: str) -> None:
        """Handle a key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Finish, or switch between fields and JSON."""
        try:
            if key == "ctrl+s":
                self._done()
            elif key == "ctrl+t" and self.fields:
                self._switch_view()
        except ConfigError as error:
            self.post_message(self.Wrong(str(error)))

    def _done(self) -> None:
        value = self.value()
        if mismatches := validate_schema(value, self._schema) if self._schema is not None else []:
            raise ConfigError("; ".join(map(str, mismatches)))
        if self._is_edit and not isinstance(value, dict):
            raise ConfigError(format_text(self.texts.no_object))
        if self._is_edit and encode_canonical(cast("object", value)) == encode_canonical(self._start_value):
            raise ConfigError(self.texts.unchanged)
        self.post_message(self.Filled(json.dumps(value, ensure_ascii=False)))

    def _switch_view(self) -> None:
        try:
            value = self.value()
        except ConfigError:
            if self.is_json:
                raise
            value = self._start_value  # an incomplete form falls back to the initial value
        self.is_json = not self.is_json
        self.run_worker(self._compose_again(value), exclusive=True)

    async def _compose_again(self, value: Any) -> None:
        await self.remove_children("TextView, VerticalScroll")
        await self.mount(self._entry(value))
        self.begin()
        self.post_message(self.Wrong(""))

    def value(self) -> Any:
        """Return the value.

        Raises:
            ConfigError: a field is invalid; its error is shown in the field.
        """
        if self.is_json:
            try:
                return replace_surrogates_in(parse_json(self.query_one(TextView).text))
            except ValueError:
                raise ConfigError(format_text(self.texts.no_json)) from None
        values, errors = dict[str, Any](), list[tuple[FieldBox, ConfigError]]()
        for box in self.query(FieldBox):
            try:
                values[box.field.name] = box.value()
            except ConfigError as error:
                errors.append((box, error))
        if errors:
            errors[0][0].begin()
            name = errors[0][0].field.name
            raise ConfigError(f"{name}: {errors[0][1]}" if name else str(errors[0][1]))
        return self._whole(values)

    def _whole(self, values: dict[str, Any]) -> Any:
        if list(values) == [""]:
            return values[""]
        initial: object = self._start_value
        first = cast("dict[str, Any]", initial) if isinstance(initial, dict) else {}
        # In the order of the call; arguments that the schema does not know stay.
        merged = {name: values.get(name, value) for name, value in first.items()}
        return {name: value for name, value in {**merged, **values}.items() if value is not UNSET}


def _value_in(value: Any, field: FormField) -> Any:
    """Return the initial value of a field."""
    if not field.name:
        return field.default if value is UNSET else value
    current = cast("dict[str, Any]", value).get(field.name, UNSET) if isinstance(value, dict) else UNSET
    return field.default if current is UNSET else current
