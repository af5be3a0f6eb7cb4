"""Virtual list: the position of each block in one long list of lines. Only requested blocks are drawn; heights of the
others are estimated."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from msgspec import Struct

from everturn.terminal.tui.render.blocks import Block, is_tight
from everturn.terminal.tui.render.canvas import Canvas
from everturn.terminal.tui.render.text import Line
from everturn.terminal.tui.texts.chat import EN, ChatTexts

ScrollAnchor = tuple[str, int]
"""A scroll anchor: a block, and how many of its lines are above the top."""


class RenderedBlock(Struct, frozen=True):
    """The lines of a block, and what they were drawn for."""

    block: Block
    width: int
    is_open: bool
    lines: list[Line]
    cache: dict[tuple[object, ...], object] = {}  # cache of the widget that shows the lines

    def fits(self, block: Block, width: int, is_open: bool) -> bool:
        """Return whether drawing the block again would give the same lines."""
        is_same = self.block is block or self.block.key == block.key
        return is_same and self.width == width and self.is_open == is_open


class VirtualList:
    """The lines of all blocks, one below the other."""

    def __init__(self, words: ChatTexts = EN, clock: Callable[[], float] = time.time) -> None:
        self.width = 0
        self.texts = words
        self.blocks: list[Block] = []
        self.drawn_count = 0  # how many times a block was drawn
        self._clock = clock
        self._heights: list[int] = []
        self._tops: list[int] = [0]  # first line of each block, and the end of the list
        self._drawn: dict[str, RenderedBlock] = {}
        self._opened: dict[str, bool] = {}  # blocks that the person has folded or unfolded

    # ---------------------------------------------------------------------------------------------- the blocks

    def set_blocks(self, blocks: list[Block]) -> int | None:
        """Replace the blocks; return the index of the first that differs, or None if all are the same."""
        before = self.blocks
        pairs = enumerate(zip(before, blocks, strict=False))
        first = next((index for index, (old, new) in pairs if old is not new), min(len(before), len(blocks)))
        if first == len(before) == len(blocks):
            return None
        self.blocks = blocks
        self._heights[first:] = [self._height(index) for index in range(first, len(blocks))]
        self._update_tops(first)
        return first

    def rewrap(self, width: int) -> None:
        """Set another width. Nothing is drawn yet."""
        self.width = width
        self._heights = [self._height(index) for index in range(len(self.blocks))]
        self._update_tops(0)

    def toggle(self, index: int) -> None:
        """Fold or unfold a block."""
        block = self.blocks[index]
        self._opened[block.id] = not self.is_open(block)
        self._measure_block(index)
        self._update_tops(index)

    def tick(self) -> bool:
        """Draw blocks with a running time again; return whether there are any."""
        ticking = [index for index, block in enumerate(self.blocks) if block.ticks]
        for index in ticking:
            if self._drawn.pop(self.blocks[index].id, None) is not None:
                self._measure_block(index)
        if ticking:
            self._update_tops(ticking[0])
        return bool(ticking)

    def is_open(self, block: Block) -> bool:
        """Whether a block is unfolded."""
        return self._opened.get(block.id, block.is_open)

    # ---------------------------------------------------------------------------------------------- the lines

    @property
    def height(self) -> int:
        """The number of lines, as far as it is known."""
        return self._tops[-1]

    def block_at(self, row: int) -> int | None:
        """Return the index of the block at a line."""
        index = bisect_right(self._tops, row) - 1
        return index if 0 <= index < len(self.blocks) else None

    def top_of_block(self, index: int) -> int:
        """Return the first line of a block, including the gap above it."""
        return self._tops[index]

    def gap_above(self, index: int) -> int:
        """Return the number of empty lines above a block."""
        return 0 if is_tight(self.blocks[index - 1] if index else None, self.blocks[index]) else 1

    def rows(self, index: int) -> list[Line]:
        """Return the lines of a block, including the gap above it."""
        lines = self.render_block(index).lines
        return [(), *lines] if self.gap_above(index) else lines

    def draw_range(self, top: int, end: int) -> bool:
        """Draw the blocks between two lines; return whether a height differed from its estimate."""
        index, first_changed = max(bisect_right(self._tops, top) - 1, 0), -1
        while index < len(self.blocks) and self._tops[index] < end:
            if self._measure_block(index) and first_changed < 0:
                first_changed = index
            index += 1
        if first_changed >= 0:
            self._update_tops(first_changed)
        return first_changed >= 0

    def draw_ahead(self, until: float) -> bool:
        """Draw missing blocks, from the end up, until a time of `perf_counter`; return whether all are drawn."""
        first, is_whole = len(self.blocks), True
        for index in range(len(self.blocks) - 1, -1, -1):
            if self._cached(self.blocks[index]) is None:
                self._measure_block(index)
                first = index
                if time.perf_counter() > until:
                    is_whole = False
                    break
        if first < len(self.blocks):
            self._update_tops(first)
        return is_whole

    def is_drawn(self, first: int = 0) -> bool:
        """Return whether all blocks from this one on are drawn, so that no height is an estimate."""
        return all(self._cached(self.blocks[index]) is not None for index in range(first, len(self.blocks)))

    def anchor_at(self, top: int) -> ScrollAnchor:
        """Return the scroll anchor of a line, to find it again after heights have changed."""
        index = self.block_at(top)
        return (self.blocks[index].id, top - self._tops[index]) if index is not None else ("", 0)

    def line_of_anchor(self, place: ScrollAnchor, default: int) -> int:
        """Return the line where an anchor is now."""
        name, offset = place
        index = next((index for index, block in enumerate(self.blocks) if block.id == name), None)
        return default if index is None else self._tops[index] + min(offset, max(self._heights[index] - 1, 0))

    def _height(self, index: int) -> int:
        block = self.blocks[index]
        drawn = self._cached(block)
        return block.estimate_height(self.width) if drawn is None else len(drawn.lines) + self.gap_above(index)

    def _measure_block(self, index: int) -> bool:
        """Draw a block; return whether its height differed."""
        height = len(self.render_block(index).lines) + self.gap_above(index)
        is_other, self._heights[index] = height != self._heights[index], height
        return is_other

    def _cached(self, block: Block) -> RenderedBlock | None:
        drawn = self._drawn.get(block.id)
        return drawn if drawn is not None and drawn.fits(block, self.width, self.is_open(block)) else None

    def render_block(self, index: int) -> RenderedBlock:
        """Return a block with its lines, drawn if necessary."""
        block = self.blocks[index]
        drawn = self._cached(block)
        if drawn is None:
            is_open = self.is_open(block)
            lines = block.draw(Canvas(self.width, is_open, self._clock(), self.texts))
            drawn = self._drawn[block.id] = RenderedBlock(block, self.width, is_open, lines)
            self.drawn_count += 1
        return drawn

    def _update_tops(self, first: int) -> None:
        self._tops[first:] = accumulate(self._heights[first:], initial=self._tops[first])
