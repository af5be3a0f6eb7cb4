"""The screen of a conversation: what was said, what waits, the box to write in, and the lines around them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from everturn import api
from everturn.terminal.screen import prose
from everturn.tui.base import app_of
from everturn.tui.composer import Box, Composer
from everturn.tui.keys import Hints, KeysLine
from everturn.tui.reverting import ask_revert
from everturn.tui.side import Side
from everturn.tui.state import SessionState
from everturn.tui.status import Edges, running_line, status_line
from everturn.tui.transcript import Transcript
from everturn.tui.words.app import words

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp

QUIET = 1.0  # seconds without a key after which a question may open by itself
LEFT = 1.0  # seconds after a question was left in which Esc means nothing
TWICE = 2.0  # seconds in which a second Esc means it
TICK = 0.5  # seconds
SMALLEST = (40, 12)
LOW = 20  # lines from which on there is room for more than is needed


class TalkScreen(Screen[None]):
    """Shows the session that the app follows."""

    DEFAULT_CSS = """
    TalkScreen #top { background: $surface; color: $foreground; }
    TalkScreen #main { width: 1fr; }
    TalkScreen Transcript { height: 1fr; }
    TalkScreen #queue { height: auto; max-height: 4; padding: 0 2; color: $text-muted; display: none; }
    TalkScreen #ask { height: 1; padding: 0 2; background: $warning 20%; color: $foreground; display: none; }
    TalkScreen #ask:hover { background: $warning 35%; }
    TalkScreen #welcome { height: auto; padding: 0 2; color: $text-muted; display: none; }
    TalkScreen.-low #welcome { display: none; }
    TalkScreen #small { display: none; padding: 1 2; }
    TalkScreen.small #body { display: none; }
    TalkScreen.small #small { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", show=False),
        Binding("pageup", "scroll_up", "scroll_up", show=False, priority=True),
        Binding("pagedown", "scroll_down", "scroll_down", show=False, priority=True),
        Binding("ctrl+end", "scroll_end", "scroll_end", show=False, priority=True),
        Binding("ctrl+t", "take_back", "take_back", show=False),
        Binding("f6", "to_transcript", "to_transcript", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._stopped = 0.0  # when Esc was pressed last
        self._left = 0.0  # when a question was left
        self._seen: set[str] = set()  # questions that have opened once, by themselves or by hand

    @property
    def around(self) -> EverturnApp:
        """The app, as it is."""
        return app_of(self)

    def compose(self) -> ComposeResult:
        """Sessions at the side, and the conversation."""
        app = self.around
        with Horizontal(id="body"):
            yield Side()
            with Vertical(id="main"):
                yield Edges("top")
                yield Transcript()
                yield Hints(words(app.language).welcome, id="welcome")
                yield Static(id="queue", markup=False)
                yield Static(id="ask", markup=False)
                yield Composer(words(app.language).slash, app.commands.values)
                yield Edges("status")
                yield KeysLine()
        yield Static(Content(words(app.language).small), id="small", markup=False)

    def on_mount(self) -> None:
        """Begin."""
        self.composer.box.focus()
        self.around.call_later(self.around.ready)  # after the focus, which is moved there, too
        self.set_interval(TICK, self._tick)
        self.draw()

    @property
    def composer(self) -> Composer:
        """Where one writes."""
        return self.query_one(Composer)

    @property
    def transcript(self) -> Transcript:
        """What was said."""
        return self.query_one(Transcript)

    def say_anew(self) -> None:
        """The language is another one."""
        said = words(self.around.language)
        self.composer.commands = said.slash
        self.query_one("#small", Static).update(Content(said.small))
        self.query_one("#welcome", Hints).say(said.welcome)
        self.query_one(KeysLine).draw()
        self.query_one(Side).say_anew()

    def on_resize(self, event: events.Resize) -> None:
        """Say so where nothing would be readable."""
        side, was_small = self.query_one(Side), self.has_class("small")
        is_small = event.size.width < SMALLEST[0] or event.size.height < SMALLEST[1]
        self.set_class(is_small, "small")
        had_side = side.display
        side.fit(event.size.width)
        if side.display and not had_side:
            self.call_after_refresh(self.around.draw)
        if was_small and not is_small:  # what is not seen has lost the focus
            self.call_after_refresh(self.composer.box.focus)

    # What is drawn ---------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw the lines around the conversation anew."""
        if not self.is_mounted:
            return
        app = self.around
        said, state = words(app.language), None if app.follower is None else app.follower.state
        title = said.new if state is None else prose(title_of(state)) or said.new
        count = said.waits_one if len(app.waits) == 1 else said.waits.format(count=len(app.waits))
        waits = Content.styled(count, "$warning bold") if app.waits else Content()
        is_lost = app.follower is not None and app.follower.is_broken
        right = Content.styled(f"× {said.lost}", "$error bold") if is_lost else running_line(state, said)
        self.query_one("#top", Edges).put(Content.styled(title, "bold"), Content("  ").join([right, waits]))
        agent, model = app.who()
        note = Content.styled(said.in_memory, "$warning bold") if app.is_in_memory else Content(app.note)
        self.query_one("#status", Edges).put(status_line(state, agent, model, app.agents.models), note)
        self._draw_queue([] if state is None else state.waiting)
        self._draw_ask(app.gates_here())
        self._draw_composer()
        self._draw_keys()

    def _draw_queue(self, queued: Sequence[api.QueuedView]) -> None:
        said, line = words(self.around.language), self.query_one("#queue", Static)
        line.display = bool(queued)
        rows = [f"{said.steers if one.steers else said.queued}: {' '.join(one.text.split())}" for one in queued]
        shown = [prose(row) for row in rows[:3]]
        if shown:
            shown[-1] += f"   ({said.take_back})" if len(rows) <= 3 else f"   (+{len(rows) - 3}; {said.take_back})"
            line.update(Content("\n".join(shown)))  # only then: it lays the whole screen out anew

    def _draw_ask(self, gates: Sequence[api.GateView]) -> None:
        said, line = words(self.around.language), self.query_one("#ask", Static)
        line.display = bool(gates)
        if gates:
            gate = gates[0].gate
            text = (said.reviews if gate.kind == "result" else said.asks).format(name=prose(gate.tool))
            more = f"  ({said.more_asks.format(count=len(gates) - 1)})" if len(gates) > 1 else ""
            line.update(Content(f"? {text}{more}"))

    def _draw_composer(self) -> None:
        app, composer = self.around, self.composer
        said = words(app.language)
        composer.set_class(bool(app.editing), "editing")
        composer.box.placeholder = said.write if app.follower is not None else said.write_new
        names = ", ".join(file.part.name for file in app.attached)
        about = said.editing if app.editing else ""
        if app.attached:
            text = said.attached if len(app.attached) == 1 else said.attached_files
            about = text.format(count=len(app.attached), names=names)
        composer.about = about

    def _draw_keys(self) -> None:
        app = self.around
        said, transcript = words(app.language), self.transcript
        self.query_one("#welcome").display = app.follower is None and self.size.height >= LOW
        runs = app.follower is not None and app.follower.state.running is not None
        first = [("Esc", said.stop, "screen.stop")] if runs and not app.editing else []
        if transcript.has_focus:
            first = [("↑ ↓", said.move, ""), ("Enter", said.fold, ""), ("c", said.copy, "")]
            first.append(("Esc", said.to_box, "screen.to_transcript"))
        self.query_one(KeysLine).put(first)

    @on(events.DescendantFocus)
    def _moved(self) -> None:
        self._draw_keys()

    # What comes by itself --------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self.draw()
        gates = [one for one in self.around.gates_here() if one.gate.id not in self._seen]
        if gates and self.is_active and not self.around.editing and self.composer.is_quiet(QUIET):
            self.open_gate(gates[0])

    def open_gate(self, asked: api.GateView) -> None:
        """Ask it."""
        from everturn.tui.gates.dialog import GateScreen

        self._seen.add(asked.gate.id)

        def done(_: bool | None) -> None:
            self._left = time.monotonic()
            if self.around.follower is not None:
                self.around.follower.look()
            self.composer.box.focus()

        self.around.push_screen(GateScreen(asked), done)

    @on(Transcript.AskedGate)
    def _asked(self, event: Transcript.AskedGate) -> None:
        found = next((one for one in self.around.gates_here() if one.gate.id == event.gate_id), None)
        if found is not None:
            self.open_gate(found)

    @on(Transcript.AskedRevert)
    def _asked_revert(self, event: Transcript.AskedRevert) -> None:
        if self.around.follower is not None:
            ask_revert(self.around, self.around.follower, event.files, before=True)

    @on(Transcript.Picked)
    def _picked(self, event: Transcript.Picked) -> None:
        self.around.picked = event.message_id

    @on(events.Click, "#ask")
    async def _clicked(self) -> None:
        await self.around.action_gate()

    # What a person does ----------------------------------------------------------------------------------------------

    @on(Box.Sent)
    async def _sent(self, event: Box.Sent) -> None:
        event.stop()
        await self.around.begun()
        await self.around.commands.said(event.text, event.steers)

    @on(Box.Dropped)
    async def _dropped(self, event: Box.Dropped) -> None:
        event.stop()
        await self.around.commands.attach(event.paths)

    @on(Box.EditLast)
    def _edit_last(self, event: Box.EditLast) -> None:
        event.stop()
        self.around.commands.edit_last()

    async def action_stop(self) -> None:
        """Leave an edit; or stop the turn, and with a second key its tools."""
        app = self.around
        if app.editing:
            app.commands.leave_edit()
            return
        if not self.composer.box.has_focus:
            self.composer.box.focus()
            return
        if time.monotonic() - self._left < LEFT:
            return  # an Esc too many, to leave a question, is not meant for the turn
        is_again = time.monotonic() - self._stopped < TWICE
        self._stopped = time.monotonic()
        await app.commands.stop(is_again)

    async def action_take_back(self) -> None:
        """Take the last message back that waits."""
        await self.around.commands.take_back()

    def action_scroll_up(self) -> None:
        """Scroll while composing."""
        self.transcript.scroll_page_up(animate=False)

    def action_scroll_down(self) -> None:
        """Scroll while composing."""
        self.transcript.scroll_page_down(animate=False)

    def action_scroll_end(self) -> None:
        """To what came last."""
        self.transcript.scroll_end(animate=False)

    def action_to_transcript(self) -> None:
        """From the box to the conversation, or back."""
        (self.composer.box if self.transcript.has_focus else self.transcript).focus()


def title_of(state: SessionState) -> str:
    """What a session is called: its title, or how it begins."""
    if state.tree.title:
        return state.tree.title
    first = next(iter(state.tree.messages.values()), None)
    return "" if first is None else " ".join(first.text[:80].split())
