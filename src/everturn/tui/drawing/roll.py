"""Blocks → where each of them stands in one long roll of lines. Only what is asked for is drawn; of the rest it guesses."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from msgspec import Struct

from everturn.tui.drawing.blocks import Block, is_tight
from everturn.tui.drawing.ink import Line
from everturn.tui.drawing.paper import Paper
from everturn.tui.words.talk import EN, TalkWords

Place = tuple[str, int]
"""A block, and how many of its lines are above."""


class Drawn(Struct, frozen=True):
    """The lines of a block, and what they were drawn for."""

    block: Block
    width: int
    is_open: bool
    lines: list[Line]
    kept: dict[tuple[object, ...], object] = {}  # what whoever shows them has made of them

    def fits(self, block: Block, width: int, is_open: bool) -> bool:
        """Whether it would be drawn like this again."""
        is_same = self.block is block or self.block.key == block.key
        return is_same and self.width == width and self.is_open == is_open


class Roll:
    """The lines of all blocks, one under the other."""

    def __init__(self, words: TalkWords = EN, clock: Callable[[], float] = time.time) -> None:
        self.width = 0
        self.words = words
        self.blocks: list[Block] = []
        self.drawn_count = 0  # how often a block was drawn
        self._clock = clock
        self._heights: list[int] = []
        self._tops: list[int] = [0]  # of each block, and the end of all
        self._drawn: dict[str, Drawn] = {}
        self._opened: dict[str, bool] = {}  # what somebody has folded or unfolded

    # ------------------------------------------------------------------------------------------- what there is

    def take(self, blocks: list[Block]) -> int | None:
        """Have other blocks; the number of the first that is another one. None: they are all the same."""
        before = self.blocks
        pairs = enumerate(zip(before, blocks, strict=False))
        first = next((at for at, (old, new) in pairs if old is not new), min(len(before), len(blocks)))
        if first == len(before) == len(blocks):
            return None
        self.blocks = blocks
        self._heights[first:] = [self._height(at) for at in range(first, len(blocks))]
        self._sum(first)
        return first

    def rewrap(self, width: int) -> None:
        """Have another width. Nothing is drawn yet."""
        self.width = width
        self._heights = [self._height(at) for at in range(len(self.blocks))]
        self._sum(0)

    def toggle(self, at: int) -> None:
        """Fold a block that is open, or unfold it."""
        block = self.blocks[at]
        self._opened[block.id] = not self.is_open(block)
        self._fix(at)
        self._sum(at)

    def tick(self) -> bool:
        """Draw again what says how long it takes; whether there is any."""
        late = [at for at, block in enumerate(self.blocks) if block.ticks]
        for at in late:
            if self._drawn.pop(self.blocks[at].id, None) is not None:
                self._fix(at)
        if late:
            self._sum(late[0])
        return bool(late)

    def is_open(self, block: Block) -> bool:
        """Whether a block is unfolded."""
        return self._opened.get(block.id, block.is_open)

    # ---------------------------------------------------------------------------------------------- its lines

    @property
    def height(self) -> int:
        """How many lines there are, as far as anybody knows."""
        return self._tops[-1]

    def at(self, row: int) -> int | None:
        """The number of the block at a line."""
        at = bisect_right(self._tops, row) - 1
        return at if 0 <= at < len(self.blocks) else None

    def top(self, at: int) -> int:
        """The first line of a block, and of the gap above it."""
        return self._tops[at]

    def gap(self, at: int) -> int:
        """The empty lines above a block."""
        return 0 if is_tight(self.blocks[at - 1] if at else None, self.blocks[at]) else 1

    def rows(self, at: int) -> list[Line]:
        """The lines of a block, with those above it."""
        lines = self.drawn(at).lines
        return [(), *lines] if self.gap(at) else lines

    def settle(self, top: int, end: int) -> bool:
        """Draw the blocks between two lines; whether one was higher or lower than it was thought to be."""
        at, changed = max(bisect_right(self._tops, top) - 1, 0), -1
        while at < len(self.blocks) and self._tops[at] < end:
            if self._fix(at) and changed < 0:
                changed = at
            at += 1
        if changed >= 0:
            self._sum(changed)
        return changed >= 0

    def work(self, until: float) -> bool:
        """Draw what nobody has seen yet, from the end up, until a time of `perf_counter`; whether all is drawn."""
        first, is_whole = len(self.blocks), True
        for at in range(len(self.blocks) - 1, -1, -1):
            if self._known(self.blocks[at]) is None:
                self._fix(at)
                first = at
                if time.perf_counter() > until:
                    is_whole = False
                    break
        if first < len(self.blocks):
            self._sum(first)
        return is_whole

    def is_drawn(self, first: int = 0) -> bool:
        """Whether nothing is a guess any more, from a block on."""
        return all(self._known(self.blocks[at]) is not None for at in range(first, len(self.blocks)))

    def place(self, top: int) -> Place:
        """What stands at a line, to be found again when all has moved."""
        at = self.at(top)
        return (self.blocks[at].id, top - self._tops[at]) if at is not None else ("", 0)

    def find(self, place: Place, default: int) -> int:
        """The line at which something stands now."""
        name, offset = place
        at = next((at for at, block in enumerate(self.blocks) if block.id == name), None)
        return default if at is None else self._tops[at] + min(offset, max(self._heights[at] - 1, 0))

    def _height(self, at: int) -> int:
        block = self.blocks[at]
        drawn = self._known(block)
        return block.guess(self.width) if drawn is None else len(drawn.lines) + self.gap(at)

    def _fix(self, at: int) -> bool:
        """Draw a block; whether it is not as high as it was thought to be."""
        height = len(self.drawn(at).lines) + self.gap(at)
        is_other, self._heights[at] = height != self._heights[at], height
        return is_other

    def _known(self, block: Block) -> Drawn | None:
        drawn = self._drawn.get(block.id)
        return drawn if drawn is not None and drawn.fits(block, self.width, self.is_open(block)) else None

    def drawn(self, at: int) -> Drawn:
        """A block, drawn if it is not yet."""
        block = self.blocks[at]
        drawn = self._known(block)
        if drawn is None:
            is_open = self.is_open(block)
            lines = block.draw(Paper(self.width, is_open, self._clock(), self.words))
            drawn = self._drawn[block.id] = Drawn(block, self.width, is_open, lines)
            self.drawn_count += 1
        return drawn

    def _sum(self, first: int) -> None:
        self._tops[first:] = accumulate(self._heights[first:], initial=self._tops[first])
