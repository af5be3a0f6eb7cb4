"""Gate dialog: shows a gate in full, with a key for each answer, and guards against accidental answers.

Keys count only after the dialog has been visible for a moment, since the person may have been typing. Enter never
approves. A gate can be approved only after all of it was on the screen; it can always be denied.
"""

from __future__ import annotations

import time
from typing import ClassVar, Final, Protocol, runtime_checkable

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from everturn import api
from everturn.client.bodies import RemoteGateReply
from everturn.core.canonical_json import parse_json, parse_object
from everturn.core.rules.policy import Rule
from everturn.core.tenants.accounts import is_at_least
from everturn.errors import EverturnError
from everturn.localization import format_text
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.gates.answer_keys import (
    GATE_CLOSED_ERRORS,
    describe_error,
    format_time_left,
    gate_key_help,
    keys_for_gate,
)
from everturn.terminal.tui.gates.form import FormPanel
from everturn.terminal.tui.gates.keys import KeyBar, WrappedText
from everturn.terminal.tui.gates.panels import AlwaysPanel, DenyPanel, Panel, TextPanel, describe_scope
from everturn.terminal.tui.gates.review import Review, RewritePanel
from everturn.terminal.tui.gates.rows import Row
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.summary import GateSummary, can_answer, gate_rows, gate_title, result_rows
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.texts.gates import get_gate_texts as words_in

KEY_GUARD_SECONDS: Final = 0.5  # seconds that the dialog is visible before a key counts
CHECK_INTERVAL: Final = 0.5  # seconds between two checks of whether the gate is still open
WIDE: Final = 120  # columns from which on diffs are side by side
MIN_ROOM: Final = 20  # lines of a screen from which on a part of the conversation stays visible above the dialog
CONVERSATION: Final = 6  # lines of that part: the title, and the end of the conversation with the card of the call
LETTERS: Final = "yaAneNrRuft"


@runtime_checkable
class ScreenWithRoom(Protocol):
    """A screen that can keep its last rows free for a dialog."""

    def make_room(self, rows: int) -> None:
        """Keep the last rows of the screen free."""
        ...


class GateScreen(ClosingScreen[bool], ModalScreen[bool]):
    """The dialog of one gate. True: it was answered here; False: it was left open, or answered elsewhere."""

    DEFAULT_CSS = """
    GateScreen { align: left bottom; background: transparent; }
    GateScreen #dialog { width: 100%; height: 100%; background: $surface; border: round $warning; border-title-style: bold; border-title-color: $text-warning; border-subtitle-color: $text-muted; }
    GateScreen.-result #dialog, GateScreen.-ask #dialog { border: round $accent; border-title-color: $text-accent; }
    GateScreen ScrolledRows { padding: 0 0 0 1; }
    GateScreen #more { height: 1; padding: 0 1; color: $text-muted; text-align: right; display: none; }
    GateScreen #problem { height: auto; padding: 0 1; color: $text-error; text-style: bold; display: none; }
    GateScreen #note { height: auto; padding: 0 1; color: $text-muted; display: none; }
    GateScreen KeyBar { margin: 1 0 0 0; }
    GateScreen.-short KeyBar { margin: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in LETTERS),
        Binding("question_mark", "press('?')", show=False),
        Binding("escape", "press('escape')", show=False),
        Binding("ctrl+z", "press('u')", show=False),
    ]

    def __init__(self, gate_view: api.GateView) -> None:
        super().__init__()
        self.summary = GateSummary(gate_view)
        self._visible_since = time.monotonic()
        self._is_sending = self._is_helping = self._was_open = self._is_over = False
        self.was_left = False  # the person pressed Esc: the gate stays open

    def compose(self) -> ComposeResult:
        """The gate, the error line, and the keys."""
        gate = self.summary.gate
        self.texts = words_in(get_host(self).language)
        self.set_class(gate.kind == "result", "-result")
        self.set_class(gate.kind in ("question", "limit", "form"), "-ask")
        with Vertical(id="dialog"):
            yield ScrolledRows(id="body")
            if gate.output is not None:
                yield Review(gate.output.text, self.texts)
            yield WrappedText(id="more", markup=False)
            yield WrappedText(id="problem", markup=False)
            yield WrappedText(id="note", markup=False)
            yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Draw the gate, and keep checking whether it is still open."""
        if not self.query("#body"):  # the app closes, and its children are removed first
            return
        follower = get_host(self).follower
        self.summary = self._with(
            here=follower.id if follower is not None else "",
            is_wide=self.size.width >= WIDE,
            has_others=self._has_others(),
        )
        self.query_one("#dialog").border_title = Content(gate_title(self.summary.gate, self.texts))
        self._draw(is_new=True)
        self._begin()
        self.set_interval(CHECK_INTERVAL, self.refresh_waits)
        self.run_worker(self._load_tool(), group="tool")
        self.refresh_waits()

    def on_screen_resume(self) -> None:
        """The dialog is visible again: keys pressed before were meant for something else."""
        self._visible_since = time.monotonic()

    def on_resize(self) -> None:
        """Draw the gate for the new size."""
        size = self.size
        self.set_class(size.height < 20, "-short")
        self.summary = self._with(is_wide=size.width >= WIDE)
        self.call_after_refresh(self._fit)

    # Drawing -------------------------------------------------------------------------------------------------------

    @property
    def panel(self) -> Panel | None:
        """The open panel, if there is one."""
        return next(iter(self.query(Panel)), None)

    @property
    def review(self) -> Review | None:
        """The review of a result, if the gate has one."""
        return next(iter(self.query(Review)), None)

    @property
    def may_answer(self) -> bool:
        """Whether this user may answer the gate."""
        return can_answer(get_host(self).me.role, self.summary.gate)

    def _with(self, **changes: object) -> GateSummary:
        from msgspec.structs import replace

        return replace(self.summary, **changes)

    def _rows(self, width: int) -> list[Row]:
        rows = gate_rows(self.summary, self.texts, width)
        if self.summary.gate.kind == "result":
            rows += [(), *result_rows(self.summary, self.texts, width)]
        return rows

    def _draw(self, *, is_new: bool) -> None:
        self.query_one("#body", ScrolledRows).set_rows(self._rows, is_new=is_new)
        self._offer()
        self.call_after_refresh(self._fit)

    def _offer(self) -> None:
        panel, texts = self.panel, self.texts
        keys = panel.keys if panel else keys_for_gate(self.summary, texts, may_answer=self.may_answer)
        self.query_one(KeyBar).offer(keys)
        is_for_member = self.summary.gate.kind in ("form", "client")
        note = "" if self.may_answer else texts.cannot_member if is_for_member else texts.cannot
        if self._is_helping and not panel:
            help_lines = [f"{key:<5}  {does}" for key, does in gate_key_help(self.summary.gate, keys, texts)]
            note = "\n".join(help_lines if self.has_class("-short") else ["", *help_lines])
        self._say("#note", note)

    def _fit(self) -> None:
        """Set the height: as tall as the content, at most the screen without the card that led to the gate.

        A panel or the help that the person has opened may take the whole screen.
        """
        if not self.is_attached or not self.query("#body"):  # its children are removed first while it closes
            return
        body, dialog, room = self.query_one("#body", ScrolledRows), self.query_one("#dialog"), self.size.height
        panel, review = self.panel, self.review
        is_opened = self._is_helping or (panel is not None and panel.IS_TALL)
        room -= CONVERSATION if room >= MIN_ROOM and not is_opened else 0
        lines = sum(
            widget.outer_size.height for widget in self.query("#more, #problem, #note, #keys") if widget.display
        )
        is_tall = (panel is not None and panel.IS_TALL) or (panel is None and review is not None)
        beside = 0 if panel is None else panel.outer_size.height
        rows, fixed = max(len(body.rows), 1), lines + 3  # the border, and a blank line above the keys
        if is_tall:
            wanted = (
                panel.wanted_height if panel is not None else review.wanted_height if review is not None else 0
            ) or room
            # The gate has its full height if the rest still fits; at least a third of the screen in any case.
            body.styles.height = min(rows, max(room // 3, 2, room - fixed - wanted))
            dialog.styles.height = min(room, max(rows + fixed + wanted, 8))
        else:
            body.styles.height = "1fr"
            dialog.styles.height = min(room, max(rows + fixed + beside, 8))
        if review is not None:
            review.display = panel is None
        body.display = panel is None or self.size.height >= MIN_ROOM
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Move the conversation up, so that its end, which led to this gate, is above the dialog."""
        if self.is_attached and not self._is_over and self.query("#dialog"):
            self._give_room(self.query_one("#dialog").outer_size.height)

    def _give_room(self, rows: int) -> None:
        for screen in self.app.screen_stack:  # pyright: ignore[reportUnknownMemberType]
            if isinstance(screen, ScreenWithRoom):
                screen.make_room(rows)

    def on_unmount(self) -> None:
        """The conversation has the whole screen again."""
        self._give_room(0)

    def on_wrapped_text_size_changed(self) -> None:
        """The height of the key bar or of a message has changed: measure again."""
        self.call_after_refresh(self._fit)

    def on_panel_height_changed(self) -> None:
        """The height of the panel has changed: measure again."""
        self.call_after_refresh(self._fit)

    def _say(self, where: str, text: str) -> None:
        line = self.query_one(where, WrappedText)
        line.update(Content(text))
        line.display = bool(text)
        self.call_after_refresh(self._fit)

    def show_error(self, problem: str) -> None:
        """Show an error that stays until the next key; "" clears it."""
        self._say("#problem", f"! {problem}" if problem else "")

    def on_scrolled_rows_position_changed(self) -> None:
        """Show how many lines are below."""
        body, review = self.query_one("#body", ScrolledRows), self.review
        below = body.rows_below + (review.below if review is not None and review.display else 0)
        if body.display:
            self._say("#more", format_text(self.texts.more, n=below) if below else "")

    def on_review_scrolled(self) -> None:
        """The result was scrolled or redacted: update the summary and the number of lines below."""
        review = self.review
        if review is not None and (review.made.before is not None) != (self.summary.text is not None):
            self.summary = self._with(text=review.made.remaining if review.made.before is not None else None)
            self._draw(is_new=False)
        elif review is not None and review.made.before is not None:
            self.summary = self._with(text=review.made.remaining)
        self.on_scrolled_rows_position_changed()

    async def _load_tool(self) -> None:
        """Request the origin and the schema of the tool; the dialog does not wait for them."""
        view, server = self.summary.view, get_host(self).server
        try:
            tools = await server.tools()
            session = await server.session(view.session).info()
        except EverturnError:
            return
        tool = next((offered for offered in tools if offered.name == view.gate.tool), None)
        self.summary = self._with(tool=tool, is_known=True, is_below=bool(session.parent))
        self._draw(is_new=False)

    # Keys ----------------------------------------------------------------------------------------------------------

    @property
    def accepts_keys(self) -> bool:
        """Whether the dialog has been visible for long enough to be answered."""
        return time.monotonic() - self._visible_since >= KEY_GUARD_SECONDS

    def action_press(self, key: str) -> None:
        """Handle a key, or a click on its hint."""
        if self._is_sending or self._is_over:
            return
        panel = self.panel
        if key == "escape":
            self._leave()
        elif panel is not None:
            panel.press(key)
        elif key == "?":
            self._is_helping = not self._is_helping
            self._offer()
        elif self.accepts_keys and key in dict(keys_for_gate(self.summary, self.texts, may_answer=self.may_answer)):
            self.show_error("")
            self._act(key)

    def _leave(self) -> None:
        if self.panel is not None:
            self.run_worker(self._close(), exclusive=True, group="panel")
        elif self._is_helping:
            self._is_helping = False
            self._offer()
        else:
            self.was_left = True
            self._end(False)

    def _act(self, key: str) -> None:
        gate, texts, review = self.summary.gate, self.texts, self.review
        if key in "yaA" and (unread := self._unread()):
            self.show_error(format_text(texts.unread, n=unread))
        elif key == "y":
            self._answer(self._yes())
        elif key == "A" and (rule := gate.offer_for_all) is not None:
            self._answer(RemoteGateReply(allow=rule))
        elif key == "a":
            self._open(AlwaysPanel(gate, texts, is_at_least(get_host(self).me.role, "owner")))
        elif key in "nN":
            is_approver = is_at_least(get_host(self).me.role, "approver")
            may_all = (
                is_approver
                and self.summary.has_others
                and gate.kind
                not in (
                    "result",
                    "question",
                    "limit",
                    "form",
                    "client",
                )
            )
            self._open(DenyPanel(gate, texts, is_for_all=key == "N", may_all=may_all))
        elif review is not None and key in "rR":
            if not review.cut_selection(key == "R"):
                self.show_error(texts.select_first)
        elif key == "u":
            self._undo()
        elif key in "rt":
            self._open(TextPanel(gate, texts))
        elif key == "e" and review is not None:
            self._open(RewritePanel(gate, texts, review.made))
        elif key in "ef":
            self._open(self._form())

    def _unread(self) -> int:
        body, review = self.query_one("#body", ScrolledRows), self.review
        return (0 if body.is_read else body.rows_below) + (
            review.below if review is not None and not review.is_read else 0
        )

    def _yes(self) -> RemoteGateReply:
        gate, edited = self.summary.gate, self.summary.edited
        if gate.kind == "form" and gate.form:
            return RemoteGateReply(result=edited)
        if self.summary.text is not None:
            return RemoteGateReply(allow="once", text=self.summary.text)
        return (
            RemoteGateReply(allow="once", arguments=parse_object(edited)) if edited else RemoteGateReply(allow="once")
        )

    def _undo(self) -> None:
        if self.review is not None:
            self.review.undo()
        else:
            self._change("")

    def _form(self) -> FormPanel:
        gate, edited, texts = self.summary.gate, self.summary.edited, self.texts
        if gate.kind == "form":
            from msgspec import UNSET

            return FormPanel(
                gate, texts, parse_object(gate.form), parse_json(edited) if edited else UNSET, is_edit=False
            )
        arguments = parse_object(edited or gate.arguments)
        schema = self.summary.tool.schema if self.summary.tool is not None else None
        return FormPanel(gate, texts, schema, arguments if arguments is not None else {}, is_edit=True)

    def _change(self, edited: str) -> None:
        """Show the gate again, with the edited arguments."""
        is_same = parse_object(edited) == parse_object(self.summary.gate.arguments)
        self.summary = self._with(edited="" if is_same else edited)
        self._visible_since = time.monotonic()
        self._draw(is_new=True)

    # Answers -------------------------------------------------------------------------------------------------------

    def _open(self, panel: Panel) -> None:
        self.run_worker(self._show(panel), exclusive=True, group="panel")

    async def _show(self, panel: Panel) -> None:
        await self.query(Panel).remove()
        await self.query_one("#dialog").mount(panel, before="#more")
        self._offer()
        self._fit()
        panel.begin()

    async def _close(self) -> None:
        await self.query(Panel).remove()
        self.show_error("")
        self._offer()
        self._fit()
        self._begin()

    def _begin(self) -> None:
        review = self.review
        (review.text_view if review is not None else self.query_one("#body", ScrolledRows)).focus()

    def on_panel_replied(self, event: Panel.Replied) -> None:
        """Send the answer of the panel."""
        event.stop()
        self._answer(event.reply)

    def on_panel_wrong(self, event: Panel.Wrong) -> None:
        """Show the error of the panel, and its current keys."""
        event.stop()
        self.show_error(event.text)
        self._offer()

    async def on_form_panel_filled(self, event: FormPanel.Filled) -> None:
        """Show the filled-in value again before it is sent."""
        event.stop()
        await self._close()
        self._change(event.text)

    async def on_rewrite_panel_written(self, event: RewritePanel.Written) -> None:
        """Show the rewritten result again before it is sent."""
        event.stop()
        await self._close()
        if self.review is not None:
            self.review.write(event.text)

    def _answer(self, reply: RemoteGateReply) -> None:
        if self._is_sending or self._is_over:
            return
        self._is_sending = True
        self._say("#note", self.texts.sending)
        self.run_worker(self._send(reply), exclusive=True, group="answer")

    async def _send(self, reply: RemoteGateReply) -> None:
        try:
            await get_host(self).server.answer(self.summary.view, **reply)
        except EverturnError as error:
            self._is_sending = False
            self._offer()
            if isinstance(error, GATE_CLOSED_ERRORS):
                get_host(self).show_message(describe_error(error, self.texts), "warning")
                self._end(False)
            else:
                self.show_error(describe_error(error, self.texts))
            return
        if isinstance(rule := reply.get("allow"), Rule):
            where = describe_scope(reply, self.summary.view.gate, self.texts)
            get_host(self).show_message(self.texts.stored.format(where, escape_invisible(str(rule))))
        self._end(True)

    def _end(self, is_answered: bool) -> None:
        if not self._is_over:
            self._is_over = True
            self.dismiss(is_answered)

    # Changes elsewhere ---------------------------------------------------------------------------------------------

    def refresh_waits(self) -> None:
        """Check whether the gate is still open, and for how long."""
        if self._is_over or not self.is_attached:
            return
        gate = self.summary.gate
        expires = gate.expires - time.time()
        time_left = format_time_left(expires, self.texts)
        subtitle = "" if not gate.expires else self.texts.left.format(time_left) if expires > 0 else self.texts.expired
        self.query_one("#dialog").border_subtitle = Content(subtitle)
        if self.summary.has_others != (has_others := self._has_others()):
            self.summary = self._with(has_others=has_others)
            self._offer()
        is_waiting = any(gate_view.gate.id == gate.id for gate_view in get_host(self).inbox_gates)
        self._was_open = self._was_open or is_waiting
        by = self._answered_by()
        if not self._is_sending and (by is not None or (self._was_open and not is_waiting)):
            self._close_answered(by)

    def _has_others(self) -> bool:
        """Whether other gates of the session are open, which one answer can deny, too."""
        view = self.summary.view
        open_gates = get_host(self).inbox_gates
        return any(other.session == view.session and other.gate.id != view.gate.id for other in open_gates)

    def _answered_by(self) -> str | None:
        """Return who has answered, by the events of the session: "" if the gate was closed without an answer; None if
        it is still open."""
        follower, gate = get_host(self).follower, self.summary.gate
        turn = follower.state.turns.get(gate.turn) if follower is not None else None
        if turn is None or gate.id not in turn.gate_details or turn.is_gate_open(gate.id):
            return None
        resolution = turn.gates[gate.id]
        return resolution.by if resolution is not None else ""

    def _close_answered(self, by: str | None) -> None:
        gate, texts = self.summary.gate, self.texts
        if gate.expires and gate.expires <= time.time() + 1 and by in (None, "", "everturn"):
            text = texts.gate_expired
        else:
            text = (
                texts.answered_by.format(escape_invisible(by))
                if by
                else texts.answered_otherwise
                if by is None
                else texts.unknown_gate
            )
        get_host(self).show_message(f"{gate_title(gate, texts)}: {text}", "warning")
        self._end(False)
