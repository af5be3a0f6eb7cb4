"""A process that kills itself at a failpoint of an upload: `python -m tests.turn.killed_upload_process <folder> <url> <model>
<failpoint>`; with "" it ends by itself, and prints the answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from everturn import Agent, App, TextPart, failpoints, get_model
from everturn.stores.sql.store import SqlStore

PDF = b"%PDF-1.4\n" + b"x" * 5_000 + b"\n%%EOF\n"


async def main(folder: str, url: str, model: str, point: str) -> None:
    """Send a message with a large file, or continue its turn."""

    def plan(hit: str) -> None:
        if hit == point:
            os.kill(os.getpid(), signal.SIGKILL)

    if point:
        failpoints.install_plan(plan)
    store = SqlStore.sqlite(Path(folder) / "log.db")
    agent = Agent(get_model(model, base_url=url, key="sk-key-of-the-test", upload_above=1_000), name="a")
    async with App(agents=[agent], store=store) as app:
        chat = app.chat("s", agent="a")
        turn = await chat.send([TextPart("Read it."), await chat.attach(PDF, name="c.pdf")], key="once")
        print((await turn.result()).text, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
