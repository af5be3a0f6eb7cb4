"""What a running tool asks is filled in, in the terminal: field by field or as JSON, and shown before it is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input, Select

from everturn.core.gates import Gate
from everturn.terminal.tui.gates.fields import FieldBox
from everturn.terminal.tui.gates.form import FormPanel
from everturn.terminal.tui.gates.keys import Checkbox
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.texts.gates import EN
from tests.helpers.gate_screen_app import at
from tests.helpers.scripted_server.server import Rig

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "[red]who[/]"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "urgent": {"type": "boolean"},
        "size": {"enum": ["S", "[b]M[/b]", 3]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
        "extra": {"type": "object"},
    },
    "required": ["name", "count"],
}


class Holding(App[None]):
    """A panel alone."""

    def __init__(self, panel: FormPanel) -> None:
        super().__init__()
        self.panel = panel
        self.filled: list[str] = []
        self.wrong: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_form_panel_filled(self, event: FormPanel.Filled) -> None:
        self.filled.append(event.text)

    def on_panel_wrong(self, event: FormPanel.Wrong) -> None:
        self.wrong.append(event.text)


def holding(value: Any, is_edit: bool = True, schema: dict[str, Any] | None = None) -> Holding:
    return Holding(FormPanel(Gate("g", "t", "c", "tool", "{}", "h"), EN, schema or SCHEMA, value, is_edit=is_edit))


async def test_each_field_holds_its_value_to_the_letter() -> None:
    value = {
        "count": 3,
        "name": "a\u202eb",
        "urgent": False,
        "size": "[b]M[/b]",
        "tags": ["c"],
        "extra": {"x": [1]},
        "odd": 1,
    }
    app = holding(value)
    async with app.run_test(size=(90, 60)) as pilot:
        await pilot.pause()
        assert app.panel.value() == value
        assert list(app.panel.value()) == list(value), "in the order of the call"
        app.panel.press("ctrl+s")
        await pilot.pause()
        assert app.wrong[-1] == EN.unchanged
        boxes = {box.field.name: box for box in app.query(FieldBox)}
        boxes["count"].query_one(Input).value = "12"
        app.panel.press("ctrl+s")
        await pilot.pause()
        assert boxes["count"].has_class("-wrong"), "what is wrong is said in its place"
        assert app.focused is boxes["count"].query_one(Input)
        boxes["count"].query_one(Input).value = "9"
        boxes["urgent"].query_one(Select).value = 0
        boxes["tags"].query(Checkbox).first().action_turn()
        app.panel.press("ctrl+s")
        await pilot.pause()
        assert json.loads(app.filled[-1]) == value | {"count": 9, "urgent": True, "tags": ["a", "c"]}


async def test_what_is_left_out_stays_out_and_what_is_needed_is_asked_for() -> None:
    app = holding({"name": "", "count": 1})
    async with app.run_test(size=(90, 60)) as pilot:
        await pilot.pause()
        assert app.panel.value() == {"name": "", "count": 1}
        boxes = {box.field.name: box for box in app.query(FieldBox)}
        boxes["name"].query_one(Input).value = ""
        app.panel.press("ctrl+s")
        await pilot.pause()
        assert "required" in app.wrong[-1]


async def test_json_and_form_are_two_views_of_one_value() -> None:
    app = holding({"name": "x", "count": 1})
    async with app.run_test(size=(90, 60)) as pilot:
        await pilot.pause()
        app.query_one(Input).value = "y"
        app.panel.press("ctrl+t")
        await app.workers.wait_for_complete()
        page = app.query_one(TextView)
        assert json.loads(page.text) == {"name": "y", "count": 1}
        page.load_text('{"name": "z", "count": 2}')
        app.panel.press("ctrl+t")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.panel.value() == {"name": "z", "count": 2}


async def test_a_page_never_hands_on_what_a_terminal_would_obey() -> None:
    app = holding({"name": "x", "count": 1})
    async with app.run_test(size=(90, 60)) as pilot:
        page = TextView("a\x1b[2Jb\u202ec")
        await app.mount(page)
        await pilot.pause()
        assert "\x1b" not in page.get_line(0).plain
        assert "\u202e" not in page.get_line(0).plain


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_a_form_of_a_running_tool_is_filled_in_and_shown_before_it_is_sent(rig: Rig) -> None:
    async with at(rig, (100, 36), user="member") as desk:
        session, screen = await desk.asked("form")
        assert "Which shirt shall it be?" in desk.text
        await desk.press("y")
        assert not desk.app.answers, "there is nothing to send yet"
        await desk.press("f")
        await desk.until(lambda: isinstance(screen.focused, Input))
        await desk.type("Ann")
        await desk.press("ctrl+s")
        assert "required" in desk.line
        screen.query_one(Select).value = 1
        await desk.press("ctrl+s")
        await desk.until(lambda: "Your answer, exactly as it is sent" in desk.text)
        assert '"size": "M"' in desk.text
        await desk.until(lambda: screen.accepts_keys)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert '"name":"Ann"' in rig.stored_text(session).replace(" ", "")
