"""Transcript: the conversation as one widget: a virtual list of lines, a cursor over its blocks, and the end that
follows the stream."""

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
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.render import styles
from everturn.terminal.tui.render.blocks import Block, BlockList
from everturn.terminal.tui.render.text import Line, escape_text, line_text, truncate
from everturn.terminal.tui.render.virtual_list import ScrollAnchor, VirtualList
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts.chat import ChatTexts, get_chat_texts

IDLE_SLICE: Final = 0.008  # seconds per slice in which blocks outside of the screen are drawn
IDLE_INTERVAL: Final = 0.03
CURSOR: Final = "▌"


class Transcript(ScrollView, can_focus=True):
    """The conversation: a virtual list of blocks, with a cursor."""

    DEFAULT_CSS = f"""
    Transcript {{
        background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
        scrollbar-background: $background; scrollbar-background-hover: $background; scrollbar-color: $panel;
        {styles.CSS}
    }}
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = styles.CLASSES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "block_up", "Block above", show=False),
        Binding("down", "block_down", "Block below", show=False),
        Binding("enter,space", "activate", "Fold, or answer"),
        Binding("c", "copy_block", "Copy"),
        Binding("C", "copy_message", "Copy the message", show=False),
        Binding("r", "revert", "Revert files", show=False),
        Binding("u", "undo", "Undo a compaction", show=False),
        Binding("end,G", "scroll_end", "Newest", show=False),
    ]

    class Picked(Message):
        """The cursor is on a message, or on a card in it."""

        def __init__(self, message_id: str) -> None:
            self.message_id = message_id
            super().__init__()

    class AskedGate(Message):
        """The person wants to answer a gate."""

        def __init__(self, gate_id: str) -> None:
            self.gate_id = gate_id
            super().__init__()

    class AskedUndo(Message):
        """The person wants to undo a compaction."""

        def __init__(self, message_id: str) -> None:
            self.message_id = message_id
            super().__init__()

    class AskedRevert(Message):
        """The person wants to restore files as they were before a step."""

        def __init__(self, files: FilesPart) -> None:
            self.files = files
            super().__init__()

    class ReachedTop(Message):
        """The first loaded line is on the screen, and there are earlier turns to load."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.virtual_list = VirtualList()
        self._state, self._leaf, self._block_list = SessionState(), None, BlockList()
        self._cursor = ""
        self._follow, self._has_new, self._is_placing = True, False, False
        self._styles: dict[str, Style] = {}
        self._look = 0  # how often colours have changed: cached strips of earlier themes are invalid

    # ----------------------------------------------------------------------------------------------- content

    def on_mount(self) -> None:
        """Keep durations up to date, and draw blocks outside of the screen in idle moments."""
        self.set_interval(1.0, self._tick)
        self._idle = self.set_interval(IDLE_INTERVAL, self._work, pause=True)

    def show(self, state: SessionState, leaf: str | None) -> None:
        """Show another session, or another branch of it."""
        self._state, self._leaf, self._block_list = state, leaf, BlockList()
        self.virtual_list = VirtualList(self._words)
        self.virtual_list.rewrap(self._width)
        self._cursor, self._follow, self._has_new = "", True, False
        self._update()

    def update_turns(self, turns: set[str]) -> None:
        """Draw these turns again, which have changed."""
        self._block_list.touch(turns)
        self._update()

    @property
    def is_at_end(self) -> bool:
        """Whether the view follows new output."""
        return self._follow

    @property
    def picked(self) -> Block | None:
        """The block under the cursor."""
        return next((block for block in self.virtual_list.blocks if block.name == self._cursor), None)

    @property
    def text(self) -> str:
        """All lines, as text."""
        return "\n".join(
            line_text(line) for index in range(len(self.virtual_list.blocks)) for line in self.virtual_list.rows(index)
        )

    @property
    def _words(self) -> ChatTexts:
        return get_chat_texts(get_host(self).language)

    # --------------------------------------------------------------------------------------- scroll position

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _room(self) -> int:
        return max(self.scrollable_content_region.height, 1)

    def _update(self) -> None:
        place = self.virtual_list.anchor_at(self.scroll_offset.y)
        first = self.virtual_list.set_blocks(self._block_list.blocks(self._state, self._leaf))
        if first is None or self._width <= 0:
            return
        self._has_new = self._has_new or not self._follow
        self._put(place, first)
        if not self.virtual_list.is_drawn(first):
            self._idle.resume()

    def _put(self, place: ScrollAnchor, first: int = 0) -> None:
        """Draw the visible lines, and keep the scroll position: at the end, or at the line that was on top.

        Above the `first` block nothing has changed; those lines are redrawn only if they moved.
        """
        roll, top, is_guess = self.virtual_list, 0, True
        while is_guess:
            last = max(roll.height - self._room, 0)
            top = (
                self._top_of_end(last) if self._follow else min(roll.line_of_anchor(place, self.scroll_offset.y), last)
            )
            is_guess = roll.draw_range(top, top + self._room)
        self._is_placing, before = True, self.scroll_offset.y
        self._grow(Size(self._width, roll.height))
        if top != before:
            self.scroll_to(y=top, animate=False, force=True)
        self._is_placing = False
        self._ask_for_earlier(top)
        above = max(roll.top_of_block(first) - top, 0) if top == before and roll.blocks else 0
        if above < self._room:
            self.refresh(Region(0, above, self.size.width, self._room - above))

    def _top_of_end(self, last: int) -> int:
        """Return the first line of a view that follows the end: a card whose gate is on the screen stays in it."""
        gate = self._state.shown_gate
        blocks = enumerate(self.virtual_list.blocks) if gate else ()
        index = next((index for index, block in blocks if block.gate == gate), None)
        if index is None:
            return last
        return min(last, self.virtual_list.top_of_block(index) + self.virtual_list.gap_above(index))

    def _ask_for_earlier(self, top: int) -> None:
        if top <= 0 and self._state.start > 1:
            self.post_message(self.ReachedTop())

    def _grow(self, size: Size) -> None:
        """Change the virtual height. The scrollbar is always shown, so nothing around it moves: this avoids a layout,
        the most expensive part."""
        if size != self.virtual_size:
            self.set_reactive(Transcript.virtual_size, size)  # pyright: ignore[reportArgumentType]
            self.vertical_scrollbar.window_virtual_size = size.height

    def _stay(self) -> None:
        self._put(self.virtual_list.anchor_at(self.scroll_offset.y))

    def _work(self) -> None:
        place = self.virtual_list.anchor_at(self.scroll_offset.y)
        if self.virtual_list.draw_ahead(time.perf_counter() + IDLE_SLICE):
            self._idle.pause()
        self._put(place)

    def _tick(self) -> None:
        place = self.virtual_list.anchor_at(self.scroll_offset.y)
        if self._width > 0 and self.virtual_list.tick():
            self._put(place)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the visible blocks again; the others follow in idle moments."""
        if self._width <= 0:
            return
        place = self.virtual_list.anchor_at(self.scroll_offset.y)
        if self._width != self.virtual_list.width:
            self.virtual_list.rewrap(self._width)
            self._idle.resume()
        self._put(place)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following the end when the person scrolls away from it."""
        super().watch_scroll_y(old_value, new_value)
        if self._is_placing or self._width <= 0:
            return
        top = round(new_value)
        self._follow = top >= self.max_scroll_y
        self._has_new = self._has_new and not self._follow
        self._ask_for_earlier(top)
        if self.virtual_list.draw_range(top, top + self._room):
            self.call_later(self._stay)

    def action_scroll_end(self) -> None:
        """Scroll to the end, and follow it."""
        self._follow, self._has_new = True, False
        self._stay()

    # ------------------------------------------------------------------------------------------------ drawing

    def notify_style_update(self) -> None:
        """Drop cached styles after a change of the theme."""
        super().notify_style_update()
        self._styles.clear()
        self._look += 1

    def _style(self, names: str) -> Style:
        style = self._styles.get(names)
        if style is None:
            style = self.rich_style
            for name in names.split():
                own = self.get_component_rich_style(f"transcript--{name}", partial=True)
                whole = self.get_component_rich_style(f"transcript--{name}")  # blended with the background
                style += own + Style(color=own.color and whole.color, bgcolor=own.bgcolor and whole.bgcolor)
            self._styles[names] = style
        return style

    def render_line(self, y: int) -> Strip:
        """Return one visible line."""
        width, row = self.virtual_list.width, self.scroll_offset.y + y  # the last measured width: this is called often
        if self._has_new and not self._follow and y == self._room - 1:
            return self._hint(width)
        index = self.virtual_list.block_at(row)
        if index is None:
            return Strip.blank(width, self.rich_style)
        drawn, inner = (
            self.virtual_list.render_block(index),
            row - self.virtual_list.top_of_block(index) - self.virtual_list.gap_above(index),
        )
        line = drawn.lines[inner] if 0 <= inner < len(drawn.lines) else ()
        is_cursor = self.virtual_list.blocks[index].name == self._cursor and inner >= 0 and self.has_focus
        if self.text_selection is not None:
            return self._strip(line, row, is_cursor, width)
        key = (inner, row, is_cursor, width, self._look)
        strip = drawn.cache.get(key)
        if not isinstance(strip, Strip):
            strip = drawn.cache[key] = self._strip(line, row, is_cursor, width)
        return strip

    def _strip(self, line: Line, row: int, is_cursor: bool, width: int) -> Strip:
        if is_cursor and line:
            (first, style), *rest = line
            line = ((CURSOR, "accent"), (first[1:], style), *rest)
        base = "cursor " if is_cursor else ""
        # Drawn text is escaped already. This is the last line of defence.
        segments = [Segment(escape_text(text), self._style(base + style)) for text, style in line if text]
        strip = Strip(segments).adjust_cell_length(width, self._style(base))
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row)) is not None:
            strip = _marked(strip, span, self.screen.get_component_rich_style("screen--selection"))
        return strip.apply_offsets(0, row)

    def _hint(self, width: int) -> Strip:
        hint = Segment(truncate(f" ↓ {self._words.new_below} ", width), self._style("hint"))
        left = Segment(" " * (max(width - hint.cell_length, 0) // 2), self.rich_style)
        return Strip([left, hint]).adjust_cell_length(width, self.rich_style)

    # ------------------------------------------------------------------------------------------------- cursor

    def _span(self) -> tuple[int, int]:
        """Return the first line of the block under the cursor, and the line after it."""
        indexes = [index for index, block in enumerate(self.virtual_list.blocks) if block.name == self._cursor]
        return (
            (self.virtual_list.top_of_block(indexes[0]), self.virtual_list.top_of_block(indexes[-1] + 1))
            if indexes
            else (-1, -1)
        )

    def move_cursor_to(self, name: str) -> None:
        """Move the cursor to a block."""
        if name != self._cursor:
            self._cursor = name
            block = self.picked
            if block is not None and block.message:
                self.post_message(self.Picked(block.message))
        self.refresh()

    def action_block_up(self) -> None:
        """Move the cursor to the block above."""
        self._move(-1)

    def action_block_down(self) -> None:
        """Move the cursor to the block below."""
        self._move(1)

    def _move(self, by: int) -> None:
        names = list(dict.fromkeys(block.name for block in self.virtual_list.blocks))
        top, end = self.scroll_offset.y, self.scroll_offset.y + self._room
        if not names or (self._cursor in names and self._scroll_within_block(by, top, end)):
            return
        if self._cursor in names:
            index = min(max(names.index(self._cursor) + by, 0), len(names) - 1)
        else:
            last = self.virtual_list.block_at(min(end, self.virtual_list.height) - 1)
            index = names.index(self.virtual_list.blocks[last or 0].name)
        self.move_cursor_to(names[index])
        first, after = self._span()
        if first < top or after - first >= self._room:
            self.scroll_to(y=first if by > 0 else max(first, after - self._room), animate=False, force=True)
        elif after > end:
            self.scroll_to(y=after - self._room, animate=False, force=True)

    def _scroll_within_block(self, by: int, top: int, end: int) -> bool:
        """Scroll within a block that is taller than the screen, before the cursor leaves it."""
        first, after = self._span()
        if by > 0 and first < end < after:
            self.scroll_to(y=min(top + self._room // 2, after - self._room), animate=False, force=True)
        elif by < 0 and first < top < after:
            self.scroll_to(y=max(top - self._room // 2, first), animate=False, force=True)
        else:
            return False
        return True

    def action_activate(self) -> None:
        """Answer the gate of the block under the cursor, or fold or unfold the block."""
        block = self.picked
        if block is not None and block.gate:
            self.post_message(self.AskedGate(block.gate))
        elif block is not None and block.folds:
            self.toggle(block)

    def toggle(self, block: Block) -> None:
        """Fold or unfold a block."""
        place = self.virtual_list.anchor_at(self.scroll_offset.y)
        index = next((index for index, other in enumerate(self.virtual_list.blocks) if other.id == block.id), None)
        if index is not None:
            self.virtual_list.toggle(index)
            self._follow = False  # an unfolded block is read from its beginning
            self._put(place)
            self._scroll_to_block(index)
            self._follow = self.scroll_offset.y >= self.max_scroll_y

    def _scroll_to_block(self, index: int) -> None:
        """Scroll down to the end of a block, as far as its beginning stays on the screen."""
        roll = self.virtual_list
        top, end = roll.top_of_block(index), roll.top_of_block(index) + roll.gap_above(index) + len(roll.rows(index))
        wanted = min(end - self._room, top)
        if wanted > self.scroll_offset.y:
            self.scroll_to(y=wanted, animate=False, force=True)

    def action_copy_block(self) -> None:
        """Copy the block under the cursor."""
        if self.picked is not None:
            self._copy("\n".join(block.source for block in self.virtual_list.blocks if block.name == self._cursor))

    def action_copy_message(self) -> None:
        """Copy the text of the whole message."""
        block = self.picked
        message = self._state.tree.messages.get(block.message) if block is not None else None
        if message is not None:
            self._copy(message.text)

    def _copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        get_host(self).show_message(self._words.copied)

    def action_revert(self) -> None:
        """Ask to restore the files of a step."""
        block = self.picked
        if block is not None and block.files is not None:
            self.post_message(self.AskedRevert(block.files))

    def action_undo(self) -> None:
        """Ask to undo a compaction."""
        block = self.picked
        if block is not None and block.is_compaction:
            self.post_message(self.AskedUndo(block.message))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked block; a click on its first line folds it, or opens its gate."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == self._room - 1 and self._has_new:
            self.action_scroll_end()
        elif (index := self.virtual_list.block_at(self.scroll_offset.y + offset.y)) is not None:
            block, inner = (
                self.virtual_list.blocks[index],
                self.scroll_offset.y
                + offset.y
                - self.virtual_list.top_of_block(index)
                - self.virtual_list.gap_above(index),
            )
            self.move_cursor_to(block.name)
            if inner == 0 or (block.gate and inner > 0):
                self.action_activate()

    # ---------------------------------------------------------------------------------------------- selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text."""
        return selection.extract(self.text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()


def _marked(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    """Return a strip in which the characters of a span have another style."""
    segments, offset = list[Segment](), 0
    for text, own, _ in strip:
        stop = len(text) if span[1] < 0 else min(max(span[1] - offset, 0), len(text))
        begin = min(max(span[0] - offset, 0), stop)
        pieces: Sequence[tuple[str, Style | None]] = (
            (text[:begin], own),
            (text[begin:stop], own + style if own else style),
            (text[stop:], own),
        )
        segments += [Segment(piece, kind) for piece, kind in pieces if piece]
        offset += len(text)
    return Strip(segments, strip.cell_length)
