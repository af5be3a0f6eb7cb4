"""Answer panels of the gate dialog: which rule to store, the reason of a denial, a manual result or a text answer."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from everturn.client.bodies import RemoteGateReply
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, Gate
from everturn.terminal.text.visible_text import count_invisible, escape_invisible
from everturn.terminal.tui.gates.keys import Checkbox, Key
from everturn.terminal.tui.gates.rows import Row, message_rows, text_rows
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.texts.gates import GateTexts

DURATIONS: Final = (("forever", 0), ("hour", 3600), ("day", 86_400), ("week", 604_800))


class Panel(Vertical):
    """Base of the panels: posts `Replied` with the answer, and `Wrong` with an error to show."""

    DEFAULT_CSS = """
    Panel { height: auto; border-top: solid $secondary 75%; padding: 0 1; }
    Panel Input, Panel Input:focus { border: none; padding: 0 1; height: 1; background: $panel; }
    Panel .panel-title { height: auto; text-style: bold; }
    Panel TextView { height: 6; }
    """
    IS_TALL: ClassVar[bool] = False  # whether the panel takes all the height that it can get

    class Replied(Message):
        """The answer."""

        def __init__(self, reply: RemoteGateReply) -> None:
            super().__init__()
            self.reply = reply

    class Wrong(Message):
        """An error of the input; "" clears it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class HeightChanged(Message):
        """The height of the panel has changed."""

    def __init__(self, gate: Gate, texts: GateTexts) -> None:
        super().__init__()
        self.gate, self.texts = gate, texts

    def on_resize(self) -> None:
        """Report it: the height left for the gate has changed."""
        self.post_message(self.HeightChanged())

    @property
    def wanted_height(self) -> int:
        """The number of lines that the panel needs; 0: as many as it can get."""
        return 0

    @property
    def keys(self) -> list[Key]:
        """The keys of this panel."""
        return []

    def press(self, key: str) -> None:
        """Handle a click on a key."""

    def begin(self) -> None:
        """Focus the first input."""


SCOPES: Final = ("here", "folder", "everywhere")
"""Where a rule holds: in this conversation, in the folder of the turn, or in all conversations."""


def describe_scope(reply: RemoteGateReply, gate: Gate, texts: GateTexts) -> str:
    """Where the rule of an answer holds, as text."""
    if not reply.get("everywhere"):
        return texts.here
    is_folder = reply.get("within") == "folder"
    return texts.in_folder.format(escape_invisible(gate.folder)) if is_folder else texts.everywhere


class AlwaysPanel(Panel):
    """Which rule to store, in which scope, and for how long."""

    DEFAULT_CSS = "AlwaysPanel { height: 1fr; }"
    IS_TALL = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"press('{key}')", show=False) for key in (*"123456789", "w", "t", "y")
    ]

    def __init__(self, gate: Gate, texts: GateTexts, is_owner: bool) -> None:
        super().__init__(gate, texts)
        self.chosen_offer, self.scope, self.chosen_duration = 0, SCOPES[0], 0
        self._refusal = texts.session_only if gate.session_only else "" if is_owner else texts.only_owners

    def compose(self) -> ComposeResult:
        """The rules, as they are stored."""
        yield ScrolledRows(id="offers")

    def begin(self) -> None:
        """Draw the rules, and focus them."""
        self._draw()
        self.query_one(ScrolledRows).focus()

    @property
    def wanted_height(self) -> int:
        """The rules, and the border above them."""
        rows = sum(len(rules.rows) for rules in self.query(ScrolledRows))  # none before it is composed
        return rows + 1 if rows else 0

    @property
    def keys(self) -> list[Key]:
        """A number for each rule."""
        texts, count = self.texts, len(self.gate.offers)
        numbers = [(str(number), texts.k_choose if number == 1 else "") for number in range(1, count + 1)][:9]
        where = [] if self._refusal else [("w", texts.k_where)]
        return [
            ("y", texts.k_store),
            *(numbers if count > 1 else []),
            *where,
            ("t", texts.k_long),
            ("escape", texts.k_back),
        ]

    def action_press(self, key: str) -> None:
        """Handle a key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Change the choice, or answer."""
        if key == "y":
            self.post_message(self.Replied(self.reply))
        elif key == "w":
            scopes = [scope for scope in SCOPES if scope != "folder" or self.gate.folder]
            self.scope = SCOPES[0] if self._refusal else scopes[(scopes.index(self.scope) + 1) % len(scopes)]
            self.post_message(self.Wrong(self._refusal))
        elif key == "t":
            self.chosen_duration = (self.chosen_duration + 1) % len(DURATIONS)
        elif key.isdecimal() and 1 <= int(key) <= len(self.gate.offers):
            self.chosen_offer = int(key) - 1
        self._draw()

    @property
    def reply(self) -> RemoteGateReply:
        """The answer with the chosen rule."""
        seconds = DURATIONS[self.chosen_duration][1]
        until = float(int(time.time()) + seconds) if seconds else 0.0
        reply = RemoteGateReply(
            allow=self.gate.offers[self.chosen_offer], everywhere=self.scope != SCOPES[0], until=until
        )
        if self.scope == "folder":
            reply["within"] = "folder"
        return reply

    @property
    def where(self) -> str:
        """The scope and duration of the rule, as text."""
        duration: str = getattr(self.texts, DURATIONS[self.chosen_duration][0])
        return f"{describe_scope(self.reply, self.gate, self.texts)}, {duration}"

    def _draw(self) -> None:
        self.query_one(ScrolledRows).set_rows(self._rows, is_new=False)

    def _rows(self, width: int) -> list[Row]:
        offers, texts = self.gate.offers, self.texts
        rows = list(message_rows(texts.always_one if len(offers) == 1 else texts.always_many, width, "head"))
        for index, offer in enumerate(offers):
            text = escape_invisible(str(offer))
            head = "" if len(offers) == 1 else f"{'●' if index == self.chosen_offer else '○'} {index + 1}"
            style = "good" if index == self.chosen_offer else "dim"
            rows += text_rows([text], width, head, 5 if head else 0, style, marks=count_invisible(str(offer)) > 0)
        rows += [(), *message_rows(f"→ {self.where}", width)]
        return rows + (list(message_rows(texts.loop_always, width, "dim")) if self.gate.kind == "loop" else [])


class DenyPanel(Panel):
    """The reason of a denial, and whether it applies to all open calls. Enter denies; ctrl+t also ends the turn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "others", show=False),
        Binding("ctrl+t", "deny_and_stop", show=False, priority=True),
    ]

    def __init__(self, gate: Gate, texts: GateTexts, *, is_for_all: bool, may_all: bool) -> None:
        super().__init__(gate, texts)
        self._is_for_all, self._may_all = is_for_all, may_all

    def compose(self) -> ComposeResult:
        """An input for the reason."""
        texts = self.texts
        yield Static(
            texts.reason_form if self.gate.kind in GATE_KINDS_OF_RUNNING_TOOL else texts.reason,
            classes="panel-title",
            markup=False,
        )
        yield Input(max_length=10_000)
        if self._may_all:
            yield Checkbox(texts.others, self._is_for_all)

    def begin(self) -> None:
        """Focus the input."""
        self.query_one(Input).focus()

    @property
    def keys(self) -> list[Key]:
        """Enter denies; it never approves."""
        texts = self.texts
        is_result = self.gate.kind == "result"  # the call has run: what can be refused is to send its result
        does, stop = (texts.k_withhold, texts.k_withhold_stop) if is_result else (texts.k_deny, texts.k_stop)
        others = [("ctrl+o", texts.k_others)] if self._may_all else []
        return [("enter", does.rstrip(" …")), ("ctrl+t", stop), *others, ("escape", texts.k_back)]

    def press(self, key: str) -> None:
        """Handle a click on a key."""
        if key == "enter":
            self._deny()
        elif key == "ctrl+o":
            self.action_others()
        elif key == "ctrl+t":
            self.action_deny_and_stop()

    def action_deny_and_stop(self) -> None:
        """Deny, and end the turn without another request."""
        self._deny(is_stop=True)

    def action_others(self) -> None:
        """Toggle: all open calls, or this one alone."""
        for box in self.query(Checkbox):
            box.action_turn()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: deny."""
        event.stop()
        self._deny()

    def _deny(self, is_stop: bool = False) -> None:
        reply = RemoteGateReply(deny=self.query_one(Input).value.strip() or True)
        if is_stop:
            reply["stop"] = True
        if any(box.value for box in self.query(Checkbox)):
            reply["others"] = True
        self.post_message(self.Replied(reply))


class TextPanel(Panel):
    """A manual result, or the answer to a question, as text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True),
        Binding("ctrl+o", "press('ctrl+o')", show=False, priority=True),
    ]

    @property
    def _is_result(self) -> bool:
        return self.gate.kind not in ("question", "limit", "form")

    def compose(self) -> ComposeResult:
        """A text area."""
        texts = self.texts
        yield Static(texts.hand_title if self._is_result else texts.answer, classes="panel-title", markup=False)
        yield TextView()
        if self._is_result:
            yield Checkbox(texts.failed)

    def begin(self) -> None:
        """Focus the text area."""
        self.query_one(TextView).focus()

    @property
    def keys(self) -> list[Key]:
        """Enter begins a new line; Ctrl-S submits."""
        texts = self.texts
        failed = [("ctrl+o", texts.k_failed)] if self._is_result else []
        return [("ctrl+s", texts.k_enter), *failed, ("escape", texts.k_back)]

    def action_press(self, key: str) -> None:
        """Handle a key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Submit the text, or toggle that the call failed."""
        if key == "ctrl+o":
            for box in self.query(Checkbox):
                box.action_turn()
        elif key == "ctrl+s":
            text = self.query_one(TextView).text
            if not text.strip():
                self.post_message(self.Wrong(self.texts.needs_text))
                return
            reply = RemoteGateReply(result=text)
            if any(box.value for box in self.query(Checkbox)):
                reply["failed"] = True
            self.post_message(self.Replied(reply))
