"""Screenshots of the states of the terminal UI, as contact sheets to look at:

    python -m tools.screens.terminal DIR [--looks 80-dark-en,160-light-zh] [--only mail,help]

Each look is a width, a theme and a language. The picture of a state is DIR/LOOK/STATE.svg; DIR/LOOK-1.png, DIR/LOOK-2.png and
so on have all of them, as many on one sheet as can be read. Texts with less contrast than WCAG asks for are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import re
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct
from playwright.sync_api import sync_playwright
from rich.cells import cell_len
from tests.helpers.contrast import poor_pairs
from tests.helpers.scripted_server.server import Rig, a_rig
from textual._context import visible_screen_stack  # or a dialog would be drawn, and cached, without what is below it
from textual.pilot import Pilot, WaitForScreenTimeout

from everturn.client import Server
from everturn.terminal.tui.app import TerminalApp
from everturn.terminal.tui.gates.dialog import KEY_GUARD_SECONDS, GateScreen
from everturn.terminal.tui.themes import DARK, LIGHT

T = TypeVar("T")
SIZES: Final = {"60": (60, 20), "80": (80, 24), "100": (100, 30), "160": (160, 45)}
LOOKS: Final = ["-".join(look) for look in product(("80", "100", "160"), ("dark", "light"), ("en", "zh"))]
LOOK_AGAIN: Final = 0.3  # seconds between two looks at a screen, which is ready when three of them see the same
PATIENCE: Final = 60.0  # seconds, at most, until it is
AT_ONCE: Final = 4  # apps that settle at the same time
SHEET: Final = 1550  # pixels of the width and, at most, of the height of a sheet
WIDE_CHARACTERS: Final = """\
| 名称 | 价格 | 说明 |
|:--|--:|:--|
| 台灯 🪔 | 12.50 | 黄铜的、带绿色灯罩、放在大厅里的桌子上、晚上六点以后才会点亮 |
| 👩‍👩‍👧 family | 1,900,000.00 | a `zero-width` joiner, and flags 🇨🇳🇩🇪 |
| é (combining) | 0 | 全角 |
"""
LONG_PATH: Final = f"src/{'a_folder_with_a_long_name/' * 5}and_a_file_with_a_name_that_is_long.py"
LONG_TEXT: Final = "\n".join(f"line {number}: value = {number * 7} # {'text ' * (number % 9)}" for number in range(300))


def call(name: str, /, **arguments: object) -> str:
    """The words that make the scripted model call a tool."""
    return f"call {name} {json.dumps(arguments, ensure_ascii=False)}"


class State(Struct, frozen=True):
    """A state: the message of its session ("": a new one), and the keys or the action of the app that lead to it."""

    name: str
    message: str = ""
    keys: tuple[str, ...] = ()
    action: str = ""
    typed: tuple[str, ...] = ()


STATES: Final = (
    State("start"),
    State("commands", keys=("slash",)),
    State("help", keys=("f1",)),
    State("models", keys=("ctrl+l",)),
    State("sessions", keys=("ctrl+o",)),
    State("palette", keys=("ctrl+p",)),
    State("story", "story pace 0"),
    State("files", "files pace 0"),
    State("table", "table pace 0"),
    State("code", "code pace 0"),
    State("error", "error pace 0"),
    State("fails", "fails pace 0"),
    State("mail", "mail pace 0"),
    State("mail-help", "mail pace 0", ("question_mark",)),
    State("mail-always", "mail pace 0", ("n",)),
    State("mail-edit", "mail pace 0", ("e",)),
    State("mail-left", "mail pace 0", ("escape",)),
    State("mails", "mails pace 0"),
    State("shell", "shell pace 0"),
    State("shell-always", "shell pace 0", ("a",)),
    State("form", "form pace 0"),
    State("form-open", "form pace 0", ("f",)),
    State("review", call("lookup", name="ann")),
    State("manual", "manual pace 0"),
    State("subagent", "trip pace 0"),
    State("hidden", "hidden pace 0"),
    State("inbox", keys=("ctrl+g",)),
    State("compare", "versions", action="compare"),
    State("branches", "versions", ("ctrl+b",)),
    State("wide", f"echo:{WIDE_CHARACTERS}"),
    State("long-path", call("write_file", path=LONG_PATH, content="one line\n")),
    State("long-diff", call("write_file", path="long.txt", content=LONG_TEXT)),
    State("long-line", call("send_mail", to="ann@example.org", subject="长" * 120, body="word " * 300)),
    State("hundred", " ".join(call("look", place=f"room {number}") for number in range(100))),
    State("reasoning", "reason pace 0"),
    State("math", "math pace 0"),
    State("long", "long 900 pace 0"),
    State("loop", "loop pace 0"),
    State("unknown", "unknown pace 0"),
    State("denied", "forbidden pace 0"),
    State("page", "page pace 0"),
    State("unfolded", "page pace 0", ("f6", "up", "up", "enter")),
    State("todos", call("write_todos", todos=[{"content": "读文件 and write the test", "status": "completed"},
                                              {"content": "change it " * 12, "status": "in_progress"},
                                              {"content": "run it", "status": "pending"}])),
    State("running", typed=("slow 60",)),
    State("queued", typed=("slow 60", "and then this, which waits until the turn has ended " * 3)),
    State("side", "table pace 0", ("f2",)),
    State("context", "table pace 0", action="context"),
    State("changes", "files pace 0", ("escape",), action="files"),
    State("usage", action="usage"),
    State("settings", action="settings"),
    State("permissions", action="permissions"),
    State("servers", action="servers"),
    State("memory", action="memory"),
    State("prompts", action="prompts"),
    State("toast", "table pace 0", typed=("/nothing",)),
)  # fmt: skip


def in_groups(things: list[T], size: int) -> list[list[T]]:
    """The things, so many in a group."""
    return [things[at : at + size] for at in range(0, len(things), size)]


async def shoot(rig: Rig, sessions: dict[str, str], looks: list[str], states: list[State], folder: Path) -> None:
    """Photograph the states in looks of one language."""
    for group in in_groups(states, AT_ONCE):
        await asyncio.gather(
            *(shoot_state(rig, sessions.get(state.message, ""), looks, state, folder) for state in group)
        )


async def shoot_state(rig: Rig, session: str, looks: list[str], state: State, folder: Path) -> None:
    """Photograph one state in looks of one language: one app, which is resized and gets another theme."""
    first, language = looks[0], looks[0].rpartition("-")[2]
    async with Server(rig.url, (rig.home / "token").read_text().strip()) as server:
        app = TerminalApp(server, session=session, language=language)
        setattr(app, "NOTIFICATION_TIMEOUT", 600.0)  # noqa: B010 - a toast is on all pictures
        async with app.run_test(size=SIZES[first.partition("-")[0]], notifications=True) as pilot:
            await ready(app, pilot, session)
            for key in state.keys:
                await pilot.press(key)
            if state.action:
                await app.run_action(f"app.{state.action}")
            for text in state.typed:
                app.chat_screen.composer.write(text)
                await pilot.press("enter")
                await asyncio.sleep(1)
            for look in looks:
                size, theme, _ = look.split("-")
                app.theme = LIGHT if theme == "light" else DARK
                await pilot.resize_terminal(*SIZES[size])
                await ready(app, pilot, session, is_first=False)
                file = folder / look / f"{state.name}.svg"
                file.parent.mkdir(parents=True, exist_ok=True)
                for pair in poor_pairs(app):
                    text = f"{pair.ratio:.1f} {pair.foreground} on {pair.background}: {pair.text[:40]}"
                    print(f"{look} {state.name}: {text}")
                file.write_text(app.export_screenshot(title=f"{look} {state.name}"), encoding="utf-8")


async def ready(app: TerminalApp, pilot: Pilot[int], session: str, *, is_first: bool = True) -> None:
    """Wait until a screen is as it stays: all is loaded, a gate has opened, and nothing but numbers changes."""
    before, same, until = "", 0, time.monotonic() + PATIENCE
    while same < 3 and time.monotonic() < until:
        await asyncio.sleep(LOOK_AGAIN)
        with suppress(WaitForScreenTimeout):  # a busy machine
            await pilot.pause()
        has_session = not session or bool(app.follower and app.follower.state.turns)
        is_loaded = has_session and app._started.is_set()  # pyright: ignore[reportPrivateUsage]
        gate = app.screen if isinstance(app.screen, GateScreen) else None
        is_asked = is_first and bool(app.gates_of_session()) and (gate is None or not gate.summary.is_known)
        visible_screen_stack.set(app._background_screens)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownArgumentType]
        strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        drawn = re.sub(r"[\d.]+", "", "\n".join("".join(segment.text for segment in strip) for strip in strips))
        same = same + 1 if drawn == before and is_loaded and not is_asked else 0
        before = drawn
    if isinstance(app.screen, GateScreen):
        await asyncio.sleep(KEY_GUARD_SECONDS)


def make_sheets(folder: Path, look: str, files: list[Path]) -> list[Path]:
    """All pictures of a look, two in a row, on sheets that are not larger than a viewer shows."""
    columns, rows = SIZES[look.partition("-")[0]]
    width = SHEET // 2 - 6
    height = width * (rows * 24.4 + 60) / (columns * 12.2 + 20)
    sheets: list[Path] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for number, group in enumerate(in_groups(files, 2 * max(1, int(SHEET / height))), 1):
            cells = "".join(f'<div style="width:{width}px">{_inline(file, at)}</div>' for at, file in enumerate(group))
            page = browser.new_page(viewport={"width": SHEET, "height": 400})
            page.set_content(f'<body style="margin:0;background:#888;display:flex;flex-wrap:wrap;gap:6px">{cells}')
            sheets.append(folder / f"{look}-{number}.png")
            page.screenshot(path=sheets[-1], full_page=True)
            page.close()
        browser.close()
    return sheets


def _inline(file: Path, number: int) -> str:
    """An SVG without its web fonts, and with ids of its own."""
    svg = re.sub(r"@font-face \{.*?\}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    svg = re.sub(r'textLength="([\d.]+)"([^>]*)>([^<]*)<', _widen, svg)
    svg = re.sub(r"terminal-(\d+)", rf"terminal-\1-{number}", svg)
    return svg.replace("Fira Code", "DejaVu Sans Mono, Noto Sans Mono CJK SC, Noto Sans CJK SC")


def _widen(found: re.Match[str]) -> str:
    """The length of a text in cells: the export counts its characters, and Chinese ones are two cells wide."""
    text = html.unescape(found[3])
    return f'textLength="{float(found[1]) * cell_len(text) / max(len(text), 1)}"{found[2]}>{found[3]}<'


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Screenshots of the terminal UI.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--looks", default=",".join(LOOKS))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    states = [state for state in STATES if not options.only or state.name in options.only.split(",")]
    with a_rig() as rig:
        sessions = {state.message: "" for state in states if state.message}
        for message in sessions:
            sessions[message] = rig.say("plain 20 pace 0" if message == "versions" else message)["session"]
        if session := sessions.get("versions"):
            rig.wait_idle(session, 60)
            rig.api("POST", f"/api/sessions/{session}/messages/{rig.messages(session)[-1]['id']}/rerun", {})
        looks = options.looks.split(",")
        for language in ("en", "zh"):
            if same := [look for look in looks if look.endswith(language)]:
                asyncio.run(shoot(rig, sessions, same, states, options.folder))
    for look in looks:
        files = [options.folder / look / f"{state.name}.svg" for state in states]
        print(*make_sheets(options.folder, look, files), sep="\n", flush=True)


if __name__ == "__main__":
    main()
