"""The recording in README.md: a real `everturn` in tmux, killed in the middle, and continued. → docs/assets/recording.svg

`python -m tools.terminal_recording` needs tmux. The model is a script behind a real server; everything else is what a user
gets. The SVG has its own background, so it reads on light and dark pages; without animation it shows its last frame.
"""

from __future__ import annotations

import asyncio
import html
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.cells import cell_len

from everturn.testing.provider import Call, Pause, Provider, Say

PICTURE: Final = Path(__file__).parent.parent / "docs" / "assets" / "recording.svg"
COLUMNS, ROWS = 88, 24
LABEL: Final = "everturn in a terminal: it asks before it changes a file, is killed, and asks again after the start"
WIDE, HIGH, MARGIN = 8.0, 17, 12  # pixels of a cell, and around all of them
SOCKET: Final = "everturn-recording"
PROGRAM: Final = """def total(prices: list[float]) -> float:
    return sum(prices) / len(prices)
"""
CONFIG: Final = """[models.demo]
model = "compatible:demo"
base_url = "{provider}"
window = 128000
[agents.assistant]
model = "demo"
"""
QUESTION: Final = "total() in shop.py is wrong. Fix it."
PALETTE: Final = ("#2e3436", "#ef6b73", "#8cc570", "#d9b45b", "#6ea8fe", "#c792ea", "#5fc9c9", "#d0d4da",
                  "#7c828d", "#ff8a92", "#a5d68a", "#f0cb77", "#8ebbff", "#d9aef5", "#82dcdc", "#ffffff")  # fmt: skip
FOREGROUND, BACKGROUND = "#d0d4da", "#14171c"
SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")

Span = tuple[str, str, str, bool]  # text, colour, background, bold
Line = tuple[Span, ...]


# ---------------------------------------------------------------------------------------------------------- the screen


def tmux(*words: str) -> str:
    """A command of tmux, on a server of its own."""
    return subprocess.run(
        ["tmux", "-L", SOCKET, "-f", "/dev/null", *words], capture_output=True, text=True, check=True
    ).stdout


def read_screen() -> tuple[Line, ...]:
    """The rows of the screen as they are now."""
    rows = tmux("capture-pane", "-e", "-p", "-t", "r").split("\n")[:ROWS]
    look = Look()  # tmux writes only what changes, also from one row to the next
    return tuple(read_line(row, look) for row in rows)


def read_line(text: str, look: Look) -> Line:
    """A row with its colours."""
    spans: list[Span] = []
    for at, piece in enumerate(SGR.split(text)):
        if at % 2:
            look.obey([int(code or 0) for code in piece.replace(":", ";").split(";")])
        elif piece:
            spans.append((piece, *look.colours, look.is_bold))
    return tuple(spans)


class Look:
    """The colours of what is written next."""

    def __init__(self) -> None:
        self.front, self.behind, self.is_bold, self.is_inverse = FOREGROUND, "", False, False

    @property
    def colours(self) -> tuple[str, str]:
        """The colour of the letters, and that behind them ("": the background)."""
        return (self.behind or BACKGROUND, self.front) if self.is_inverse else (self.front, self.behind)

    def obey(self, codes: list[int]) -> None:
        """Codes of one sequence."""
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.front, self.behind, self.is_bold, self.is_inverse = FOREGROUND, "", False, False
            elif code in (1, 22):
                self.is_bold = code == 1
            elif code in (7, 27):
                self.is_inverse = code == 7
            elif code in (38, 39) or 30 <= code <= 37 or 90 <= code <= 97:
                self.front = read_colour(codes) if code == 38 else colour_of(code - 30) or FOREGROUND
            elif code in (48, 49) or 40 <= code <= 47 or 100 <= code <= 107:
                self.behind = read_colour(codes) if code == 48 else colour_of(code - 40)


def colour_of(number: int) -> str:
    """One of the sixteen colours: 0 to 7, and 60 to 67 for the bright ones; "" for the default."""
    return "" if number == 9 else PALETTE[number if number < 8 else number - 52]


def read_colour(codes: list[int]) -> str:
    """`2;r;g;b` or `5;n`, taken off the front."""
    if codes.pop(0) == 2:
        red, green, blue = codes[:3]
        del codes[:3]
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = codes.pop(0)
    if number < 16:
        return PALETTE[number]
    if number > 231:
        return f"#{(number - 232) * 10 + 8:02x}" + f"{(number - 232) * 10 + 8:02x}" * 2
    levels = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#" + "".join(f"{levels[part]:02x}" for part in (number // 36, number // 6 % 6, number % 6))


# ------------------------------------------------------------------------------------------------------- the recording


class Recording:
    """Frames: what the screen shows, and for how many seconds."""

    def __init__(self) -> None:
        self.frames: list[tuple[tuple[Line, ...], float]] = []

    def show(self, seconds: float) -> None:
        """The screen as it is now, for so long."""
        screen = read_screen()
        if self.frames and self.frames[-1][0] == screen:
            self.frames[-1] = (screen, self.frames[-1][1] + seconds)
        else:
            self.frames.append((screen, seconds))

    def write(self, text: str, pieces: int = 6) -> None:
        """Type a text."""
        size = -(-len(text) // pieces)
        for start in range(0, len(text), size):
            tmux("send-keys", "-t", "r", "-l", text[start : start + size])
            time.sleep(0.25)
            self.show(0.16)

    def wait_for(self, pattern: str, seconds: float = 90) -> None:
        """Wait until it is on the screen.

        Raises:
            TimeoutError: it did not come.
        """
        end = time.monotonic() + seconds
        while not re.search(pattern, text := tmux("capture-pane", "-p", "-t", "r")):
            if time.monotonic() > end:
                raise TimeoutError(f"{pattern!r} did not come:\n{text}")
            time.sleep(0.2)
        time.sleep(0.8)


def record(folder: Path, environment: dict[str, str]) -> Recording:
    """The story: a bug, an approval, kill -9, and the same approval after it."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    recording = Recording()
    words = [f"{name}={value}" for name, value in environment.items()]
    shell = ["env", "-i", *words, "bash", "--norc", "--noprofile"]
    tmux("new-session", "-d", "-s", "r", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(folder), *shell)
    try:
        time.sleep(1)
        recording.show(0.6)
        recording.write("everturn", 3)
        tmux("send-keys", "-t", "r", "Enter")
        recording.wait_for(r"Ask anything")
        recording.show(1.0)
        recording.write(QUESTION)
        tmux("send-keys", "-t", "r", "Enter")
        recording.wait_for(r"edit_file")
        time.sleep(2)
        recording.show(3.2)
        pane = tmux("list-panes", "-t", "r", "-F", "#{pane_pid}").strip()
        for child in Path(f"/proc/{pane}/task/{pane}/children").read_text("utf-8").split():
            os.kill(int(child), signal.SIGKILL)
        recording.wait_for(r"shop \$ everturn\s+shop \$")
        recording.write("# killed with SIGKILL while it waited", 4)
        tmux("send-keys", "-t", "r", "Enter")
        time.sleep(0.5)
        recording.show(0.8)
        recording.write("everturn -c", 3)
        tmux("send-keys", "-t", "r", "Enter")
        recording.wait_for(r"edit_file")
        time.sleep(2)
        recording.show(2.6)
        tmux("send-keys", "-t", "r", "y")
        recording.wait_for(r"Fixed")
        time.sleep(1.5)
        recording.show(5.0)
    finally:
        subprocess.run(["tmux", "-L", SOCKET, "kill-server"], check=False, capture_output=True)
    return recording


# ------------------------------------------------------------------------------------------------------------- the SVG


def draw(frames: Sequence[tuple[tuple[Line, ...], float]], label: str) -> str:
    """An SVG in which one frame is visible at a time. Rows that several frames have are drawn once."""
    width, height = round(COLUMNS * WIDE + 2 * MARGIN), ROWS * HIGH + 2 * MARGIN
    rows: dict[Line, str] = {}
    total = sum(seconds for _, seconds in frames)
    styles: list[str] = []
    groups: list[str] = []
    start = 0.0
    for at, (screen, seconds) in enumerate(frames):
        begin, end = 100 * start / total, 100 * (start + seconds) / total
        start += seconds
        before = f"0%,{begin:.2f}%{{opacity:0}}" if begin else ""
        behind = f"{end:.2f}%,100%{{opacity:0}}" if at < len(frames) - 1 else "100%{opacity:1}"
        styles.append(
            f"@keyframes f{at}{{{before}{begin + 0.01:.2f}%,{end - 0.01:.2f}%{{opacity:1}}{behind}}}#f{at}{{animation-name:f{at}}}"
        )
        uses = "".join(
            f'<use href="#{rows.setdefault(line, f"r{len(rows)}")}" y="{MARGIN + number * HIGH}"/>'
            for number, line in enumerate(screen)
            if any(text.strip() or behind for text, _, behind, _ in line)
        )
        groups.append(f'<g id="f{at}">{uses}</g>')
    definitions = "".join(f'<g id="{name}">{draw_line(line)}</g>' for line, name in rows.items())
    style = (
        f"text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}}.b{{font-weight:700}}"
        f"svg>g{{opacity:0;animation:{total:.1f}s step-end infinite}}svg>g:last-child{{opacity:1}}"
        + "".join(styles)
        + "@media(prefers-reduced-motion){svg>g{animation:none!important}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}"><style>{style}</style><defs>{definitions}</defs>'
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>{"".join(groups)}</svg>\n'
    )


def draw_line(line: Line) -> str:
    """The spans of a row, each at its column."""
    drawn: list[str] = []
    column = 0
    for text, colour, background, bold in line:
        x, size = MARGIN + column * WIDE, cell_len(text)
        if background and background != BACKGROUND:
            drawn.append(f'<rect x="{x:g}" width="{size * WIDE:g}" height="{HIGH}" fill="{background}"/>')
        if shown := text.strip():
            x += (len(text) - len(text.lstrip())) * WIDE
            length = f' textLength="{cell_len(shown) * WIDE:g}"' if cell_len(shown) > 1 else ""
            strong = ' class="b"' if bold else ""
            drawn.append(
                f'<text x="{x:g}" y="13"{length} fill="{colour}"{strong}>{html.escape(shown, quote=False)}</text>'
            )
        column += size
    return "".join(drawn)


async def main() -> None:
    """Record it, and write the file."""
    with tempfile.TemporaryDirectory(prefix="shop-", ignore_cleanup_errors=True) as home:
        folder, config = Path(home) / "shop", Path(home) / "config" / "everturn"
        folder.mkdir()
        config.mkdir(parents=True)
        (folder / "shop.py").write_text(PROGRAM)
        environment = {
            "HOME": home,
            "XDG_CONFIG_HOME": f"{home}/config",
            "TERM": "tmux-256color",
            "COLORTERM": "truecolor",
            "PS1": "shop $ ",
        }
        environment |= {"PROMPT_COMMAND": r"printf '\e[?1049l\e[?1000l\e[?1003l\e[?1006l\e[?25h'", "LANG": "C.UTF-8"}
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        async with Provider() as provider:
            read = [Say("I read the file first."), Call("read_file", '{"path": "shop.py"}')]
            edit = [Say("It divides the sum by the number of prices, which is a mean."), Pause(0.2),
                    Call("edit_file", '{"path": "shop.py", "old_text": "    return sum(prices) / len(prices)", "new_text": "    return sum(prices)"}')]  # fmt: skip
            provider.script("demo", [read, edit, [Say("Fixed: `total()` returns the sum of the prices.")]])
            (config / "everturn.toml").write_text(CONFIG.format(provider=f"{provider.url}/v1"))
            recording = await asyncio.to_thread(record, folder, environment)
    PICTURE.write_text(draw(recording.frames, LABEL), encoding="utf-8")
    print(f"{PICTURE}: {len(recording.frames)} frames, {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    asyncio.run(main())
