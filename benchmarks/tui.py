"""What it costs to draw an answer that streams: our transcript beside the ways that come to mind first.

    python benchmarks/tui.py [CHUNKS]

A whole app on Textual without a terminal, 100 by 30. Every way has the same text, draws it once in five chunks, which
is the follower's beat at a hundred chunks a second, and runs in the same process, one after the other: trust the ratios,
not the seconds. `each` is our own transcript told of every chunk, which no follower does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from time import process_time
from typing import Any, cast

from rich.markdown import Markdown as RichMarkdown
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown, Static

from everturn import api
from everturn.core.deltas import TextDelta
from everturn.core.events import AnswerStarted, StepStarted, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import TextPart
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.transcript import Transcript

CHUNK = 4  # characters
BEAT = 5  # chunks
PIECES = (
    "## Part {n}\n\nA paragraph that says *something* about part {n}, with `code`, **weight** and enough words to go on "
    "over more than one line of a terminal that is a hundred columns wide.\n\n",
    "- one thing of {n}\n- another thing, which is **heavier**\n  - and one below it\n\n",
    "```python\ndef part_{n}(value: int) -> str:\n    # it says which\n    return f'{{value}} of {n}'\n```\n\n",
    "| name | value |\n|---|---|\n| part | {n} |\n| next | {n}1 |\n\n",
)


def text_of(chunks: int) -> str:
    """An answer in markdown, of so many chunks."""
    size, text, n = chunks * CHUNK, "", 0
    while len(text) < size:
        text += PIECES[n % len(PIECES)].format(n=n)
        n += 1
    return text[:size]


class Ours(App[None]):
    """The transcript, and nothing else."""

    agents = api.AgentList(agents=[])
    language = "en"

    def __init__(self) -> None:
        super().__init__()
        self.state = SessionState()
        question = Message("in", None, "user", (TextPart("Say it."),), turn="t")
        answer = Message("out", "in", "assistant", by="model", turn="t")
        begun = (
            TurnStarted(turn="t", input=question),
            AnswerStarted(turn="t", message=answer),
            StepStarted(turn="t", step=1),
        )
        for seq, event in enumerate(begun, 1):
            self.state.apply(api.StreamItem(seq=seq, event=event))

    def compose(self) -> ComposeResult:
        yield Transcript()

    def on_mount(self) -> None:
        self.query_one(Transcript).show(self.state, None)

    def say(self, text: str, at: int) -> None:
        self.state.apply(api.StreamItem(delta=TextDelta("t", 3, 0, at, text)))

    async def draw(self, text: str) -> None:
        self.query_one(Transcript).update_turns({"t"})


class Theirs(App[None]):
    """One Markdown widget of Textual, which is given the whole text."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Markdown()

    async def draw(self, text: str) -> None:
        await self.query_one(Markdown).update(text)
        self.query_one(VerticalScroll).scroll_end(animate=False)


class Stream(Theirs):
    """The same, given what is new."""

    seen = 0

    async def draw(self, text: str) -> None:
        await self.query_one(Markdown).append(text[self.seen :])
        self.seen = len(text)
        self.query_one(VerticalScroll).scroll_end(animate=False)


class Whole(App[None]):
    """One Static with the whole text as rich's Markdown."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static()

    async def draw(self, text: str) -> None:
        self.query_one(Static).update(RichMarkdown(text))
        self.query_one(VerticalScroll).scroll_end(animate=False)


async def cost(make: Callable[[], App[None]], text: str, beat: int = BEAT) -> float:
    """CPU seconds for a text that comes in chunks."""
    app = cast("Any", make())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        began = process_time()
        for number, at in enumerate(range(0, len(text), CHUNK), 1):
            if isinstance(app, Ours):
                app.say(text[at : at + CHUNK], at)
            if number % beat == 0:
                await app.draw(text[: at + CHUNK])
                await pilot.pause()
        await app.draw(text)
        await pilot.pause()
        return process_time() - began


async def main(chunks: int) -> None:
    """Print a table."""
    text = text_of(chunks)
    ways: list[tuple[str, Callable[[], App[None]], int]] = [
        ("ours", Ours, BEAT),
        ("ours, each", Ours, 1),
        ("Textual Markdown, appended", Stream, BEAT),
        ("Textual Markdown, whole", Theirs, BEAT),
        ("rich Markdown, whole", Whole, BEAT),
    ]
    first = 0.0
    print(f"{chunks} chunks of {CHUNK} characters, CPU seconds")
    for name, make, beat in ways:
        took = await cost(make, text, beat)
        first = first or took
        print(f"  {name:<28}{took:7.2f}{took / first:8.1f}x", flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
