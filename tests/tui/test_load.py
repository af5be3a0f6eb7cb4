"""A long answer costs what it is long, and not more with every piece."""

from __future__ import annotations

from time import process_time

import pytest

from everturn import api
from everturn.core.deltas import TextDelta
from everturn.core.parts import TextPart
from tests.helpers.scripted_server import texts
from tests.helpers.scripted_server.server import Rig
from tests.helpers.transcript_app import Stage, Writing
from tests.tui.screen_user import person

MOST = 6.0  # CPU seconds
CHUNKS = 3000


async def cost(rig: Rig) -> float:
    """What an answer of so many chunks takes, of the whole app: to hear it, to fold it, to draw it at its own beat.

    The provider writes the chunks; the server merges what comes within 50 ms, so fewer and longer ones come here.
    """
    async with person(rig) as user:
        began = process_time()
        session = await user.say(f"long {CHUNKS} pace 2")
        await user.idle()
        took = process_time() - began
        assert len(rig.stored_text(session)) == 4 * CHUNKS
        return took


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_three_thousand_chunks_take_six_seconds_at_most(rig: Rig) -> None:
    """The better of two tries: the other one had company. Beside other ways to draw it is in benchmarks/tui.py."""
    took = await cost(rig)
    assert took <= MOST or await cost(rig) <= MOST


async def test_no_layout_is_done_while_an_answer_grows() -> None:
    """It costs more than everything else, and nothing but the lines of the transcript moves."""
    writing, layouts = Writing(), list[int]()
    writing.said("t", "Say it.")
    app = Stage(writing.state)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        lay_out = app.screen._refresh_layout
        app.screen._refresh_layout = lambda *arguments, **more: (layouts.append(1), lay_out(*arguments, **more))[1]
        text = texts.long(4_000)
        for at in range(0, len(text), 100):
            writing.state.apply(api.StreamItem(delta=TextDelta("t", 3, 0, at, text[at : at + 100])))
            app.transcript.update_turns({"t"})
            await pilot.pause()
        assert app.transcript.max_scroll_y > 30
        assert app.transcript.scroll_offset.y == app.transcript.max_scroll_y
        assert app.transcript.vertical_scrollbar.window_virtual_size == app.transcript.virtual_list.height
        assert not layouts


async def test_the_last_chunks_of_a_long_answer_draw_no_more_than_the_first() -> None:
    writing = Writing()
    writing.said("t", "Say it.")
    app = Stage(writing.state)
    text = texts.long(40_000)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        drawn: list[int] = []
        for at in range(0, len(text), 400):
            writing.state.apply(api.StreamItem(delta=TextDelta("t", 3, 0, at, text[at : at + 400])))
            before = app.transcript.virtual_list.drawn_count
            app.transcript.update_turns({"t"})
            drawn.append(app.transcript.virtual_list.drawn_count - before)
        assert sum(drawn[-20:]) <= 2 * sum(drawn[:20]), "blocks that are drawn do not grow with the answer"


async def test_a_session_of_five_hundred_messages_opens_at_once() -> None:
    writing = Writing()
    parent = None
    for number in range(250):
        writing.said(f"t{number}", f"Question {number}?", parent)
        writing.answered(f"t{number}", [TextPart(f"{texts.CODE}\n\n{texts.TABLE}\n\nNumber {number}.")])
        parent = f"t{number}-out"
    app = Stage(writing.state)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        began, before = process_time(), app.transcript.virtual_list.drawn_count
        app.transcript.show(writing.state, None)
        assert process_time() - began < 1.5
        assert app.transcript.virtual_list.drawn_count <= 30, "what is seen, and not the rest"
        assert before > 0
