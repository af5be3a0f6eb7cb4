"""`everturn acp`: the agent of an editor, on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Final

from everturn.cli.first_run_texts import detect_language
from everturn.cli.model_option import resolve_model_option
from everturn.cli.output import print_error
from everturn.cli.run.folder import MODES
from everturn.config.folder.project import find_project
from everturn.config.folder.trust import FolderTrust
from everturn.config.tools import state_folder
from everturn.core.canonical_json import replace_surrogates

NEEDED: Final = ("starlette", "uvicorn", "jwt")
MISSING: Final = "an editor talks to the server of the sessions, which is not installed: pip install 'everturn[server]'"
LONGEST: Final = 64 * 2**20  # bytes of a line; a prompt may have images


def acp(options: argparse.Namespace) -> int:
    """Serve the editor until it closes the connection.

    Raises:
        ConfigError: there is no such model, file or store.
        StoreBusy: another process has the store, and does not share it.
    """
    if any(find_spec(name) is None for name in NEEDED):
        return print_error(MISSING, 2)
    chat_options = make_chat_options(options)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, force=True)
    # Only the protocol may reach these two: tools that print, and programs that they start, have others.
    reading, writing = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return asyncio.run(_serve(options, chat_options, reading, writing))


def make_chat_options(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options of `everturn chat` for the server that the sessions are at."""
    from everturn.cli.args.commands import make_parser

    words = ["chat", "--here"]
    for name in ("model", "base_url", "config", "store"):
        if value := getattr(options, name):
            words += [f"--{name.replace('_', '-')}", replace_surrogates(value)]
    chat_options = make_parser().parse_args(words)
    resolve_model_option(chat_options)
    return chat_options


async def _serve(options: argparse.Namespace, chat_options: argparse.Namespace, reading: int, writing: int) -> int:
    from everturn.acp.agent import AcpAgent
    from everturn.acp.texts import get_acp_texts
    from everturn.acp.unused_sessions import UnusedSessions
    from everturn.cli.store.local_server import open_chat_server

    loop = asyncio.get_running_loop()
    async with open_chat_server(chat_options) as chat_server:
        for note in chat_server.notes:
            print_error(note, 0)

        async def write(line: bytes) -> None:
            await asyncio.to_thread(_write_all, writing, line)

        texts = get_acp_texts(detect_language(os.environ))
        agent = AcpAgent(
            chat_server.server,
            write,
            texts,
            mode=MODES[options.mode],
            model="" if chat_server.is_own_process else replace_surrogates(chat_options.model or ""),
            trust=trust_folder if options.trust else None,
            unused=UnusedSessions(state_folder(os.environ) / "editor-sessions"),
        )
        if chat_server.connection is not None:

            def moved(_: bool) -> None:
                agent.connection.start(agent.reopen_folders())

            chat_server.connection.on_moved = moved
        serving = loop.create_task(agent.serve(read_lines(reading)))
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, serving.cancel)
        with suppress(asyncio.CancelledError, BrokenPipeError):  # the editor is gone; turns are in the store
            await serving
    return 0


async def read_lines(file: int) -> AsyncIterator[bytes]:
    """Yield the lines of a file, which a thread reads; a line that is too long is replaced by an invalid one."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        with os.fdopen(file, "rb") as source, suppress(OSError, RuntimeError):  # RuntimeError: the loop has ended
            while line := source.readline(LONGEST):
                if len(line) == LONGEST and not line.endswith(b"\n"):
                    while (rest := source.readline(LONGEST)) and not rest.endswith(b"\n"):
                        pass
                    line = b"!"
                loop.call_soon_threadsafe(lines.put_nowait, line)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="acp-stdin", daemon=True).start()
    while line := await lines.get():
        yield line


def trust_folder(folder: str) -> None:
    """Trust a folder, and its instruction files as they are now: --trust says so."""
    project, trust = find_project(folder), FolderTrust()
    if not trust.is_trusted(project):
        trust.trust(project)
    if files := trust.unanswered(project):
        trust.answer(project, files, True)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
