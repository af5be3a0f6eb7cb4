"""Compare screen: two versions of a message, each with its continuation, side by side."""

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
from everturn.core.tree import MessageTree
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.render.text import line_text, wrap
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts.screens import get_screen_texts


def find_versioned(state: SessionState, picked: str = "") -> str:
    """Return the picked message, or the last one of the branch, that has several versions; "" if none has."""
    branch = [message.id for message in state.branch()]
    for candidate in [picked, *reversed(branch)]:
        if candidate in state.tree.messages and len(state.tree.versions(candidate)) > 1:
            return candidate
    return ""


def nearest_versioned(tree: MessageTree, message: str) -> str:
    """Return the message, or its nearest ancestor, that has several versions; "" if none has."""
    current: str | None = message
    while current is not None and len(tree.versions(current)) < 2:
        current = tree.messages[current].parent
    return current or ""


def branch_lines(tree: MessageTree, message: str, you: str = "you") -> list[str]:
    """Return the text from a message to the end of its branch, as lines; `you` is the label of the person."""
    lines: list[str] = []
    current: str | None = message
    while current is not None:
        lines += [*([""] if lines else []), *_lines(tree.messages[current], you)]
        children = [child for child in tree.children.get(current, ()) if child not in tree.deleted]
        current = children[-1] if children else None
    return lines


def _lines(message: Message, you: str) -> list[str]:
    lines = [f"▌ {you if message.role == 'user' else message.by or message.role}"]
    for part in message.parts:
        if isinstance(part, TextPart):
            lines += part.text.splitlines()
        elif isinstance(part, ToolPart):
            lines.append(f"⚙ {part.name} {part.used or part.arguments} → {part.state}")
    return lines


def mark_differences(left: list[str], right: list[str], width: int = 0) -> tuple[Content, Content]:
    """Return both texts, with a mark before each line that the other one does not have, wrapped to a width."""
    sides: tuple[list[Content], list[Content]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        is_same = kind == "equal"
        for side, lines, sign, style in ((0, left[a:b], "−", "$error"), (1, right[c:d], "+", "$success")):
            mark = ("  ", "") if is_same else (f"{sign} ", style)
            for line in map(escape_prose, lines):
                first, *others = [line_text(part) for part in wrap([(line, "")], width - 2)] if width else [line]
                sides[side].append(Content.assemble(mark, first))
                sides[side].extend(Content(f"  {part}") for part in others)
    return Content("\n").join(sides[0]), Content("\n").join(sides[1])


class CompareScreen(ClosingScreen[None], ModalScreen[None]):
    """Two columns; the arrow keys select the version on the right."""

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
        """A title, two columns, the key hints."""
        texts = get_screen_texts(get_host(self).language)
        with Vertical(classes="pane wide"):
            yield Static(Content(texts.compare), classes="title", markup=False)
            with Horizontal():
                for side in ("left", "right"):
                    with VerticalScroll():
                        yield Static(classes="head", id=f"{side}-head", markup=False)
                        yield Static(id=side, markup=False)
            yield KeyHints(texts.compare_keys)

    def on_mount(self) -> None:
        """Draw both versions."""
        self._draw()

    def on_resize(self) -> None:
        """Wrap them for the new width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        texts = get_screen_texts(get_host(self).language)
        if len(self._versions) < 2:
            self.query_one("#left", Static).update(Content(texts.nothing_to_compare))
            return
        both = [self._versions[index] for index in (self._left, self._right)]
        room = min(column.scrollable_content_region.width for column in self.query(VerticalScroll))
        drawn = mark_differences(*(branch_lines(self._tree, version, texts.you) for version in both), width=room)
        for side, index, text in zip(("left", "right"), (self._left, self._right), drawn, strict=True):
            head = texts.version.format(at=index + 1, of=len(self._versions))
            self.query_one(f"#{side}-head", Static).update(Content(head))
            self.query_one(f"#{side}", Static).update(text)

    def action_other(self, by: int) -> None:
        """Show another version on the right, never the one on the left."""
        if len(self._versions) < 3:
            return
        self._right = (self._right + by) % len(self._versions)
        if self._right == self._left:
            self._right = (self._right + by) % len(self._versions)
        self._draw()
