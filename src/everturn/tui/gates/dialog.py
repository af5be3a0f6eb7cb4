"""A gate → a dialog: all of it to be read, a key for each answer, and nothing that happens by mistake.

Keys count only after the dialog has stood for a moment, since whoever is asked may have been typing. Enter never allows.
What was not on the screen yet cannot be allowed; denied it can.
"""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from everturn import api
from everturn.client.words import Reply
from everturn.core.accounts import is_at_least
from everturn.core.canonical import parse, parse_object
from everturn.core.policy import Rule
from everturn.errors import EverturnError
from everturn.terminal.exact import seen
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.gates.asked import Asked, can_answer, result_rows, rows_of, title_of
from everturn.tui.gates.choosing import OVER, help_of, keys_of, lasting, trouble
from everturn.tui.gates.filling import FillPanel
from everturn.tui.gates.keys import Keys, Line
from everturn.tui.gates.panels import AlwaysPanel, DenyPanel, Panel, WordsPanel
from everturn.tui.gates.reviewing import Review, RewritePanel
from everturn.tui.gates.roll import Roll
from everturn.tui.gates.rows import Row
from everturn.tui.words.gates import words as words_in
from everturn.tui.words.talk import counted

STILL: Final = 0.5  # seconds that a question stands before a key counts
LOOK: Final = 0.5  # seconds between two looks at whether it is still asked
WIDE: Final = 120  # columns from which on what changes is shown side by side
LETTERS: Final = "yaneNrRuft"


class GateScreen(ClosingScreen[bool], ModalScreen[bool]):
    """One question. True: it was answered here; False: it was left, and waits, or somebody else was faster."""

    DEFAULT_CSS = """
    GateScreen { align: center middle; background: $background 60%; }
    GateScreen #dialog { width: 100%; max-width: 164; height: 100%; margin: 0 2; background: $surface; border: round $warning; border-title-style: bold; border-title-color: $text-warning; border-subtitle-color: $text-muted; }
    GateScreen.-result #dialog, GateScreen.-ask #dialog { border: round $accent; border-title-color: $text-accent; }
    GateScreen.-narrow #dialog { margin: 0; }
    GateScreen Roll { padding: 0 0 0 1; }
    GateScreen #more { height: 1; padding: 0 1; color: $text-muted; text-align: right; display: none; }
    GateScreen #problem { height: auto; padding: 0 1; color: $text-error; text-style: bold; display: none; }
    GateScreen #note { height: auto; padding: 0 1; color: $text-muted; display: none; }
    GateScreen Keys { margin: 1 0 0 0; }
    GateScreen.-short Keys { margin: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in LETTERS),
        Binding("question_mark", "press('?')", show=False),
        Binding("escape", "press('escape')", show=False),
        Binding("ctrl+z", "press('u')", show=False),
    ]

    def __init__(self, asked: api.GateView) -> None:
        super().__init__()
        self.asked = Asked(asked)
        self._since = time.monotonic()
        self._is_sending = self._is_helping = self._was_waiting = self._is_over = False

    def compose(self) -> ComposeResult:
        """What is asked, what is wrong, and the keys."""
        gate = self.asked.gate
        self.words = words_in(host(self).language)
        self.set_class(gate.kind == "result", "-result")
        self.set_class(gate.kind in ("question", "form"), "-ask")
        with Vertical(id="dialog"):
            yield Roll(id="body")
            if gate.output is not None:
                yield Review(gate.output.text, self.words)
            yield Line(id="more", markup=False)
            yield Line(id="problem", markup=False)
            yield Line(id="note", markup=False)
            yield Keys(id="keys")

    def on_mount(self) -> None:
        """Draw it, and go on looking whether it is still asked."""
        follower = host(self).follower
        self.asked = self._with(here=follower.id if follower is not None else "", is_wide=self.size.width >= WIDE)
        self.query_one("#dialog").border_title = Content(title_of(self.asked.gate, self.words))
        self._draw(is_new=True)
        self._begin()
        self.set_interval(LOOK, self.refresh_waits)
        self.run_worker(self._know_tool(), group="tool")
        self.refresh_waits()

    def on_screen_resume(self) -> None:
        """It is seen again: what was pressed before was meant for something else."""
        self._since = time.monotonic()

    def on_resize(self) -> None:
        """Fit it in."""
        size = self.size
        self.set_class(size.width < 60, "-narrow")
        self.set_class(size.height < 20, "-short")
        self.asked = self._with(is_wide=size.width >= WIDE)
        self.call_after_refresh(self._fit)

    # What is shown -------------------------------------------------------------------------------------------------

    @property
    def panel(self) -> Panel | None:
        """What is being said, if anything is."""
        return next(iter(self.query(Panel)), None)

    @property
    def review(self) -> Review | None:
        """The result, if one is asked about."""
        return next(iter(self.query(Review)), None)

    @property
    def may_answer(self) -> bool:
        """Whether this is for us to answer."""
        return can_answer(host(self).me.role, self.asked.gate)

    def _with(self, **changes: object) -> Asked:
        from msgspec.structs import replace

        return replace(self.asked, **changes)

    def _rows(self, width: int) -> list[Row]:
        rows = rows_of(self.asked, self.words, width)
        if self.asked.gate.kind == "result":
            rows += [(), *result_rows(self.asked, self.words, width)]
        return rows

    def _draw(self, *, is_new: bool) -> None:
        self.query_one("#body", Roll).lay(self._rows, is_new=is_new)
        self._offer()
        self.call_after_refresh(self._fit)

    def _offer(self) -> None:
        panel, words = self.panel, self.words
        keys = panel.keys if panel else keys_of(self.asked, words, may_answer=self.may_answer)
        self.query_one(Keys).offer(keys)
        is_for_member = self.asked.gate.kind in ("form", "client")
        note = "" if self.may_answer else words.cannot_member if is_for_member else words.cannot
        if self._is_helping and not panel:
            about = [f"{key:<5}  {does}" for key, does in help_of(self.asked.gate, keys, words)]
            note = "\n".join(about if self.has_class("-short") else ["", *about])
        self._say("#note", note)

    def _fit(self) -> None:
        """As tall as it has to be, and no taller than the screen."""
        if not self.is_attached or not self.query("#body"):  # while it is taken away, its parts go first
            return
        body, dialog, room = self.query_one("#body", Roll), self.query_one("#dialog"), self.size.height
        panel, review = self.panel, self.review
        lines = sum(one.outer_size.height for one in self.query("#more, #problem, #note, #keys") if one.display)
        is_tall = (panel is not None and panel.IS_TALL) or (panel is None and review is not None)
        beside = 0 if panel is None else panel.outer_size.height
        rows, fixed = max(len(body.rows), 1), lines + 3  # the border, and a blank line above the keys
        if is_tall:
            wanted = (panel.wanted if panel is not None else review.wanted if review is not None else 0) or room
            # What is asked has all its room if the rest still has what it wants; a third of the screen in any case.
            body.styles.height = min(rows, max(room // 3, 2, room - fixed - wanted))
            dialog.styles.height = min(room, max(rows + fixed + wanted, 8))
        else:
            body.styles.height = "1fr"
            dialog.styles.height = min(room, max(rows + fixed + beside, 8))
        if review is not None:
            review.display = panel is None
        body.display = panel is None or room >= 20

    def on_line_resized(self) -> None:
        """The keys take another line, say: what was measured before is not so any more."""
        self.call_after_refresh(self._fit)

    def on_panel_resized(self) -> None:
        """The same for what is being said."""
        self.call_after_refresh(self._fit)

    def _say(self, where: str, text: str) -> None:
        line = self.query_one(where, Line)
        line.update(Content(text))
        line.display = bool(text)
        self.call_after_refresh(self._fit)

    def tell(self, problem: str) -> None:
        """Say what is wrong, on a line that stays until the next key; "": nothing is."""
        self._say("#problem", f"! {problem}" if problem else "")

    def on_roll_moved(self) -> None:
        """Say how much is below."""
        body, review = self.query_one("#body", Roll), self.review
        below = body.below + (review.below if review is not None and review.display else 0)
        if body.display:
            self._say("#more", counted(self.words.more, below) if below else "")

    def on_review_moved(self) -> None:
        """The same for a result; and what was taken out of it is said."""
        review = self.review
        if review is not None and (review.made.before is not None) != (self.asked.text is not None):
            self.asked = self._with(text=review.made.left if review.made.before is not None else None)
            self._draw(is_new=False)
        elif review is not None and review.made.before is not None:
            self.asked = self._with(text=review.made.left)
        self.on_roll_moved()

    async def _know_tool(self) -> None:
        """Where the tool is from, and what it takes; it is asked for, and not waited for."""
        view, server = self.asked.view, host(self).server
        try:
            tools = await server.tools()
            session = await server.session(view.session).info()
        except EverturnError:
            return
        tool = next((one for one in tools if one.name == view.gate.tool), None)
        self.asked = self._with(tool=tool, is_known=True, is_below=bool(session.above))
        self._draw(is_new=False)

    # What is pressed -----------------------------------------------------------------------------------------------

    @property
    def is_steady(self) -> bool:
        """Whether it has stood for long enough to be answered."""
        return time.monotonic() - self._since >= STILL

    def action_press(self, key: str) -> None:
        """A key, or a click on one."""
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
        elif self.is_steady and key in dict(keys_of(self.asked, self.words, may_answer=self.may_answer)):
            self.tell("")
            self._act(key)

    def _leave(self) -> None:
        if self.panel is not None:
            self.run_worker(self._close(), exclusive=True, group="panel")
        elif self._is_helping:
            self._is_helping = False
            self._offer()
        else:
            self._end(False)

    def _act(self, key: str) -> None:
        gate, words, review = self.asked.gate, self.words, self.review
        if key in "ya" and (unread := self._unread()):
            self.tell(counted(words.unread, unread))
        elif key == "y":
            self._answer(self._yes())
        elif key == "a":
            self._open(AlwaysPanel(gate, words, is_at_least(host(self).me.role, "owner")))
        elif key in "nN":
            may_all = is_at_least(host(self).me.role, "approver") and gate.kind not in (
                "result",
                "question",
                "form",
                "client",
            )
            self._open(DenyPanel(gate, words, is_for_all=key == "N", may_all=may_all))
        elif review is not None and key in "rR":
            if not review.take_out(key == "R"):
                self.tell(words.select_first)
        elif key == "u":
            self._undo()
        elif key in "rt":
            self._open(WordsPanel(gate, words))
        elif key == "e" and review is not None:
            self._open(RewritePanel(gate, words, review.made))
        elif key in "ef":
            self._open(self._form())

    def _unread(self) -> int:
        body, review = self.query_one("#body", Roll), self.review
        return (0 if body.is_read else body.below) + (review.below if review is not None and not review.is_read else 0)

    def _yes(self) -> Reply:
        gate, edited = self.asked.gate, self.asked.edited
        if gate.kind == "form" and gate.form:
            return Reply(result=edited)
        if self.asked.text is not None:
            return Reply(allow="once", text=self.asked.text)
        return Reply(allow="once", arguments=parse_object(edited)) if edited else Reply(allow="once")

    def _undo(self) -> None:
        if self.review is not None:
            self.review.undo()
        else:
            self._change("")

    def _form(self) -> FillPanel:
        gate, edited, words = self.asked.gate, self.asked.edited, self.words
        if gate.kind == "form":
            from msgspec import UNSET

            return FillPanel(gate, words, parse_object(gate.form), parse(edited) if edited else UNSET, is_edit=False)
        given = parse_object(edited or gate.arguments)
        schema = self.asked.tool.schema if self.asked.tool is not None else None
        return FillPanel(gate, words, schema, given if given is not None else {}, is_edit=True)

    def _change(self, edited: str) -> None:
        """Show it again, with what they want instead."""
        is_same = parse_object(edited) == parse_object(self.asked.gate.arguments)
        self.asked = self._with(edited="" if is_same else edited)
        self._since = time.monotonic()
        self._draw(is_new=True)

    # What is said --------------------------------------------------------------------------------------------------

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
        self.tell("")
        self._offer()
        self._fit()
        self._begin()

    def _begin(self) -> None:
        review = self.review
        (review.page if review is not None else self.query_one("#body", Roll)).focus()

    def on_panel_said(self, event: Panel.Said) -> None:
        """Answer so."""
        event.stop()
        self._answer(event.reply)

    def on_panel_wrong(self, event: Panel.Wrong) -> None:
        """Say it, and which keys there are now."""
        event.stop()
        self.tell(event.text)
        self._offer()

    async def on_fill_panel_filled(self, event: FillPanel.Filled) -> None:
        """Show it again before anything is sent."""
        event.stop()
        await self._close()
        self._change(event.text)

    async def on_rewrite_panel_written(self, event: RewritePanel.Written) -> None:
        """The same for a result."""
        event.stop()
        await self._close()
        if self.review is not None:
            self.review.write(event.text)

    def _answer(self, reply: Reply) -> None:
        if self._is_sending or self._is_over:
            return
        self._is_sending = True
        self._say("#note", self.words.sending)
        self.run_worker(self._send(reply), exclusive=True, group="answer")

    async def _send(self, reply: Reply) -> None:
        try:
            await host(self).server.answer(self.asked.view, **reply)
        except EverturnError as error:
            self._is_sending = False
            self._offer()
            if isinstance(error, OVER):
                host(self).tell(trouble(error, self.words), "warning")
                self._end(False)
            else:
                self.tell(trouble(error, self.words))
            return
        if isinstance(rule := reply.get("allow"), Rule):
            where = self.words.everywhere if reply.get("everywhere") else self.words.here
            host(self).tell(self.words.stored.format(where, seen(str(rule))))
        self._end(True)

    def _end(self, is_answered: bool) -> None:
        if not self._is_over:
            self._is_over = True
            self.dismiss(is_answered)

    # What happens meanwhile ----------------------------------------------------------------------------------------

    def refresh_waits(self) -> None:
        """See whether it is still asked, and how long for."""
        if self._is_over or not self.is_attached:
            return
        gate = self.asked.gate
        expires = gate.expires - time.time()
        left = lasting(expires, self.words)
        subtitle = "" if not gate.expires else self.words.left.format(left) if expires > 0 else self.words.expired
        self.query_one("#dialog").border_subtitle = Content(subtitle)
        is_waiting = any(one.gate.id == gate.id for one in host(self).waits)
        self._was_waiting = self._was_waiting or is_waiting
        by = self._answered_by()
        if not self._is_sending and (by is not None or (self._was_waiting and not is_waiting)):
            self._gone(by)

    def _answered_by(self) -> str | None:
        """Who has answered, as the session tells it: "" if nobody, and yet it is not asked; None: it still is."""
        follower, gate = host(self).follower, self.asked.gate
        turn = follower.state.turns.get(gate.turn) if follower is not None else None
        if turn is None or gate.id not in turn.asked or turn.is_asked(gate.id):
            return None
        verdict = turn.gates[gate.id]
        return verdict.by if verdict is not None else ""

    def _gone(self, by: str | None) -> None:
        gate, words = self.asked.gate, self.words
        if gate.expires and gate.expires <= time.time() + 1 and by in (None, "", "everturn"):
            text = words.gate_expired
        else:
            text = (
                words.answered_by.format(seen(by))
                if by
                else words.answered_otherwise
                if by is None
                else words.unknown_gate
            )
        host(self).tell(f"{title_of(gate, words)}: {text}", "warning")
        self._end(False)
