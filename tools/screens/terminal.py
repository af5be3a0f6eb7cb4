"""Screenshots of the states of the terminal UI, as contact sheets to look at:

    python -m tools.screens.terminal DIR [--looks 80-dark-en,160-light-zh] [--only mail,help]

Each look is a width, a theme and a language. The picture of a state is DIR/LOOK/STATE.svg; DIR/LOOK.png has all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import re
from itertools import product
from pathlib import Path
from typing import Final

from msgspec import Struct
from playwright.sync_api import sync_playwright
from rich.cells import cell_len
from tests.helpers.scripted_server.server import Rig, a_rig

from everturn.client import Server
from everturn.terminal.tui.app import TerminalApp

SIZES: Final = {"80": (80, 24), "100": (100, 30), "160": (160, 45)}
LOOKS: Final = ["-".join(look) for look in product(SIZES, ("dark", "light"), ("en", "zh"))]
SETTLE: Final = 2.5  # seconds until a state is drawn: its events come over HTTP


class State(Struct, frozen=True):
    """A state: the message of its session ("": a new one), and the keys that lead to it."""

    name: str
    message: str = ""
    keys: tuple[str, ...] = ()


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
    State("shell", "shell pace 0"),
    State("form", "form pace 0"),
    State("inbox", keys=("ctrl+g",)),
    State("compare", "versions", ("f10",)),
)


async def shoot(rig: Rig, sessions: dict[str, str], look: str, states: list[State], folder: Path) -> list[Path]:
    """Photograph the states of one look."""
    size, theme, language = look.split("-")
    taken: list[Path] = []
    for state in states:
        async with Server(rig.url, (rig.home / "token").read_text().strip()) as server:
            name = f"everturn-{theme}" if theme == "light" else ""
            app = TerminalApp(server, session=sessions.get(state.message, ""), language=language, theme=name)
            async with app.run_test(size=SIZES[size], notifications=True) as pilot:
                await asyncio.sleep(SETTLE)
                for key in state.keys:
                    if state.name == "compare":
                        await app.action_compare()
                    else:
                        await pilot.press(key)
                await asyncio.sleep(0.8)
                await pilot.pause()
                file = folder / look / f"{state.name}.svg"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(app.export_screenshot(title=f"{look} {state.name}"), encoding="utf-8")
                taken.append(file)
    return taken


def make_sheet(folder: Path, look: str, files: list[Path]) -> None:
    """All pictures of a look in one, two or three in a row."""
    width = 760
    cells = "".join(f'<div style="width:{width}px">{_inline(file, number)}</div>' for number, file in enumerate(files))
    body = f'<body style="margin:0;background:#888;display:flex;flex-wrap:wrap;gap:6px;width:{2 * width + 6}px">{cells}'
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 2 * width + 6, "height": 400})
        page.set_content(body)
        page.screenshot(path=folder / f"{look}.png", full_page=True)
        browser.close()


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
        for look in options.looks.split(","):
            files = asyncio.run(shoot(rig, sessions, look, states, options.folder))
            make_sheet(options.folder, look, files)
            print(options.folder / f"{look}.png", flush=True)


if __name__ == "__main__":
    main()
