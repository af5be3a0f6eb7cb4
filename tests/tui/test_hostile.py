"""Whatever anybody writes, nothing changes but text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from time import process_time

import pytest
from rich.cells import cell_len
from textual.strip import Strip

from everturn import api
from everturn.core.deltas import CallDelta, ReasoningDelta
from everturn.core.events import (
    CallFinished,
    CallStarted,
    FilesChanged,
    GateOpened,
    LimitReached,
    PermissionDecided,
    Problem,
    TitleSet,
    TurnFailed,
    TurnFinishing,
)
from everturn.core.gates import Gate
from everturn.core.parts import FileChange, FilePart, NoticePart, Output, ReasoningPart, TextPart, ToolPart
from everturn.terminal.text.screen import UNESCAPED
from everturn.terminal.tui.render import code
from everturn.terminal.tui.render.blocks import Block, BlockList
from everturn.terminal.tui.render.canvas import Canvas
from everturn.terminal.tui.render.markdown import draw_markdown
from everturn.terminal.tui.render.markdown_split import MarkdownPiece, split_markdown
from everturn.terminal.tui.render.text import GUTTER, Line, line_text
from everturn.terminal.tui.state import SessionState
from tests.helpers.hostile_terminal_texts import CORPUS, LONG, MARKDOWN, SHORT
from tests.helpers.transcript_app import Stage, Writing, text_delta

OURS = " ▌"  # what may stand in the first column


def is_harmless(text: str) -> bool:
    """Whether a terminal can do nothing with a text but show it, in the order in which it stands."""
    return all(char.isprintable() or char in UNESCAPED[1:] or unicodedata.category(char) == "Zs" for char in text)


def as_everything(evil: str) -> SessionState:
    """A session in which a text stands wherever somebody else's text can stand."""
    writing = Writing()
    writing.said("t", evil, None, FilePart("blob", evil, 3, evil))
    call = ToolPart("t-1", evil, evil)
    more = ToolPart("t-2", "edit", '{"path": "a"}')
    parts = [ReasoningPart(evil), TextPart(evil), call, more, FilePart("b", evil, 9, evil)]
    writing.answered("t", parts, "tool_calls")
    gate = Gate("g", "t", "t-2", evil, evil, "h", why=evil, preview=f"--- a\n+++ b\n@@ -1 +1 @@\n-{evil}\n+{evil}")
    writing.event(GateOpened(turn="t", gate=gate))
    writing.event(PermissionDecided(turn="t", call="t-1", tool=evil, identity="", hash="", allowed=True, why=evil))
    writing.event(
        CallStarted(turn="t", call="t-1", tool=evil, arguments=evil, hash="", read_only=True, key="k", at=1.0)
    )
    for _ in range(3):
        writing.progress("t", "t-1", evil)
    output = Output(evil, evil, evil, "blob", origin=f"mcp:{evil}", attachments=(FilePart("b", evil, 1, evil),))
    writing.event(CallFinished(turn="t", call="t-1", state="completed", output=output, at=2.0))
    writing.event(CallFinished(turn="t", call="t-2", state="failed", output=Output(evil)))
    change = FileChange(evil, "added", 1, 1)
    writing.event(FilesChanged(turn="t", step=1, before="a", after="b", changes=(change,)))
    writing.event(LimitReached(turn="t", limit="steps", scope="turn", text=evil))
    writing.event(TurnFinishing(turn="t", outcome="error", problem=Problem(evil, evil)))
    writing.event(TitleSet(turn="t", title=evil))
    writing.event(TurnFailed(turn="t", problem=Problem(evil, evil), reports=(Problem(evil, evil),)))
    writing.said("u", "And?", "t-out", NoticePart(evil, evil))
    writing.delta(text_delta("u", 0, evil))
    writing.delta(ReasoningDelta("u", 0, 1, 0, evil))
    writing.delta(CallDelta("u", 0, 2, 0, evil, "u-1", evil))
    queued = api.QueuedView(turn="v", message="v-in", at=0.0, text=evil, files=[])
    writing.state.queued = [queued]
    return writing.state


def drawn(state: SessionState, width: int = 80, is_open: bool = True) -> Iterator[tuple[Block, Line]]:
    for block in BlockList().blocks(state):
        for line in block.draw(Canvas(width, is_open, 5.0)):
            yield block, line


@pytest.mark.parametrize("evil", CORPUS, ids=lambda text: repr(text[:24]))
def test_a_text_wherever_it_stands_is_only_text(evil: str) -> None:
    state = as_everything(evil[:4_000])
    for width in (80, 33):
        for block, line in drawn(state, width):
            text = line_text(line)
            assert is_harmless(text), (block.kind, text)
            assert cell_len(text) <= max(width, GUTTER + 8), (block.kind, text)
            assert not text or text[0] in OURS


@pytest.mark.parametrize("evil", CORPUS, ids=lambda text: repr(text[:24]))
def test_what_a_model_says_never_stands_in_our_columns(evil: str) -> None:
    """Signs of cards, questions and persons stand in the second column; a text of a model leaves it blank."""
    writing = Writing()
    writing.said("t", "Well?")
    writing.answered("t", [TextPart(evil[:20_000])])
    texts = [line_text(line) for block, line in drawn(writing.state) if block.kind == "text"]
    assert all(text[:GUTTER].strip() == "" for text in texts)


@pytest.mark.parametrize("evil", SHORT, ids=lambda text: repr(text[:24]))
def test_what_a_tool_says_stands_behind_the_bar_of_its_card(evil: str) -> None:
    writing = Writing()
    writing.said("t", "Well?")
    writing.answered("t", [ToolPart("t-1", "look", "{}")], "tool_calls")
    writing.event(
        PermissionDecided(turn="t", call="t-1", tool="look", identity="", hash="", allowed=True, why="a rule")
    )
    writing.event(CallStarted(turn="t", call="t-1", tool="look", arguments="{}", hash="", read_only=True, key="k"))
    writing.event(CallFinished(turn="t", call="t-1", state="completed", output=Output(evil)))
    for is_open in (True, False):
        head, *lines = [line_text(line) for block, line in drawn(writing.state, 80, is_open) if block.kind == "call"]
        assert head.startswith(" ✓ look")
        assert all(line.startswith(" │ ") for line in lines)


SLOW = {
    "stars": "*a **b " * 280,
    "links": ("![" * 950 + "\n") * 4,
    "short links": "![\n" * 2600,
    "brackets": ("[" * 1900 + "\n") * 4,
    "references": "[a]: https://evil.example\n" + "[a][" * 1900,
    "lines": "a\n" * 4000,
    "lazy quote": "> " * 15 + "a\n" + "a\n" * 3900,
    "deep list": ("- " * 15 + "a\n") * 200,
    "wide table": "|" + "a|" * 900 + "\n|" + "-|" * 900 + "\n" + "|\n" * 1500,
    "empty rows": "|" + "a|" * 28 + "\n|" + "-|" * 28 + "\n" + "|\n" * 1500,
    "fences": "```python\n(\n```\n~~~\n" * 300,
    "names": "".join(f"```no{number}\nx\n```\n" for number in range(300)),
    "code": "```cpp\n" + ("{" * 490 + "\n") * 16 + "```",
    "wide": "字" * 7900,
}


@pytest.mark.parametrize("text", [*SLOW.values(), *MARKDOWN], ids=lambda text: repr(text[:12]))
def test_no_piece_of_a_text_holds_the_screen_up(text: str) -> None:
    """Each costs some 50 ms at most where nobody else works; the better of two tries, and much room for company."""
    draw_markdown(MarkdownPiece("code", "x", "cpp"), 80)  # what is only loaded once
    began = process_time()
    pieces = split_markdown(text)
    assert process_time() - began < 1.0
    for piece in pieces:
        assert min(cost(piece), cost(piece)) < 0.4, (piece.kind, len(piece.source))


def cost(piece: MarkdownPiece) -> float:
    began = process_time()
    draw_markdown(piece, 80)
    return process_time() - began


def test_a_long_list_stays_a_list_and_a_language_that_nobody_knows_is_not_looked_for() -> None:
    text = "\n".join(f"{number}. an item with **weight** and some words behind it" for number in range(1, 401))
    pieces = split_markdown(text)
    assert len(pieces) > 1
    assert {piece.kind for piece in pieces} == {"markdown"}
    drawn_lines = [line_text(line) for piece in pieces for line in draw_markdown(piece, 80)]
    assert drawn_lines[-1].startswith("400. an item with weight")
    looked = code._lexer.cache_info()
    draw_markdown(MarkdownPiece("code", "x", "no-such-language"), 80)
    assert code._lexer.cache_info() == looked


def strips(app: Stage) -> list[Strip]:
    return [app.transcript.render_line(y) for y in range(app.transcript.size.height)]


def seen(app: Stage) -> str:
    return "\n".join(strip.text for strip in strips(app))


async def test_no_segment_has_a_link_an_action_or_a_control_sequence() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        for evil in SHORT:
            app.transcript.show(as_everything(evil), None)
            await pilot.pause()
            for strip in strips(app):
                for text, style, control in strip:
                    assert control is None
                    assert is_harmless(text)
                    assert style is None or (style.link is None and set(style.meta) <= {"offset"})
        assert app.is_running
        assert not app.told


@pytest.mark.parametrize("evil", LONG, ids=lambda text: repr(text[:12]))
async def test_a_very_long_text_is_drawn_where_it_is_seen(evil: str) -> None:
    writing = Writing()
    writing.said("t", "Well?")
    writing.answered("t", [TextPart(evil), ToolPart("t-1", "look", evil)], "tool_calls")
    app = Stage(writing.state)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "look" in seen(app)
        app.transcript.scroll_home(animate=False)
        await pilot.pause()
        app.transcript.scroll_home(animate=False)
        await pilot.pause()
        assert "Well?" in seen(app)
