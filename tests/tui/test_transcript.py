"""The conversation on a screen: it follows its end, stays where one reads, folds, points and copies."""

from __future__ import annotations

from everturn.core.events import GateOpened
from everturn.core.gates import Gate
from everturn.core.parts import ReasoningPart, TextPart, ToolPart
from tests.helpers.transcript_app import Stage, Writing, text_delta


def long(count: int = 40) -> Writing:
    writing = Writing()
    parent = None
    for number in range(count):
        turn = f"t{number}"
        writing.said(turn, f"Question {number}?", parent)
        writing.answered(turn, [ReasoningPart("Hm. " * 40), TextPart(f"Answer {number}.\n\nAnd more of it.")])
        parent = f"{turn}-out"
    return writing


def seen(app: Stage) -> str:
    transcript = app.transcript
    return "\n".join(transcript.render_line(y).text for y in range(transcript.size.height))


async def test_it_follows_its_end_and_stays_where_one_reads() -> None:
    writing = long()
    app = Stage(writing.state)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Answer 39." in seen(app)
        writing.said("new", "Another?", "t39-out")
        app.transcript.update_turns({"new"})
        await pilot.pause()
        assert "Another?" in seen(app)
        app.transcript.scroll_to(y=30, animate=False, force=True)
        await pilot.pause()
        first = seen(app).split("\n")[:20]
        assert not app.transcript.is_at_end
        for at in range(30):
            writing.delta(text_delta("new", at * 8, "more.\n\n."))
        app.transcript.update_turns({"new"})
        await pilot.pause()
        assert seen(app).split("\n")[:20] == first, "what is read stays where it is"
        assert "more below" in seen(app)
        await pilot.press("end")
        await pilot.pause()
        assert app.transcript.is_at_end
        assert "more below" not in seen(app)


async def test_another_width_wraps_again_and_keeps_the_end() -> None:
    app = Stage(long(20).state)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert "Answer 19." in seen(app)
        assert all(app.transcript.render_line(y).cell_length <= 40 for y in range(app.transcript.size.height))


async def test_keys_point_fold_copy_and_open_a_question() -> None:
    writing = Writing()
    writing.said("t", "Do it.")
    writing.answered("t", [ReasoningPart("A secret thought."), ToolPart("t-1", "mail", '{"to": "ann"}')], "tool_calls")
    writing.event(GateOpened(turn="t", gate=Gate("g1", "t", "t-1", "mail", '{"to": "ann"}', "h")))
    app = Stage(writing.state)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "A secret thought." not in seen(app)
        while app.transcript.picked is None or app.transcript.picked.kind != "call":
            await pilot.press("up")
        await pilot.press("enter")
        await pilot.pause()
        assert ("gate", "g1") in app.heard
        assert ("picked", "t-out") in app.heard
        await pilot.press("up", "enter")
        await pilot.pause()
        assert "A secret thought." in seen(app)
        await pilot.press("c")
        assert app.clipboard == "A secret thought."
        await pilot.press("space")
        await pilot.pause()
        assert "A secret thought." not in seen(app)
        assert app.told


async def test_only_what_changed_is_drawn_again() -> None:
    writing = long(30)
    app = Stage(writing.state)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        writing.said("new", "Another?", "t29-out")
        app.transcript.update_turns({"new"})
        await pilot.pause()
        for at in range(50):
            writing.delta(text_delta("new", at * 6, "word.\n" if at % 5 else "word.\n\n"))
            before = app.transcript.virtual_list.drawn_count
            app.transcript._tick = lambda: None  # the clock is not what is counted here
            app.transcript._block_list.touch({"new"})
            app.transcript._update()
            assert app.transcript.virtual_list.drawn_count - before <= 4, (
                "the tail, what it was cut from, and the status"
            )
