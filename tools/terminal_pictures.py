"""The pictures of the terminal in docs/terminal/terminal.md: a real `everturn chat` in tmux. → docs/assets/terminal*.svg

`python -m tools.terminal_pictures` needs tmux. The model is a script behind a real server, as in `terminal_recording`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from everturn.testing.provider import Call, Provider, Say
from tools.terminal_recording import COLUMNS, PICTURE, ROWS, SOCKET, Recording, draw, tmux

TOOLS: Final = '''from everturn import tool


@tool(read_only=True)
def weather(city: str) -> str:
    """The weather of today."""
    return {"Lisbon": "18 °C, light rain", "Oslo": "3 °C, snow"}[city]


@tool(approval="always")
def send_mail(to: str, subject: str, body: str) -> str:
    """Send a mail."""
    return f"sent to {to}"
'''
CONFIG: Final = """[models.demo]
model = "compatible:demo"
base_url = "{provider}"
window = 128000

[agents.assistant]
model = "demo"

[tools]
python = ["mail.py"]
"""
QUESTION: Final = "How is the weather in Lisbon and Oslo? Write it to Ann."


def photograph(home: str) -> tuple[Recording, Recording]:
    """The approval of the mail, and the end of the turn."""
    words = [
        f"HOME={home}",
        f"XDG_CONFIG_HOME={home}/config",
        "TERM=tmux-256color",
        "COLORTERM=truecolor",
        "LANG=C.UTF-8",
    ]
    words += [f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"]
    command = ["env", "-i", *words, "everturn", "chat"]
    tmux("new-session", "-d", "-s", "r", "-x", str(COLUMNS), "-y", str(ROWS), "-c", home, *command)
    approval, end = Recording(), Recording()
    try:
        approval.wait_for(r"Ask anything")
        tmux("send-keys", "-t", "r", "-l", QUESTION)
        time.sleep(1)
        tmux("send-keys", "-t", "r", "Enter")
        approval.wait_for(r"Allow send_mail")
        time.sleep(2)
        approval.show(1.0)
        tmux("send-keys", "-t", "r", "y")
        end.wait_for(r"knows")
        time.sleep(2)
        end.show(1.0)
    finally:
        subprocess.run(["tmux", "-L", SOCKET, "kill-server"], check=False, capture_output=True)
    return approval, end


async def main() -> None:
    """Take both pictures, and write the files."""
    with tempfile.TemporaryDirectory(prefix="shop-", ignore_cleanup_errors=True) as home:
        config = Path(home) / "config" / "everturn"
        config.mkdir(parents=True)
        (config / "mail.py").write_text(TOOLS, encoding="utf-8")
        async with Provider() as provider:
            first_answer = [
                Say("I look at both cities."),
                Call("weather", '{"city": "Lisbon"}'),
                Call("weather", '{"city": "Oslo"}'),
            ]
            mail = '{"to": "ann@example.org", "subject": "Weather", "body": "Lisbon: rain. Oslo: snow."}'
            provider.script(
                "demo",
                [first_answer, [Call("send_mail", mail)], [Say("Ann knows: **rain** in Lisbon, **snow** in Oslo.")]],
            )
            (config / "everturn.toml").write_text(CONFIG.format(provider=f"{provider.url}/v1"), encoding="utf-8")
            approval, end = await asyncio.to_thread(photograph, home)
    for name, label, recording in (
        ("terminal-gate", "An approval at the bottom of the terminal, before a mail is sent", approval),
        ("terminal", "A conversation in the terminal: two calls at once, and a mail that a person allowed", end),
    ):
        file = PICTURE.with_name(f"{name}.svg")
        file.write_text(draw(recording.frames, label), encoding="utf-8")
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    asyncio.run(main())
