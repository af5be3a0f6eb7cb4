"""A piece of markdown → lines. Nothing of it can be clicked: an address stands beside its words, to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.tree import SyntaxTreeNode

from everturn.tui.drawing.code import code
from everturn.tui.drawing.ink import LEAST, Line, Run, lead, split, width_of, wrap
from everturn.tui.drawing.pieces import Piece

COLUMN: Final = 4  # columns that a cell of a table has at least
BULLETS: Final = "•◦▪"
_MATH: Final = re.compile(
    r"\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]|\$\$.{1,1000}?\$\$|\$(?=\S)[^$\n]{0,300}?(?<=\S)\$(?!\d)", re.DOTALL
)


@cache
def _parser() -> MarkdownIt:
    # Without definitions of links, which would stand nowhere, and without HTML: both are drawn as they were written.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 24}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "math", _math)
    return parser.disable(["reference", "html_block", "html_inline"])


def _math(state: StateInline, silent: bool) -> bool:
    """Formulas are left as they were written: no backslash of theirs is taken for one of markdown's."""
    if state.src[state.pos] not in "$\\" or (found := _MATH.match(state.src, state.pos)) is None:
        return False
    if not silent:
        state.push("math", "", 0).content = found[0].replace("\n", " ")
    state.pos = found.end()
    return True


def draw(chunk: Piece, width: int) -> list[Line]:
    """The lines of a piece of an answer."""
    if chunk.kind == "code":
        return code(chunk.source, chunk.language, width)
    if chunk.kind == "markdown":
        try:
            return _Page().blocks(SyntaxTreeNode(_parser().parse(chunk.source)).children, width)
        except (RecursionError, ValueError, IndexError):  # nobody knows what a model writes
            pass
    return [line for text in split(chunk.source) for line in wrap([(text, "")], width)]


class _Page:
    """Draws blocks within blocks; `depth` is that of lists."""

    def __init__(self) -> None:
        self.depth = 0

    def blocks(self, nodes: Sequence[SyntaxTreeNode], width: int, is_tight: bool = False) -> list[Line]:
        lines: list[Line] = []
        for node in nodes:
            drawn = self.block(node, max(width, LEAST))
            lines += [(), *drawn] if lines and drawn and not is_tight else drawn
        return lines

    def block(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        match node.type:
            case "heading":
                return wrap([(text, f"{style} heading {node.tag}".strip()) for text, style in _inline(node)], width)
            case "paragraph":
                return [line for runs in _broken(_inline(node)) for line in wrap(runs, width)]
            case "bullet_list" | "ordered_list":
                return self.items(node, width)
            case "blockquote":
                bar: Run = ("▎ ", "quote-bar")
                return lead(self.blocks(node.children, width - 2), bar, bar)
            case "fence" | "code_block":
                return code(
                    node.content.removesuffix("\n"), node.info.strip().split(" ")[0] if node.info else "", width
                )
            case "table":
                return table(node, width)
            case "hr":
                return [(("─" * min(width, 24), "dim"),)]
            case _:
                return [line for text in split(node.content) for line in wrap([(text, "")], width)]

    def items(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        self.depth += 1
        number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
        is_tight = all(child.hidden for item in node.children for child in item.children if child.type == "paragraph")
        lines: list[Line] = []
        for at, item in enumerate(node.children):
            mark = f"{number + at}. " if node.type == "ordered_list" else f"{BULLETS[(self.depth - 1) % 3]} "
            drawn = self.blocks(item.children, width - len(mark), is_tight) or [()]
            lines += [()] if at and not is_tight else []
            lines += lead(drawn, (mark, "bullet"), (" " * len(mark), ""))
        self.depth -= 1
        return lines


def _inline(node: SyntaxTreeNode, style: str = "") -> list[Run]:
    return [run for child in node.children for run in _runs(child, style)]


def _runs(node: SyntaxTreeNode, style: str) -> Iterator[Run]:
    match node.type:
        case "text":
            yield node.content, style
        case "softbreak":
            yield " ", style
        case "hardbreak":
            yield "\n", ""
        case "code_inline":
            yield node.content, f"{style} code".strip()
        case "strong" | "em" | "s":
            yield from _inline(node, f"{style} {node.type}".strip())
        case "link":
            words = _inline(node, f"{style} link".strip())
            yield from words
            address = str(node.attrs.get("href", ""))
            if address and address not in ("".join(text for text, _ in words), ""):
                yield f" ({address})", f"{style} dim".strip()
        case "image":
            yield f"[{node.content}] ({node.attrs.get('src', '')})", f"{style} dim".strip()
        case _:
            yield from _inline(node, style) if node.children else [(node.content, style)]


def _broken(runs: list[Run]) -> Iterator[list[Run]]:
    """The lines that whoever wrote them has broken."""
    line: list[Run] = []
    for text, style in runs:
        if text == "\n" and not style:
            yield line
            line = []
        else:
            line.append((text, style))
    yield line


def table(node: SyntaxTreeNode, width: int) -> list[Line]:
    """A table: columns as wide as they need, or as there is room for; too many of them are drawn as rows of words."""
    rows = [[_inline(cell) for cell in row.children] for part in node.children for row in part.children]
    count = max((len(row) for row in rows), default=0)
    if not count or count * (COLUMN + 3) > width + 3:
        return [line for row in rows for line in wrap(_flat(row), width)]
    widths = _widths([[width_of(cell) for cell in row] for row in rows], width - 3 * (count - 1))
    lines: list[Line] = []
    for at, row in enumerate(rows):
        lines += _row([*row, *([[]] * (count - len(row)))], widths, "strong" if not at else "")
        if not at:
            lines.append((("─┼─".join("─" * one for one in widths), "dim"),))
    return lines


def _flat(row: list[list[Run]]) -> list[Run]:
    return [run for cell in row for run in (*cell, (" │ ", "dim"))][:-1]


def _widths(rows: list[list[int]], room: int) -> list[int]:
    """How wide each column is: the widest of them give way first."""
    count = max(map(len, rows))
    widths = [max(COLUMN, *(row[at] for row in rows if at < len(row))) for at in range(count)]
    while sum(widths) > room:
        most = max(widths)
        second = max((one for one in widths if one < most), default=COLUMN)
        widest = [at for at, one in enumerate(widths) if one == most]
        less = max(min(most - second, -(-(sum(widths) - room) // len(widest))), 1)
        for at in widest:
            widths[at] = max(widths[at] - less, COLUMN)
        if most == COLUMN:
            break
    return widths


def _row(row: list[list[Run]], widths: list[int], style: str) -> list[Line]:
    cells = [
        wrap([(text, f"{own} {style}".strip()) for text, own in cell], one)
        for cell, one in zip(row, widths, strict=True)
    ]
    lines: list[Line] = []
    for at in range(max(map(len, cells))):
        line: list[Run] = []
        for cell, one in zip(cells, widths, strict=True):
            drawn = cell[at] if at < len(cell) else ()
            line += [(" │ ", "dim")] if line else []
            line += [*drawn, (" " * max(one - width_of(drawn), 0), "")]
        lines.append(tuple(line))
    return lines
