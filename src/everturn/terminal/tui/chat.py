"""Conversation screen: the transcript, the open gate, the input, and the status lines around them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from everturn import api
from everturn.localization import format_text
from everturn.terminal.text.screen import display_width, escape_prose
from everturn.terminal.tui.chat_host import ChatHost, get_chat_host
from everturn.terminal.tui.composer import Composer, ComposerInput
from everturn.terminal.tui.context import confirm_undo, warning_text
from everturn.terminal.tui.folder import describe_start, pending_question
from everturn.terminal.tui.folder_commands import output_rows
from everturn.terminal.tui.key_bar import KeyHintBar, KeyHints
from everturn.terminal.tui.revert import confirm_revert
from everturn.terminal.tui.sidebar import Sidebar
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.status import StatusLine, context_gauge, mode_label, running_line, status_line
from everturn.terminal.tui.texts.app import get_app_texts
from everturn.terminal.tui.texts.context import get_context_texts
from everturn.terminal.tui.texts.folder import get_folder_texts
from everturn.terminal.tui.transcript import Transcript

IDLE_BEFORE_GATE = 1.0  # seconds without a key before a gate opens by itself
ESCAPE_GRACE = 1.0  # seconds after a gate was left in which Esc is ignored
HARD_STOP_WINDOW = 2.0  # seconds in which a second Esc is a hard stop
TICK = 0.5  # seconds
MIN_SIZE = (40, 12)
MIN_TALL_HEIGHT = 20  # lines from which on optional parts are shown
MIN_CONVERSATION = 3  # lines of the title and the conversation that no dialog takes


class ChatScreen(Screen[None]):
    """Shows the session that the app follows."""

    DEFAULT_CSS = """
    ChatScreen #top { background: $surface; color: $foreground; }
    ChatScreen #main { width: 1fr; }
    ChatScreen Transcript { height: 1fr; }
    ChatScreen #queue { height: auto; max-height: 4; padding: 0 2; color: $text-muted; display: none; }
    ChatScreen #output { height: auto; max-height: 40%; margin: 0 1; padding: 0 1; border-left: outer $accent; display: none; }
    ChatScreen #ask { height: 1; padding: 0 2; background: $warning 20%; color: $foreground; display: none; }
    ChatScreen #ask:hover { background: $warning 35%; }
    ChatScreen #full { height: auto; max-height: 2; padding: 0 2; color: $text-warning; display: none; }
    ChatScreen #full:hover { text-style: underline; }
    ChatScreen #start { height: auto; max-height: 50%; padding: 1 2; display: none; }
    ChatScreen #welcome { height: auto; padding: 0 2; color: $text-muted; display: none; }
    ChatScreen.-low #welcome { display: none; }
    ChatScreen.-low #start { max-height: 3; padding: 0 2; }
    ChatScreen #small { display: none; padding: 1 2; }
    ChatScreen.small #body { display: none; }
    ChatScreen.small #small { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", show=False),
        Binding("pageup", "scroll_up", "scroll_up", show=False, priority=True),
        Binding("pagedown", "scroll_down", "scroll_down", show=False, priority=True),
        Binding("ctrl+end", "scroll_end", "scroll_end", show=False, priority=True),
        Binding("shift+tab", "mode", "mode", show=False, priority=True),
        Binding("ctrl+t", "take_back", "take_back", show=False),
        Binding("f6", "to_transcript", "to_transcript", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._last_escape = 0.0  # time of the last Esc
        self._gate_left_at = 0.0  # time at which a gate was left
        self._seen: set[str] = set()  # gates that do not open by themselves: they were open, or were left together
        self._unsent: deque[tuple[ComposerInput.Submitted, float]] = deque()  # what was submitted, and when
        self._has_unsent = asyncio.Event()
        self._own_command = ""  # the `!command` that runs
        self._dialog_rows = 0  # lines at the bottom that a dialog covers

    @property
    def host(self) -> ChatHost:
        """The app, as the host of the conversation."""
        return get_chat_host(self)

    def compose(self) -> ComposeResult:
        """Compose the sidebar and the conversation."""
        app, completion = self.host, self.host.commands.completion
        with Horizontal(id="body"):
            yield Sidebar()
            with Vertical(id="main"):
                yield StatusLine("top")
                yield Transcript()
                yield Static(id="start", markup=False)
                yield KeyHints(get_app_texts(app.language).welcome, id="welcome")
                yield Static(id="output", markup=False)
                yield Static(id="queue", markup=False)
                yield Static(id="full", markup=False)
                yield Static(id="ask", markup=False)
                yield Composer(completion.slash_commands, completion.values, completion.files)
                yield StatusLine("status")
                yield KeyHintBar()
        yield Static(Content(get_app_texts(app.language).small), id="small", markup=False)

    def on_mount(self) -> None:
        """Focus the input, and start the timer."""
        self.run_worker(self._send_submitted())
        self.composer.text_area.focus()
        self.host.call_later(self.host.handle_input_ready)  # after the focus, which is also set later
        self.set_interval(TICK, self._tick)
        self._draw()  # it counts as mounted only after this, and the first frame is to be complete

    @property
    def composer(self) -> Composer:
        """The input."""
        return self.query_one(Composer)

    @property
    def transcript(self) -> Transcript:
        """The conversation."""
        return self.query_one(Transcript)

    def refresh_texts(self) -> None:
        """Draw all texts again after a change of the language."""
        texts = get_app_texts(self.host.language)
        self.query_one("#small", Static).update(Content(texts.small))
        self.query_one(KeyHintBar).draw()
        self.query_one(Sidebar).refresh_texts()

    def on_resize(self, event: events.Resize) -> None:
        """Show a note instead where nothing would be readable."""
        side, was_small = self.query_one(Sidebar), self.has_class("small")
        is_small = event.size.width < MIN_SIZE[0] or event.size.height < MIN_SIZE[1]
        self.set_class(is_small, "small")
        had_side = side.display
        side.fit(event.size.width)
        if side.display and not had_side:
            self.call_after_refresh(self.host.draw)
        if was_small and not is_small:  # hidden widgets have lost the focus
            self.call_after_refresh(self.composer.text_area.focus)

    def make_room(self, rows: int) -> None:
        """Keep the last rows free for a dialog: the conversation ends above it."""
        self._dialog_rows = rows
        self._keep_room()

    def _keep_room(self) -> None:
        """Lift the end of the conversation above the dialog.

        The margin must not depend on where the conversation ends now: that follows from the margin.
        """
        transcript, main = self.transcript, self.query_one("#main")
        siblings = list(main.children)
        below = sum(widget.outer_size.height for widget in siblings[siblings.index(transcript) + 1 :] if widget.display)
        wanted = min(max(self._dialog_rows - below, 0), max(self.size.height - below - MIN_CONVERSATION, 0))
        if transcript.styles.margin.bottom != wanted:
            transcript.styles.margin = (0, 0, wanted, 0)

    # Drawing ---------------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw the lines around the conversation again."""
        # While the app closes, widgets are removed from the innermost on, and timers still fire.
        if self.is_mounted and self.app.is_running and self.query(ComposerInput):  # pyright: ignore[reportUnknownMemberType]
            self._draw()

    def _draw(self) -> None:
        app = self.host
        texts, state = get_app_texts(app.language), None if app.follower is None else app.follower.state
        title = texts.new if state is None else escape_prose(session_title(state)) or texts.new
        count = format_text(texts.waits, n=len(app.inbox_gates))
        waits = Content.styled(count, "$warning bold") if app.inbox_gates else Content()
        is_lost = app.follower is not None and app.follower.is_broken
        right = Content.styled(f"× {texts.lost}", "$error bold") if is_lost else running_line(state, texts)
        self.query_one("#top", StatusLine).put(Content.styled(title, "bold"), Content("  ").join([right, waits]))
        agent, model = app.current_agent_and_model()
        note = Content.styled(texts.in_memory, "$warning bold") if app.is_in_memory else Content(app.note)
        gauge = context_gauge(state, self.size.width)
        right = Content("  ").join([piece for piece in (gauge, note) if piece.plain])
        view = app.current_agent_view()
        place = view.folder if view is not None else ""
        running = None if state is None or state.running is None else state.running.options.mode or "ask"
        mode = mode_label(app.mode_to_send() or "ask", app.language, running) if view and place else Content()
        label = app.folder.label if app.folder is not None and app.folder.root == place else place
        left = Content("  ").join([piece for piece in (mode, status_line(state, label or agent, model)) if piece.plain])
        self.query_one("#status", StatusLine).put(left, right)
        self._draw_full(state)
        self._draw_output()
        self._draw_queue([] if state is None else state.queued_messages)
        self._draw_ask(app.gates_of_session())
        self._draw_composer()
        self._draw_start()
        self._draw_keys()
        if self._dialog_rows:  # lines below the conversation have come or gone
            self.call_after_refresh(self._keep_room)

    def show_own_command(self, command: str) -> None:
        """Show that a `!command` runs; "": it has ended."""
        self._own_command = command
        self.draw()

    def _draw_output(self) -> None:
        """Draw the outputs of `!commands` that go with the next message."""
        line = self.query_one("#output", Static)
        outputs = [part for part in self.host.contexts if part.kind == "output"]
        rows = [row for part in outputs for row in output_rows(part, self.host.language)]
        if self._own_command:
            rows.append(Content.styled(f"$ {escape_prose(self._own_command)} …", "$text-muted"))
        line.display = bool(rows)
        if rows:
            line.update(Content("\n").join(rows))

    def _draw_queue(self, queued: Sequence[api.QueuedView]) -> None:
        texts, line = get_app_texts(self.host.language), self.query_one("#queue", Static)
        now = time.monotonic()
        slow = [event.text for event, at in self._unsent if now - at >= TICK and event.text.strip()]
        slow = slow[1:] if self._own_command else slow  # it runs, and is shown as a command
        line.display = bool(queued or slow)
        rows = [
            texts.labelled.format(
                label=texts.steers if message.steers else texts.queued, text=" ".join(message.text.split())
            )
            for message in queued
        ]
        hint = f"   ({texts.take_back})" if len(rows) <= 3 else f"   (+{len(rows) - 3}; {texts.take_back})"
        sending = [texts.labelled.format(label=texts.sending, text=" ".join(text.split())) for text in slow]
        shown = [Content(escape_prose(row)) for row in (*sending, *rows[:3])]
        room = self.query_one("#main").size.width - 4
        if shown and not slow:  # the conversation has the whole text: a line of it is enough here
            shown[-1] = Content.assemble(shown[-1].truncate(room - display_width(hint), ellipsis=True), hint)
        if shown:  # only then: an update costs a layout of the whole screen
            line.update(Content("\n").join(row.truncate(room, ellipsis=True) for row in shown))

    def _draw_full(self, state: SessionState | None) -> None:
        line = self.query_one("#full", Static)
        text = warning_text(None if state is None else state.context, get_context_texts(self.host.language))
        if question := pending_question(state):
            text = getattr(get_folder_texts(self.host.language), question)
        line.display = bool(text)
        if text:
            line.update(Content(f"! {text}"))

    def _draw_ask(self, gates: Sequence[api.GateView]) -> None:
        texts, line = get_app_texts(self.host.language), self.query_one("#ask", Static)
        line.display = bool(gates)
        if gates:
            gate = gates[0].gate
            kinds = {"result": texts.reviews, "form": texts.questions, "question": texts.questions}
            text = kinds.get(gate.kind, texts.asks).format(name=escape_prose(gate.tool))
            more = f"  ({texts.more_asks.format(count=len(gates) - 1)})" if len(gates) > 1 else ""
            line.update(Content(f"? {text}{more}"))

    def _draw_composer(self) -> None:
        app, composer = self.host, self.composer
        texts = get_app_texts(app.language)
        composer.set_class(bool(app.editing), "editing")
        is_new, room = app.follower is None, composer.text_area.content_size.width
        placeholder = texts.write_new if is_new else texts.write
        if 0 < room <= display_width(placeholder):  # it would be cut without a sign
            placeholder = texts.write_new_short if is_new else texts.write_short
        composer.text_area.placeholder = placeholder
        names = ", ".join(file.part.name for file in app.attached)
        about = texts.editing if app.editing else ""
        if app.attached:
            about = format_text(texts.attached, n=len(app.attached), names=names)
        if app.contexts:
            outputs = get_folder_texts(app.language).goes_with.format(
                names=", ".join(part.title for part in app.contexts)
            )
            about = f"{about}  {outputs}" if about else outputs
        composer.about = about

    def _draw_start(self) -> None:
        app, start = self.host, self.query_one("#start", Static)
        start.display = False
        if app.folder is not None and app.follower is None:
            model, is_tall = app.current_agent_and_model()[1], self.size.height >= MIN_TALL_HEIGHT
            text = describe_start(app.folder, model, app.mode_to_send(), app.language, only_notes=not is_tall)
            start.display = bool(text.plain)
            start.update(text)

    def _draw_keys(self) -> None:
        app = self.host
        texts, transcript = get_app_texts(app.language), self.transcript
        welcome = self.query_one("#welcome", KeyHints)
        welcome.set_text(get_folder_texts(app.language).welcome if app.folder is not None else texts.welcome)
        welcome.display = app.follower is None and self.size.height >= MIN_TALL_HEIGHT
        runs = app.follower is not None and app.follower.state.running is not None
        first = [("Esc", texts.stop, "screen.stop")] if runs and not app.editing else []
        if transcript.has_focus:
            first = [("↑ ↓", texts.move, ""), ("Enter", texts.fold, ""), ("c", texts.copy, "")]
            first.append(("Esc", texts.to_box, "screen.to_transcript"))
        self.query_one(KeyHintBar).put(first)

    @on(events.DescendantFocus)
    def _moved(self) -> None:
        self._draw_keys()

    # Timers and messages ---------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self.draw()
        gates = [gate_view for gate_view in self.host.gates_of_session() if gate_view.gate.id not in self._seen]
        if gates and self.is_active and not self.host.editing and self.composer.is_idle(IDLE_BEFORE_GATE):
            self.open_gate(gates[0])

    def open_gate(self, gate_view: api.GateView) -> None:
        """Open the dialog of a gate."""
        from everturn.terminal.tui.gates.dialog import GateScreen

        self._seen.add(gate_view.gate.id)
        self._mark_shown_gate(gate_view.gate.id)
        screen = GateScreen(gate_view)

        def done(is_answered: bool | None) -> None:
            self._gate_left_at = time.monotonic()
            others = {other.gate.id for other in self.host.gates_of_session()} - {gate_view.gate.id}
            if screen.was_left:  # Esc leads back to the conversation, and not to the next of many gates
                self._seen |= others
            elif is_answered:  # who answers one goes on with the others
                self._seen -= others
            self._mark_shown_gate("")
            if self.host.follower is not None:
                self.host.follower.poll_now()
            self.composer.text_area.focus()

        self.host.push_screen(screen, done)

    def _mark_shown_gate(self, gate_id: str) -> None:
        """Let the card of a call say whether its question is on the screen."""
        if self.host.follower is not None:
            state = self.host.follower.state
            state.shown_gate = gate_id
            self.transcript.update_turns({name for name, turn in state.turns.items() if not turn.phase.is_terminal})

    @on(Transcript.ReachedTop)
    def _reached_top(self) -> None:
        if self.host.follower is not None:
            self.run_worker(self.host.follower.load_earlier(), exit_on_error=False)

    @on(Transcript.AskedGate)
    def _gate_opened(self, event: Transcript.AskedGate) -> None:
        match = next(
            (gate_view for gate_view in self.host.gates_of_session() if gate_view.gate.id == event.gate_id),
            None,
        )
        if match is not None:
            self.open_gate(match)

    @on(Transcript.AskedRevert)
    def _asked_revert(self, event: Transcript.AskedRevert) -> None:
        if self.host.follower is not None:
            confirm_revert(self.host, self.host.follower, event.files, before=True)

    @on(Transcript.AskedUndo)
    def _asked_undo(self, event: Transcript.AskedUndo) -> None:
        if self.host.follower is not None:
            confirm_undo(self.host, self.host.follower, event.message_id)

    @on(events.Click, "#full")
    async def _clicked_full(self) -> None:
        await self.host.action_context()

    @on(Transcript.Picked)
    def _picked(self, event: Transcript.Picked) -> None:
        self.host.picked = event.message_id

    @on(events.Click, "#ask")
    async def _clicked(self) -> None:
        await self.host.action_gate()

    # Actions ---------------------------------------------------------------------------------------------------------

    @on(ComposerInput.Submitted)
    def _submitted(self, event: ComposerInput.Submitted) -> None:
        event.stop()
        self._unsent.append((event, time.monotonic()))
        self._has_unsent.set()

    async def _send_submitted(self) -> None:
        """Send what was submitted, in order.

        Not in the handler of the message: a screen draws nothing while it handles one. With a slow server the text
        then stayed in the input, as if Enter had not been pressed.
        """
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            await self.host.wait_until_started()
            while self._unsent:
                event, _ = self._unsent[0]
                try:
                    await self.host.commands.submit(event.text, event.steers)
                finally:
                    self._unsent.popleft()
                    self.host.draw()

    @on(ComposerInput.Dropped)
    async def _dropped(self, event: ComposerInput.Dropped) -> None:
        event.stop()
        await self.host.commands.files.attach(event.paths)
        for path in event.paths if event.is_temporary else ():
            path.unlink(missing_ok=True)

    @on(ComposerInput.EditLast)
    def _edit_last(self, event: ComposerInput.EditLast) -> None:
        event.stop()
        self.host.commands.edit_last()

    async def action_stop(self) -> None:
        """Leave an edit; else cancel the turn, and with a second Esc its tools."""
        app = self.host
        if app.editing:
            app.commands.leave_edit()
            return
        if not self.composer.text_area.has_focus:
            self.composer.text_area.focus()
            return
        if time.monotonic() - self._gate_left_at < ESCAPE_GRACE:
            return  # a surplus Esc after leaving a gate is not meant for the turn
        is_again = time.monotonic() - self._last_escape < HARD_STOP_WINDOW
        self._last_escape = time.monotonic()
        await app.commands.stop(is_again)

    def action_mode(self) -> None:
        """Select the next permission mode."""
        self.host.cycle_mode()

    async def action_take_back(self) -> None:
        """Take back the last queued message, or the last thing that goes with the next one."""
        await self.host.commands.take_back()

    def action_scroll_up(self) -> None:
        """Scroll while composing."""
        self.transcript.scroll_page_up(animate=False)

    def action_scroll_down(self) -> None:
        """Scroll while composing."""
        self.transcript.scroll_page_down(animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the end."""
        self.transcript.scroll_end(animate=False)

    def action_to_transcript(self) -> None:
        """Move the focus from the input to the conversation, or back."""
        (self.composer.text_area if self.transcript.has_focus else self.transcript).focus()


def session_title(state: SessionState) -> str:
    """Return the title of a session, or the beginning of its first message."""
    if state.tree.title:
        return state.tree.title
    first = next(iter(state.tree.messages.values()), None)
    return "" if first is None else " ".join(first.text[:80].split())
