"""What takes more than a key to say: which rule is stored, why not, what came of it."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from everturn.client.words import Reply
from everturn.core.asking import WITHIN, Gate
from everturn.terminal.exact import hidden, seen
from everturn.tui.gates.keys import Key, Tick
from everturn.tui.gates.page import Page
from everturn.tui.gates.roll import Roll
from everturn.tui.gates.rows import Row, say, write
from everturn.tui.words.gates import GateWords

LASTING: Final = (("forever", 0), ("hour", 3600), ("day", 86_400), ("week", 604_800))


class Panel(Vertical):
    """Something to be said; `Said` when it is, and the screen may be told of what is `wrong` with it."""

    DEFAULT_CSS = """
    Panel { height: auto; border-top: solid $panel-lighten-2; padding: 0 1; }
    Panel Input, Panel Input:focus { border: none; padding: 0 1; height: 1; background: $panel; }
    Panel .panel-title { height: auto; text-style: bold; }
    Panel Page { height: 6; }
    """
    IS_TALL: ClassVar[bool] = False  # whether it takes all the room it can have

    class Said(Message):
        """The answer."""

        def __init__(self, reply: Reply) -> None:
            super().__init__()
            self.reply = reply

    class Wrong(Message):
        """Why it cannot be said so; "": nothing is wrong any more."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Resized(Message):
        """It is taller now, or less tall."""

    def __init__(self, gate: Gate, words: GateWords) -> None:
        super().__init__()
        self.gate, self.words = gate, words

    def on_resize(self) -> None:
        """Say so: there is less room for what is asked, or more."""
        self.post_message(self.Resized())

    @property
    def wanted(self) -> int:
        """How many lines it needs; 0: as many as it can have."""
        return 0

    @property
    def keys(self) -> list[Key]:
        """What can be pressed here."""
        return []

    def press(self, key: str) -> None:
        """The same as the key, by a click."""

    def begin(self) -> None:
        """Take the focus to where one begins."""


class AlwaysPanel(Panel):
    """Which rule is stored, where, and for how long."""

    DEFAULT_CSS = "AlwaysPanel { height: 1fr; }"
    IS_TALL = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"press('{key}')", show=False) for key in (*"123456789", "w", "t", "y")
    ]

    def __init__(self, gate: Gate, words: GateWords, is_owner: bool) -> None:
        super().__init__(gate, words)
        self.at, self.is_everywhere, self.lasting = 0, False, 0
        self._refusal = words.session_only if gate.session_only else "" if is_owner else words.only_owners

    def compose(self) -> ComposeResult:
        """The rules, as they are stored."""
        yield Roll(id="offers")

    def begin(self) -> None:
        """Keys come here."""
        self._draw()
        self.query_one(Roll).focus()

    @property
    def wanted(self) -> int:
        """The rules, and the line above them."""
        rows = len(self.query_one(Roll).rows)
        return rows + 1 if rows else 0

    @property
    def keys(self) -> list[Key]:
        """A number for each rule."""
        words, count = self.words, len(self.gate.offers)
        numbers = [(str(number), words.k_choose if number == 1 else "") for number in range(1, count + 1)][:9]
        where = [] if self._refusal else [("w", words.k_where)]
        return [
            ("y", words.k_store),
            *(numbers if count > 1 else []),
            *where,
            ("t", words.k_long),
            ("escape", words.k_back),
        ]

    def action_press(self, key: str) -> None:
        """A key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Choose, or say it."""
        if key == "y":
            self.post_message(self.Said(self.reply))
        elif key == "w":
            self.is_everywhere = not self._refusal and not self.is_everywhere
            self.post_message(self.Wrong(self._refusal))
        elif key == "t":
            self.lasting = (self.lasting + 1) % len(LASTING)
        elif key.isdecimal() and 1 <= int(key) <= len(self.gate.offers):
            self.at = int(key) - 1
        self._draw()

    @property
    def reply(self) -> Reply:
        """What is chosen."""
        seconds = LASTING[self.lasting][1]
        until = float(int(time.time()) + seconds) if seconds else 0.0
        return Reply(allow=self.gate.offers[self.at], everywhere=self.is_everywhere, until=until)

    @property
    def where(self) -> str:
        """Where and how long it holds, in words."""
        long: str = getattr(self.words, LASTING[self.lasting][0])
        return f"{self.words.everywhere if self.is_everywhere else self.words.here}, {long}"

    def _draw(self) -> None:
        self.query_one(Roll).lay(self._rows, is_new=False)

    def _rows(self, width: int) -> list[Row]:
        offers, words = self.gate.offers, self.words
        rows = list(say(words.always_one if len(offers) == 1 else words.always_many, width, "head"))
        for at, offer in enumerate(offers):
            text = seen(str(offer))
            head = "" if len(offers) == 1 else f"{'●' if at == self.at else '○'} {at + 1}"
            style = "good" if at == self.at else "dim"
            rows += write([text], width, head, 5 if head else 0, style, marks=hidden(str(offer)) > 0)
        rows += [(), *say(f"→ {self.where}", width)]
        return rows + (list(say(words.loop_always, width, "dim")) if self.gate.kind == "loop" else [])


class DenyPanel(Panel):
    """Why not, and whether that holds for all that is asked beside. Enter says it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+o", "others", show=False)]

    def __init__(self, gate: Gate, words: GateWords, *, is_for_all: bool, may_all: bool) -> None:
        super().__init__(gate, words)
        self._is_for_all, self._may_all = is_for_all, may_all

    def compose(self) -> ComposeResult:
        """A line for the reason."""
        words = self.words
        yield Static(
            words.reason_form if self.gate.kind in WITHIN else words.reason, classes="panel-title", markup=False
        )
        yield Input(max_length=10_000)
        if self._may_all:
            yield Tick(words.others, self._is_for_all)

    def begin(self) -> None:
        """Type at once."""
        self.query_one(Input).focus()

    @property
    def keys(self) -> list[Key]:
        """Enter denies: it never allows."""
        words = self.words
        does = words.k_withhold if self.gate.kind == "result" else words.k_deny
        others = [("ctrl+o", words.k_others)] if self._may_all else []
        return [("enter", does.rstrip(" …")), *others, ("escape", words.k_back)]

    def press(self, key: str) -> None:
        """By a click."""
        if key == "enter":
            self._say()
        elif key == "ctrl+o":
            self.action_others()

    def action_others(self) -> None:
        """All others, or this one alone."""
        for box in self.query(Tick):
            box.action_turn()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self._say()

    def _say(self) -> None:
        reply = Reply(deny=self.query_one(Input).value.strip() or True)
        if any(box.value for box in self.query(Tick)):
            reply["others"] = True
        self.post_message(self.Said(reply))


class WordsPanel(Panel):
    """What came of it when somebody did it by hand, or the answer to a question, in words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True),
        Binding("ctrl+o", "press('ctrl+o')", show=False, priority=True),
    ]

    @property
    def _is_result(self) -> bool:
        return self.gate.kind not in ("question", "form")

    def compose(self) -> ComposeResult:
        """A page to write on."""
        words = self.words
        yield Static(words.hand_title if self._is_result else words.answer, classes="panel-title", markup=False)
        yield Page()
        if self._is_result:
            yield Tick(words.failed)

    def begin(self) -> None:
        """Type at once."""
        self.query_one(Page).focus()

    @property
    def keys(self) -> list[Key]:
        """Enter begins a line; Ctrl-S hands it in."""
        words = self.words
        failed = [("ctrl+o", words.k_failed)] if self._is_result else []
        return [("ctrl+s", words.k_enter), *failed, ("escape", words.k_back)]

    def action_press(self, key: str) -> None:
        """A key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Hand it in, or say that it did not work."""
        if key == "ctrl+o":
            for box in self.query(Tick):
                box.action_turn()
        elif key == "ctrl+s":
            text = self.query_one(Page).text
            if not text.strip():
                self.post_message(self.Wrong(self.words.needs_text))
                return
            reply = Reply(result=text)
            if any(box.value for box in self.query(Tick)):
                reply["failed"] = True
            self.post_message(self.Said(reply))
