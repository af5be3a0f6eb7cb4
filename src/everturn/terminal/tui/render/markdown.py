"""Markdown: a piece of it as lines. Nothing in it can be clicked: the URL of a link is written beside its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from everturn.terminal.tui.render.code import draw_code
from everturn.terminal.tui.render.markdown_split import MarkdownPiece
from everturn.terminal.tui.render.text import (
    MIN_WIDTH,
    Line,
    Run,
    prefix_lines,
    runs_width,
    split_lines,
    wrap,
    wrap_prose,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.tree import SyntaxTreeNode

MIN_CELL_WIDTH: Final = 4  # minimal columns of a table cell
BULLETS: Final = "•◦▪"
_MATH: Final = re.compile(
    r"\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]|\$\$.{1,1000}?\$\$|\$(?=\S)[^$\n]{0,300}?(?<=\S)\$(?!\d)", re.DOTALL
)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # with the first answer: the first screen has none, and it takes its time

    # Link definitions, which would not be visible anywhere, and HTML are disabled: both are drawn as they were written.
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 24}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "math", _math)
    return parser.disable(["reference", "html_block", "html_inline"])


def _math(state: StateInline, silent: bool) -> bool:
    """Leave formulas as they were written: their backslashes are not Markdown escapes."""
    if state.src[state.pos] not in "$\\" or (match := _MATH.match(state.src, state.pos)) is None:
        return False
    if not silent:
        state.push("math", "", 0).content = match[0].replace("\n", " ")
    state.pos = match.end()
    return True


def draw_markdown(chunk: MarkdownPiece, width: int) -> list[Line]:
    """Return the lines of a piece of an answer."""
    if chunk.kind == "code":
        return draw_code(chunk.source, chunk.language, width)
    if chunk.kind == "markdown":
        from markdown_it.tree import SyntaxTreeNode

        try:
            return _MarkdownRenderer().blocks(SyntaxTreeNode(_parser().parse(chunk.source)).children, width)
        except (RecursionError, ValueError, IndexError):  # a model may write anything
            pass
    return [line for text in split_lines(chunk.source) for line in wrap_prose([(text, "")], width)]


class _MarkdownRenderer:
    """Draws nested blocks; `depth` is the depth of lists."""

    def __init__(self) -> None:
        self.depth = 0

    def blocks(self, nodes: Sequence[SyntaxTreeNode], width: int, is_tight: bool = False) -> list[Line]:
        lines: list[Line] = []
        for node in nodes:
            drawn = self.block(node, max(width, MIN_WIDTH))
            lines += [(), *drawn] if lines and drawn and not is_tight else drawn
        return lines

    def block(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        match node.type:
            case "heading":
                return wrap_prose(
                    [(text, f"{style} heading {node.tag}".strip()) for text, style in _inline(node)], width
                )
            case "paragraph":
                return [line for runs in _broken(_inline(node)) for line in wrap_prose(runs, width)]
            case "bullet_list" | "ordered_list":
                return self.items(node, width)
            case "blockquote":
                bar: Run = ("▎ ", "quote-bar")
                return prefix_lines(self.blocks(node.children, width - 2), bar, bar)
            case "fence" | "code_block":
                return draw_code(
                    node.content.removesuffix("\n"), node.info.strip().split(" ")[0] if node.info else "", width
                )
            case "table":
                return draw_table(node, width)
            case "hr":
                return [(("─" * min(width, 24), "dim"),)]
            case _:
                return [line for text in split_lines(node.content) for line in wrap_prose([(text, "")], width)]

    def items(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        self.depth += 1
        number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
        is_tight = all(child.hidden for item in node.children for child in item.children if child.type == "paragraph")
        lines: list[Line] = []
        for index, item in enumerate(node.children):
            mark = f"{number + index}. " if node.type == "ordered_list" else f"{BULLETS[(self.depth - 1) % 3]} "
            drawn = self.blocks(item.children, width - len(mark), is_tight) or [()]
            lines += [()] if index and not is_tight else []
            lines += prefix_lines(drawn, (mark, "bullet"), (" " * len(mark), ""))
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
            label = _inline(node, f"{style} link".strip())
            yield from label
            url = str(node.attrs.get("href", ""))
            if url and url not in ("".join(text for text, _ in label), ""):
                yield f" ({url})", f"{style} dim".strip()
        case "image":
            yield f"[{node.content}] ({node.attrs.get('src', '')})", f"{style} dim".strip()
        case _:
            yield from _inline(node, style) if node.children else [(node.content, style)]


def _broken(runs: list[Run]) -> Iterator[list[Run]]:
    """Split runs at the hard line breaks of the author."""
    line: list[Run] = []
    for text, style in runs:
        if text == "\n" and not style:
            yield line
            line = []
        else:
            line.append((text, style))
    yield line


def draw_table(node: SyntaxTreeNode, width: int) -> list[Line]:
    """Return a table: columns as wide as needed, or as fit; with too many columns, each row is plain text."""
    cells = [row.children for part in node.children for row in part.children]
    rows = [[_inline(cell) for cell in row] for row in cells]
    alignments = [str(cell.attrs.get("style", "")).removeprefix("text-align:") for cell in cells[0]] if cells else []
    count = max((len(row) for row in rows), default=0)
    if not count or count * (MIN_CELL_WIDTH + 3) > width + 3:
        return [line for row in rows for line in wrap(_flat(row), width)]
    widths = _widths([[runs_width(cell) for cell in row] for row in rows], width - 3 * (count - 1))
    lines: list[Line] = []
    for index, row in enumerate(rows):
        lines += _row([*row, *([[]] * (count - len(row)))], widths, alignments, "strong" if not index else "")
        if not index:
            lines.append((("─┼─".join("─" * column_width for column_width in widths), "dim"),))
    return lines


def _flat(row: list[list[Run]]) -> list[Run]:
    return [run for cell in row for run in (*cell, (" │ ", "dim"))][:-1]


def _widths(rows: list[list[int]], room: int) -> list[int]:
    """Return the width of each column: the widest shrink first."""
    count = max(map(len, rows))
    widths = [max(MIN_CELL_WIDTH, *(row[index] for row in rows if index < len(row))) for index in range(count)]
    while sum(widths) > room:
        widest_width = max(widths)
        second = max((column_width for column_width in widths if column_width < widest_width), default=MIN_CELL_WIDTH)
        widest = [index for index, column_width in enumerate(widths) if column_width == widest_width]
        shrink_by = max(min(widest_width - second, -(-(sum(widths) - room) // len(widest))), 1)
        for index in widest:
            widths[index] = max(widths[index] - shrink_by, MIN_CELL_WIDTH)
        if widest_width == MIN_CELL_WIDTH:
            break
    return widths


def _row(row: list[list[Run]], widths: list[int], alignments: list[str], style: str) -> list[Line]:
    cells = [
        wrap([(text, f"{own} {style}".strip()) for text, own in cell], column_width)
        for cell, column_width in zip(row, widths, strict=True)
    ]
    lines: list[Line] = []
    for index in range(max(map(len, cells))):
        line: list[Run] = []
        for column, (cell, column_width) in enumerate(zip(cells, widths, strict=True)):
            drawn = cell[index] if index < len(cell) else ()
            gap = max(column_width - runs_width(drawn), 0)
            before = {"right": gap, "center": gap // 2}.get(alignments[column] if column < len(alignments) else "", 0)
            line += [(" │ ", "dim")] if line else []
            line += [(" " * before, ""), *drawn, (" " * (gap - before), "")]
        lines.append(tuple(line))
    return lines
