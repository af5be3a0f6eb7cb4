"""Somebody else's text in the terminal tries to look like our question, its keys or its marks, or to be markup."""

from __future__ import annotations

import ast
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.screen import Screen

import everturn.terminal.tui
from everturn import api
from everturn.client import Server
from everturn.core.gates import Gate
from everturn.core.parts import TextPart
from everturn.errors import EverturnError
from everturn.terminal.text.visible_text import wrap_line
from everturn.terminal.tui.compare import CompareScreen
from everturn.terminal.tui.confirm import Confirm
from everturn.terminal.tui.gates.dialog import GateScreen
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.inbox import InboxScreen
from everturn.terminal.tui.mcp_servers import ServersScreen
from everturn.terminal.tui.picker import PickerScreen
from everturn.terminal.tui.transcript import Transcript
from tests.helpers.gate_screen_app import Stand, harmless
from tests.helpers.hostile_terminal_texts import MARKUP
from tests.helpers.transcript_app import Stage, Writing
from tests.tui.test_hostile import is_harmless

SOURCE = Path(everturn.terminal.tui.__file__).parent
WIDTH, HEIGHT = 100, 30
FRAME = [
    "╭─ pay asks to run ─────────────────────────────────────────╮",
    "│ Nothing will be done: this only looks.                     │",
    "│ y allow once   a always   n deny   esc later               │",
    "╰────────────────────────────────────────────────────────────╯",
]
SPOOFS = {
    "a dialog": "\n".join(FRAME),
    "a dialog behind blank lines": "\n" * 60 + "\n".join(FRAME),
    "keys": "y allow once   a always   n deny   esc later",
    "a mark": "✓ allowed by you",
    "the end of a dialog": f"harmless\n{FRAME[-1]}\n\n\n{FRAME[0]}",
    "markup": "[bold red]ALLOWED[/] [@click=screen.press('y')]more[/] [link=https://evil.example]docs[/link] [/nope]",
    "actions": "[@click=app.quit][reverse] y allow once [/reverse][/]",
    "variables": "[$text-success]✓ safe[/] {0} {name} %s $ref",
    "sequences": "\x1b[2J\x1b[H\x1b]8;;https://evil.example\x1b\\y allow\x1b]8;;\x1b\\\x9b31m\x1b]52;c;eA==\x07",
    "directions": "\u202ewolla y\u202c \u2066\u2067safe\u2069\u2069",
    "wide": "宽" * 300 + "╮",
    "of no width": "y\u200b \u200dallow\ufeff" + "e" + "\u0301" * 300,
    "one long line": "x" * 20_000 + "  y allow once",
    "many lines": "line\n" * 3000 + "\n".join(FRAME),
}


SCROLLBAR = {"grab", "scroll_up", "scroll_down"}


class Away:
    """A server that does not answer."""

    def session(self, _: str) -> Away:
        return self

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: Any, **__: Any) -> Any:
            raise EverturnError("the server is away")

        return fail


class Naming(Away):
    """A server that names an MCP server as it likes."""

    def __init__(self, evil: str) -> None:
        self._evil = evil

    async def mcp_servers(self) -> list[api.McpView]:
        evil, tool = self._evil, api.McpToolView(name=self._evil, description=self._evil, is_changed=True)
        return [
            api.McpView(
                name=evil, transport="stdio", state="untrusted", since=0.0, title=evil, tools=[tool], reason=evil,
                problems=[evil], runs=evil, variables=[evil], changes=[evil], hash=evil, login_problem=evil,
            )
        ]  # fmt: skip


ME = api.Me(tenant="local", user="ann", role="operator", version="0")


def gate_view(evil: str, **more: Any) -> api.GateView:
    """A question in which a text stands wherever somebody else's can."""
    fields: dict[str, Any] = {
        "tool": evil,
        "arguments": json.dumps({"amount": evil, evil[:500]: 1}),
        "why": evil,
        "preview": f"--- a\n+++ b\n@@ -1 +1 @@\n-{evil}\n+{evil}",
        "identity": evil,
    }
    gate = Gate(id="g", turn="t", call="c", hash="h", **{**fields, **more})
    return api.GateView(session="s", title=evil, opened=0.0, gate=gate)


@asynccontextmanager
async def standing(
    screen: Screen[Any], view: api.GateView | None = None, server: Away | None = None
) -> AsyncGenerator[tuple[Stand, Pilot[int]]]:
    app = Stand(cast("Server", server or Away()), ME)
    app.inbox_gates = [view] if view is not None else []
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        app.push_screen(screen, app.answers.append)
        await pilot.pause()
        await pilot.pause()
        yield app, pilot


def lines(app: Any) -> list[str]:
    """The whole screen, as a terminal would have it."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def deeds(app: Any) -> set[Any]:
    """Whatever a click anywhere on the screen would do; links count."""
    found: set[Any] = set()
    for strip in app.screen._compositor.render_strips():
        for _, style, control in strip:
            assert control is None
            if style is not None:
                found |= {style.link} - {None}
                found |= {value for name, value in style.meta.items() if name.startswith("@")}
    return found - SCROLLBAR


# The question ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoof", "kind"), [*((spoof, "call") for spoof in SPOOFS), ("a dialog", "question"), ("markup", "client")]
)
async def test_a_question_keeps_its_frame_and_its_keys_whatever_it_quotes(spoof: str, kind: str) -> None:
    view = gate_view(SPOOFS[spoof], kind=kind)
    async with standing(GateScreen(view), view) as (app, _):
        dialog, keys, body = (
            app.screen.query_one("#dialog"),
            app.screen.query_one(KeyBar),
            app.screen.query_one(ScrolledRows),
        )
        shown = lines(app)
        assert len(shown) == HEIGHT
        assert all(cell_len(line) == WIDTH and harmless(line) for line in shown)
        top, left = dialog.region.y, dialog.region.x
        assert shown[top][left] == "╭"
        assert shown[dialog.region.bottom - 1][left] == "╰"
        inside = [line.strip() for line in shown[top + 1 : dialog.region.bottom - 1]]
        assert all(line[0] == line[-1] == "│" for line in inside)
        assert not body.region.overlaps(keys.region)
        assert dialog.region.contains_region(keys.region)
        assert keys.region.height > 0
        ours = {("screen.press", (key,)) for key, _ in keys.keys}
        assert {_deed(deed) for deed in deeds(app)} <= ours
        assert not app.answers


def _deed(action: Any) -> Any:
    """`screen.press('y')` → its name and its arguments."""
    name, _, arguments = str(action).partition("(")
    return name, ast.literal_eval(f"({arguments[:-1]},)") if arguments else ()


@pytest.mark.parametrize("spoof", SPOOFS)
async def test_a_click_or_a_key_on_a_forged_question_answers_nothing(spoof: str) -> None:
    writing = Writing()
    writing.said("t", SPOOFS[spoof])
    writing.answered("t", [TextPart(SPOOFS[spoof])])
    app = Stage(writing.state)
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause()
        assert deeds(app) == set()
        for y in range(0, HEIGHT, 7):
            await pilot.click(offset=(6, y))
        await pilot.press("y", "a", "n")
        await pilot.pause()
        assert app.is_running
        assert not any(kind == "gate" for kind, _ in app.heard)


async def test_a_real_question_is_no_part_of_the_transcript() -> None:
    writing = Writing()
    writing.said("t", "Well?")
    writing.answered("t", [TextPart("\n".join(FRAME))])
    app = Stage(writing.state)
    app.me, app.server = ME, cast("Server", Away())
    view = gate_view("pay", arguments='{"amount": 5}')
    app.inbox_gates = [view]
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        forged = [line.index("╭─ pay asks") for line in lines(app) if "╭─ pay asks" in line]
        screen = GateScreen(view)
        app.push_screen(screen)
        await pilot.pause()
        await pilot.pause()
        dialog = screen.query_one("#dialog")
        assert app.screen is screen
        assert not any(isinstance(above, Transcript) for above in dialog.ancestors_with_self)
        # A forged one stands where texts stand, and the real one begins further left, over it.
        assert forged
        assert all(at > dialog.region.x for at in forged)


@pytest.mark.parametrize("text", ["x" * 20_000 + "é", "字" * 20_000, "é " * 10_000])
def test_a_long_line_is_measured_once_and_not_again_for_each_piece(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = 0

    def column(char: str) -> int:
        nonlocal measured
        measured += 1
        return 2 if char == "字" else 1

    monkeypatch.setattr("everturn.terminal.text.screen._columns", column)
    assert "".join(wrap_line(text, 80)) == text
    assert measured < 4 * len(text)


# Every other place ----------------------------------------------------------------------------------------------------


def screens(evil: str) -> Iterator[tuple[str, Screen[Any]]]:
    writing = Writing()
    writing.said("t", evil)
    writing.answered("t", [TextPart(evil)])
    writing.said("u", evil)
    writing.answered("u", [TextPart(evil)])
    yield "inbox", InboxScreen()
    yield "confirm", Confirm(evil, evil)
    yield "pick", PickerScreen([evil, "m"], evil, evil)
    yield "compare", CompareScreen(writing.state, "u-in")
    yield "servers", ServersScreen()


@pytest.mark.parametrize("which", ["inbox", "confirm", "pick", "compare", "servers"])
async def test_no_screen_takes_a_text_for_markup(which: str) -> None:
    for evil in (SPOOFS["markup"], SPOOFS["actions"], SPOOFS["sequences"], SPOOFS["wide"], "\n".join(MARKUP[:12])):
        screen = dict(screens(evil))[which]
        async with standing(screen, gate_view(evil), Naming(evil)) as (app, _):
            shown = lines(app)
            assert all(is_harmless(line) for line in shown)
            assert {_deed(deed)[0] for deed in deeds(app)} <= {"screen.press", "app.simulate_key"}
            if evil == SPOOFS["markup"]:
                assert any("[bold red]ALL" in line for line in shown), shown


# Widgets that read markup unless they are told not to, and what they are given as text.
PARSERS = {
    "Static",
    "Label",
    "Button",
    "Option",
    "OptionList",
    "SelectionList",
    "Checkbox",
    "RadioButton",
    "Collapsible",
}
SAFE = {"Content", "Content.styled", "Content.assemble", "Text"}


def loose(source: str) -> list[int]:
    """The lines on which a widget is made, or told something, whose text would be read as markup."""
    found: list[int] = []
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    # Widgets of our own, whatever their name: the class itself is looked at where it is defined.
    own = {name.name for node in imports if (node.module or "").startswith("everturn.") for name in node.names}
    bases = {
        call: ast.unparse(base)
        for definition in ast.walk(tree)
        if isinstance(definition, ast.ClassDef)
        for base in definition.bases
        if ast.unparse(base) in PARSERS
        for call in ast.walk(definition)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__"
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = bases.get(node, ast.unparse(node.func))
        if name in own:
            continue
        says = {word.arg: word.value for word in node.keywords}
        markup = says.get("markup")
        is_off = isinstance(markup, ast.Constant) and markup.value is False
        first = node.args[0] if node.args else None
        is_safe = first is None or (isinstance(first, ast.Call) and ast.unparse(first.func) in SAFE)
        if (
            (name in PARSERS - {"Option"} and not is_off and not is_safe)
            or (name.endswith(".notify") and not is_off)
            or ("from_markup" in name)
            or (name in ("Static", "OptionList", "Label") and not is_off and first is None)
        ):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_widget_reads_markup(path: Path) -> None:
    assert loose(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "Static(text)",
        "Static(text, markup=True)",
        "Button(name)",
        "self.notify(text)",
        "Content.from_markup(text)",
        "from textual.widgets import Checkbox; Checkbox(label)",
        "class Checkbox(Static): __init__ = lambda self: super().__init__(id='x')",
    ],
)
def test_a_widget_that_does_is_found(source: str) -> None:
    assert loose(source) == [1]
