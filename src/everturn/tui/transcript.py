"""The conversation as one widget: a roll of lines, a cursor over its blocks, and the end of it while it grows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from everturn.core.parts import FilesPart
from everturn.tui.base import host
from everturn.tui.drawing import looks
from everturn.tui.drawing.blocks import Block, Book
from everturn.tui.drawing.ink import Line, cut, plain, safe
from everturn.tui.drawing.roll import Place, Roll
from everturn.tui.state import SessionState
from everturn.tui.words.talk import TalkWords, words

IDLE_WORK: Final = 0.008  # seconds at a time in which what nobody sees yet is drawn
IDLE_BEAT: Final = 0.03
CURSOR: Final = "▌"


class Transcript(ScrollView, can_focus=True):
    """The conversation: a roll of blocks with a cursor over them."""

    DEFAULT_CSS = f"""
    Transcript {{
        background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
        scrollbar-background: $background; scrollbar-background-hover: $background; scrollbar-color: $panel;
        {looks.CSS}
    }}
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = looks.CLASSES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "block_up", "Block above", show=False),
        Binding("down", "block_down", "Block below", show=False),
        Binding("enter,space", "activate", "Fold, or answer"),
        Binding("c", "copy_block", "Copy"),
        Binding("C", "copy_message", "Copy the message", show=False),
        Binding("r", "revert", "Revert files", show=False),
        Binding("end,G", "scroll_end", "Newest", show=False),
    ]

    class Picked(Message):
        """A message, or a card in it, is pointed at."""

        def __init__(self, message_id: str) -> None:
            self.message_id = message_id
            super().__init__()

    class AskedGate(Message):
        """Somebody wants to answer a question."""

        def __init__(self, gate_id: str) -> None:
            self.gate_id = gate_id
            super().__init__()

    class AskedRevert(Message):
        """Somebody wants files to be what they were before a step."""

        def __init__(self, files: FilesPart) -> None:
            self.files = files
            super().__init__()

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.roll = Roll()
        self._state, self._leaf, self._book = SessionState(), None, Book()
        self._cursor = ""
        self._follow, self._has_new, self._is_placing = True, False, False
        self._styles: dict[str, Style] = {}
        self._look = 0  # how often colours have changed: strips of before are void

    # ------------------------------------------------------------------------------------------ what is shown

    def on_mount(self) -> None:
        """Keep what takes time up to date, and draw in idle moments what nobody has seen yet."""
        self.set_interval(1.0, self._tick)
        self._idle = self.set_interval(IDLE_BEAT, self._work, pause=True)

    def show(self, state: SessionState, leaf: str | None) -> None:
        """Show another session, or another branch of it."""
        contexts = {name: model.context for model in host(self).agents.models for name in (model.name, model.badge)}
        self._state, self._leaf, self._book = state, leaf, Book(contexts)
        self.roll = Roll(self._words)
        self.roll.rewrap(self._width)
        self._cursor, self._follow, self._has_new = "", True, False
        self._update()

    def changed(self, turns: set[str]) -> None:
        """These turns are not what they were."""
        self._book.touch(turns)
        self._update()

    @property
    def is_at_end(self) -> bool:
        """Whether what comes is seen as it comes."""
        return self._follow

    @property
    def picked(self) -> Block | None:
        """The block that is pointed at."""
        return next((block for block in self.roll.blocks if block.name == self._cursor), None)

    @property
    def text(self) -> str:
        """All lines, as text."""
        return "\n".join(plain(line) for at in range(len(self.roll.blocks)) for line in self.roll.rows(at))

    @property
    def _words(self) -> TalkWords:
        return words(host(self).language)

    # ---------------------------------------------------------------------------------------------- its place

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _room(self) -> int:
        return max(self.scrollable_content_region.height, 1)

    def _update(self) -> None:
        place = self.roll.place(self.scroll_offset.y)
        first = self.roll.take(self._book.blocks(self._state, self._leaf))
        if first is None or self._width <= 0:
            return
        self._has_new = self._has_new or not self._follow
        self._put(place, first)
        if not self.roll.is_drawn(first):
            self._idle.resume()

    def _put(self, place: Place, first: int = 0) -> None:
        """Draw what is seen, and stay where one was: at the end, or at the line that was on top.

        Above the `first` block nothing has changed, and where nothing has moved it is not shown again.
        """
        roll, top, is_guess = self.roll, 0, True
        while is_guess:
            last = max(roll.height - self._room, 0)
            top = last if self._follow else min(roll.find(place, self.scroll_offset.y), last)
            is_guess = roll.settle(top, top + self._room)
        self._is_placing, before = True, self.scroll_offset.y
        self._grow(Size(self._width, roll.height))
        if top != before:
            self.scroll_to(y=top, animate=False, force=True)
        self._is_placing = False
        above = max(roll.top(first) - top, 0) if top == before and roll.blocks else 0
        if above < self._room:
            self.refresh(Region(0, above, self.size.width, self._room - above))

    def _grow(self, size: Size) -> None:
        """Have another height. The bar is always there, so nothing around it moves: no layout, which costs the most."""
        if size != self.virtual_size:
            self.set_reactive(Transcript.virtual_size, size)  # pyright: ignore[reportArgumentType]
            self.vertical_scrollbar.window_virtual_size = size.height

    def _stay(self) -> None:
        self._put(self.roll.place(self.scroll_offset.y))

    def _work(self) -> None:
        place = self.roll.place(self.scroll_offset.y)
        if self.roll.work(time.perf_counter() + IDLE_WORK):
            self._idle.pause()
        self._put(place)

    def _tick(self) -> None:
        place = self.roll.place(self.scroll_offset.y)
        if self._width > 0 and self.roll.tick():
            self._put(place)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again what is seen; the rest when there is time."""
        if self._width <= 0:
            return
        place = self.roll.place(self.scroll_offset.y)
        if self._width != self.roll.width:
            self.roll.rewrap(self._width)
            self._idle.resume()
        self._put(place)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Whoever scrolls away from the end stays where they are."""
        super().watch_scroll_y(old_value, new_value)
        if self._is_placing or self._width <= 0:
            return
        top = round(new_value)
        self._follow = top >= self.max_scroll_y
        self._has_new = self._has_new and not self._follow
        if self.roll.settle(top, top + self._room):
            self.call_later(self._stay)

    def action_scroll_end(self) -> None:
        """Go to what came last, and stay there."""
        self._follow, self._has_new = True, False
        self._stay()

    # ------------------------------------------------------------------------------------------------ drawing

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._styles.clear()
        self._look += 1

    def _style(self, names: str) -> Style:
        style = self._styles.get(names)
        if style is None:
            style = self.rich_style
            for name in names.split():
                own = self.get_component_rich_style(f"transcript--{name}", partial=True)
                whole = self.get_component_rich_style(f"transcript--{name}")  # with what shines through
                style += own + Style(color=own.color and whole.color, bgcolor=own.bgcolor and whole.bgcolor)
            self._styles[names] = style
        return style

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        width, row = self.roll.width, self.scroll_offset.y + y  # as it was measured last: it is asked for often
        if self._has_new and not self._follow and y == self._room - 1:
            return self._hint(width)
        at = self.roll.at(row)
        if at is None:
            return Strip.blank(width, self.rich_style)
        drawn, inner = self.roll.drawn(at), row - self.roll.top(at) - self.roll.gap(at)
        line = drawn.lines[inner] if 0 <= inner < len(drawn.lines) else ()
        is_cursor = self.roll.blocks[at].name == self._cursor and inner >= 0 and self.has_focus
        if self.text_selection is not None:
            return self._strip(line, row, is_cursor, width)
        key = (inner, row, is_cursor, width, self._look)
        strip = drawn.kept.get(key)
        if not isinstance(strip, Strip):
            strip = drawn.kept[key] = self._strip(line, row, is_cursor, width)
        return strip

    def _strip(self, line: Line, row: int, is_cursor: bool, width: int) -> Strip:
        if is_cursor and line:
            (first, style), *rest = line
            line = ((CURSOR, "accent"), (first[1:], style), *rest)
        base = "cursor " if is_cursor else ""
        # Whatever was drawn is safe already. If some of it ever were not, it would end here.
        segments = [Segment(safe(text), self._style(base + style)) for text, style in line if text]
        strip = Strip(segments).adjust_cell_length(width, self._style(base))
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row)) is not None:
            strip = _marked(strip, span, self.screen.get_component_rich_style("screen--selection"))
        return strip.apply_offsets(0, row)

    def _hint(self, width: int) -> Strip:
        hint = Segment(cut(f" ↓ {self._words.new_below} ", width), self._style("hint"))
        left = Segment(" " * (max(width - hint.cell_length, 0) // 2), self.rich_style)
        return Strip([left, hint]).adjust_cell_length(width, self.rich_style)

    # ----------------------------------------------------------------------------------------------- pointing

    def _span(self) -> tuple[int, int]:
        """The lines of what is pointed at."""
        found = [at for at, block in enumerate(self.roll.blocks) if block.name == self._cursor]
        return (self.roll.top(found[0]), self.roll.top(found[-1] + 1)) if found else (-1, -1)

    def point(self, name: str) -> None:
        """Point at a block."""
        if name != self._cursor:
            self._cursor = name
            block = self.picked
            if block is not None and block.message:
                self.post_message(self.Picked(block.message))
        self.refresh()

    def action_block_up(self) -> None:
        """Point at the block above."""
        self._move(-1)

    def action_block_down(self) -> None:
        """Point at the block below."""
        self._move(1)

    def _move(self, by: int) -> None:
        names = list(dict.fromkeys(block.name for block in self.roll.blocks))
        top, end = self.scroll_offset.y, self.scroll_offset.y + self._room
        if not names or (self._cursor in names and self._read_on(by, top, end)):
            return
        if self._cursor in names:
            at = min(max(names.index(self._cursor) + by, 0), len(names) - 1)
        else:
            last = self.roll.at(min(end, self.roll.height) - 1)
            at = names.index(self.roll.blocks[last or 0].name)
        self.point(names[at])
        first, after = self._span()
        if first < top or after - first >= self._room:
            self.scroll_to(y=first if by > 0 else max(first, after - self._room), animate=False, force=True)
        elif after > end:
            self.scroll_to(y=after - self._room, animate=False, force=True)

    def _read_on(self, by: int, top: int, end: int) -> bool:
        """A block that is higher than the screen is read to its end before the next one is pointed at."""
        first, after = self._span()
        if by > 0 and first < end < after:
            self.scroll_to(y=min(top + self._room // 2, after - self._room), animate=False, force=True)
        elif by < 0 and first < top < after:
            self.scroll_to(y=max(top - self._room // 2, first), animate=False, force=True)
        else:
            return False
        return True

    def action_activate(self) -> None:
        """Answer the question of what is pointed at, or fold or unfold it."""
        block = self.picked
        if block is not None and block.gate:
            self.post_message(self.AskedGate(block.gate))
        elif block is not None and block.folds:
            self.toggle(block)

    def toggle(self, block: Block) -> None:
        """Fold a block that is open, or unfold it."""
        place = self.roll.place(self.scroll_offset.y)
        at = next((at for at, one in enumerate(self.roll.blocks) if one.id == block.id), None)
        if at is not None:
            self.roll.toggle(at)
            self._follow = False  # what was unfolded is read from its beginning
            self._put(place)
            self._follow = self.scroll_offset.y >= self.max_scroll_y

    def action_copy_block(self) -> None:
        """Copy what is pointed at."""
        if self.picked is not None:
            self._copy("\n".join(block.source for block in self.roll.blocks if block.name == self._cursor))

    def action_copy_message(self) -> None:
        """Copy the text of the whole message."""
        block = self.picked
        message = self._state.tree.messages.get(block.message) if block is not None else None
        if message is not None:
            self._copy(message.text)

    def _copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        host(self).tell(self._words.copied)

    def action_revert(self) -> None:
        """Ask for the files of a step to be what they were."""
        block = self.picked
        if block is not None and block.files is not None:
            self.post_message(self.AskedRevert(block.files))

    def on_click(self, event: events.Click) -> None:
        """Point at what was clicked; a click on its first line folds it, or opens its question."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == self._room - 1 and self._has_new:
            self.action_scroll_end()
        elif (at := self.roll.at(self.scroll_offset.y + offset.y)) is not None:
            block, inner = self.roll.blocks[at], self.scroll_offset.y + offset.y - self.roll.top(at) - self.roll.gap(at)
            self.point(block.name)
            if inner == 0 or (block.gate and inner > 0):
                self.action_activate()

    # ---------------------------------------------------------------------------------------------- selecting

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text between two places."""
        return selection.extract(self.text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected."""
        self.refresh()


def _marked(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    """A strip whose characters in a span have another style."""
    found, at = list[Segment](), 0
    for text, own, _ in strip:
        stop = len(text) if span[1] < 0 else min(max(span[1] - at, 0), len(text))
        begin = min(max(span[0] - at, 0), stop)
        pieces: Sequence[tuple[str, Style | None]] = (
            (text[:begin], own),
            (text[begin:stop], own + style if own else style),
            (text[stop:], own),
        )
        found += [Segment(piece, kind) for piece, kind in pieces if piece]
        at += len(text)
    return Strip(found, strip.cell_length)
