"""Two versions of a message, and what came of each, beside each other."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from everturn.core.messages import Message
from everturn.core.parts import TextPart, ToolPart
from everturn.core.tree import Tree
from everturn.terminal.screen import prose
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.keys import Hints
from everturn.tui.state import SessionState
from everturn.tui.words.around import words


def versioned(state: SessionState, picked: str = "") -> str:
    """The message that was picked, or the last one of the branch that has several versions; "" without any."""
    branch = [message.id for message in state.branch()]
    for at in [picked, *reversed(branch)]:
        if at in state.tree.messages and len(state.tree.versions(at)) > 1:
            return at
    return ""


def nearest_versions(tree: Tree, message: str) -> str:
    """The message itself, or the first one above it, that has several versions; "" without any."""
    at: str | None = message
    while at is not None and len(tree.versions(at)) < 2:
        at = tree.messages[at].parent
    return at or ""


def lines_of(tree: Tree, message: str, you: str = "you") -> list[str]:
    """What was said from a message on, to the end of its branch, as lines; `you` is what the person is called."""
    lines: list[str] = []
    at: str | None = message
    while at is not None:
        lines += [*([""] if lines else []), *_lines(tree.messages[at], you)]
        below = [one for one in tree.children.get(at, ()) if one not in tree.deleted]
        at = below[-1] if below else None
    return lines


def _lines(message: Message, you: str) -> list[str]:
    lines = [f"▌ {you if message.role == 'user' else message.by or message.role}"]
    for part in message.parts:
        if isinstance(part, TextPart):
            lines += part.text.splitlines()
        elif isinstance(part, ToolPart):
            lines.append(f"⚙ {part.name} {part.used or part.arguments} → {part.state}")
    return lines


def marked(left: list[str], right: list[str]) -> tuple[Content, Content]:
    """Both, with a mark in front of each line that the other does not have."""
    sides: tuple[list[Content], list[Content]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        is_same = kind == "equal"
        for side, lines, sign, style in ((0, left[a:b], "−", "$error"), (1, right[c:d], "+", "$success")):
            mark = ("  ", "") if is_same else (f"{sign} ", style)
            sides[side].extend(Content.assemble(mark, prose(line)) for line in lines)
    return Content("\n").join(sides[0]), Content("\n").join(sides[1])


class CompareScreen(ClosingScreen[None], ModalScreen[None]):
    """Two columns; the arrows choose the version on the right."""

    DEFAULT_CSS = """
    CompareScreen { align: center middle; }
    CompareScreen Horizontal { height: 1fr; }
    CompareScreen VerticalScroll { width: 1fr; padding: 0 1; border-left: solid $panel; }
    CompareScreen .head { color: $primary; text-style: bold; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("left", "other(-1)", "earlier", priority=True),
        Binding("right", "other(1)", "later", priority=True),
    ]

    def __init__(self, state: SessionState, message: str) -> None:
        super().__init__()
        self._tree = state.tree
        self._versions = state.tree.versions(message) if message else []
        self._left = self._versions.index(message) if message else 0
        self._right = self._left - 1 if self._left else min(1, len(self._versions) - 1)

    def compose(self) -> ComposeResult:
        """A title, two columns, the keys."""
        said = words(host(self).language)
        with Vertical(classes="pane wide"):
            yield Static(Content(said.compare), classes="title", markup=False)
            with Horizontal():
                for side in ("left", "right"):
                    with VerticalScroll():
                        yield Static(classes="head", id=f"{side}-head", markup=False)
                        yield Static(id=side, markup=False)
            yield Hints(said.compare_keys)

    def on_mount(self) -> None:
        """Show them."""
        self._draw()

    def _draw(self) -> None:
        said = words(host(self).language)
        if len(self._versions) < 2:
            self.query_one("#left", Static).update(Content(said.nothing_to_compare))
            return
        both = [self._versions[at] for at in (self._left, self._right)]
        drawn = marked(*(lines_of(self._tree, one, said.you) for one in both))
        for side, at, text in zip(("left", "right"), (self._left, self._right), drawn, strict=True):
            head = said.version.format(at=at + 1, of=len(self._versions))
            self.query_one(f"#{side}-head", Static).update(Content(head))
            self.query_one(f"#{side}", Static).update(text)

    def action_other(self, by: int) -> None:
        """Another version on the right; never the one that is on the left."""
        if len(self._versions) < 3:
            return
        self._right = (self._right + by) % len(self._versions)
        if self._right == self._left:
            self._right = (self._right + by) % len(self._versions)
        self._draw()
