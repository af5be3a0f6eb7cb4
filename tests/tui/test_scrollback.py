"""Markdown in scrollback: what is on the screen in the end is what the text comes to, however it came."""

from __future__ import annotations

import asyncio
import io
import random
import re

import pytest

from everturn.terminal.tui import scrollback
from everturn.terminal.tui.render.markdown import draw_markdown
from everturn.terminal.tui.render.markdown_split import split_markdown
from everturn.terminal.tui.render.text import line_text

TEXT = """\
# A heading

Some **bold** and *soft* words, `code`, and [a link](https://example.org/x) that nobody can click.

- one
- two
  - deep

| a | b |
|---|---|
| 1 | 2 |

```python
def f(x: int) -> int:
    return x + 1
```

> quoted

你好 世界。The end.
"""
HOSTILE = "plain \x1b[2J\x1b]8;;https://x\x07link\x1b]8;;\x07 \x1b]52;c;AAAA\x07 [bold]no[/bold] :smile: \u202egnp\x9b31m \r over"
MADE = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\d+A\x1b\[J")
"""What we write beside text: colours, and going up over what is drawn again."""


class Glass:
    """A screen that is only as clever as it has to be: it goes up, clears, and takes lines."""

    def __init__(self) -> None:
        self.lines = [""]

    def see(self, written: str) -> None:
        for piece in re.split(r"(\x1b\[\d+A\x1b\[J|\x1b\[[0-9;]*m|\n)", written):
            if up := re.fullmatch(r"\x1b\[(\d+)A\x1b\[J", piece):
                assert int(up[1]) < len(self.lines), "it goes up over what is not there"
                del self.lines[len(self.lines) - 1 - int(up[1]) :]
                self.lines.append("")
            elif piece == "\n":
                self.lines.append("")
            elif not piece.startswith("\x1b["):
                self.lines[-1] += piece


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setattr(scrollback, "REDRAW_INTERVAL", 0.0)


async def typed(text: str, seed: int) -> str:
    out, chance, at = io.StringIO(), random.Random(seed), 0
    typing = scrollback.Scrollback(out)
    while at < len(text):
        size = chance.randint(1, 12)
        typing.feed(text[at : at + size])
        at += size
        if chance.random() < 0.7:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    typing.end()
    return out.getvalue()


def expected(text: str) -> list[str]:
    lines: list[str] = []
    for at, chunk in enumerate(split_markdown(text)):
        goes_on = chunk.kind == "code" and chunk.first != at
        lines += ([""] if at and not goes_on else []) + [line_text(line) for line in draw_markdown(chunk, 59)]
    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("seed", range(6))
async def test_however_it_came_the_screen_shows_the_same(seed: int) -> None:
    glass = Glass()
    glass.see(await typed(TEXT, seed))
    assert [line.rstrip() for line in glass.lines] == [*expected(TEXT), ""]
    assert "# A heading" not in "\n".join(glass.lines)


@pytest.mark.parametrize("seed", range(2))
async def test_what_a_model_writes_makes_no_sequence(seed: int) -> None:
    written = await typed(HOSTILE + "\n\n" + TEXT, seed)
    left = MADE.sub("", written)
    assert not [char for char in left if char != "\n" and not char.isprintable()]
    assert "[bold]no[/bold] :smile:" in " ".join(left.split())


async def test_what_is_finished_is_printed_once() -> None:
    text = "".join(f"Paragraph {number} with some words in it.\n\n" for number in range(400))
    written = await typed(text, 1)
    assert len(written) < 12 * len(text)
    assert written.count("Paragraph 7 ") < 12


async def test_a_tail_that_is_taller_than_the_screen_is_not_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "10")
    text = "- item\n" * 60
    for up in re.findall(r"\x1b\[(\d+)A", await typed(text, 3)):
        assert int(up) < 10
