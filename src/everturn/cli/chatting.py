"""`everturn chat`: what a command line says → a conversation on the whole screen, or line by line."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO

from everturn.cli.early_input import TOLD, EarlyInput, early_input
from everturn.cli.plain_chat import NO_STORE
from everturn.cli.plain_chat import chat as line_by_line
from everturn.cli.saying import complain, is_terminal
from everturn.core.canonical import clean

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp

NEEDED: Final = ("textual", "starlette", "uvicorn", "jwt")
MORE = "for the whole screen: pip install 'everturn[tui]'"
NO_SCREEN = "--connect draws on the whole screen, and that cannot be done here: {}; `everturn run --connect` can"
LOOK, GONE = 1.0, 5.0  # seconds between two looks at the terminal, and to leave once it is gone


def chat(options: argparse.Namespace) -> int:
    """Talk until the person leaves, and return the exit code.

    Raises:
        ConfigError: there is no such model, file, folder, tool or rule; StoreBusy, StoreUnavailable: of the store.
    """
    why = no_screen(options)
    if not why:
        return _whole_screen(options)
    if options.connect:
        return complain(NO_SCREEN.format(why), 2)
    if why == "it is not installed" and not options.plain and is_typed():
        print(f"everturn: {MORE}", file=sys.stderr)
    return line_by_line(options)


def chat_now() -> int:
    """What bare `everturn` does once there is a configuration."""
    from everturn.cli.words import make_parser

    return chat(make_parser().parse_args(["chat"]))


def no_screen(options: argparse.Namespace) -> str:
    """Why the whole screen cannot be drawn on; "" if it can."""
    if options.plain:
        return "--plain was said"
    if options.save:
        return "--save is for line by line"
    if not is_typed():
        return "this is no terminal"
    if os.environ.get("TERM", "") in ("", "dumb") and os.name != "nt":
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    from importlib.util import find_spec

    return "it is not installed" if any(find_spec(name) is None for name in NEEDED) else ""


def is_typed() -> bool:
    """Whether a person sits in front of it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


# On the whole screen ---------------------------------------------------------------------------------------------------


def _whole_screen(options: argparse.Namespace) -> int:
    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    if options.session and not (options.store or options.connect):
        return complain(NO_STORE, 2)
    with early_input() as early:
        return asyncio.run(_draw(options, early))


async def _draw(options: argparse.Namespace, early: EarlyInput) -> int:
    from everturn.cli.housing import house
    from everturn.terminal.paths import named
    from everturn.terminal.reaching import state_folder

    attach = named(options.attach)
    log = state_folder(os.environ) / "chat.log"
    _log_to(log)
    async with house(options) as housed:
        from everturn.tui.app import EverturnApp

        with _quiet_terminal(log):
            app = EverturnApp(
                housed.server,
                session=clean(options.session),
                language=_language(options.language),
                theme=options.theme,
                notes=housed.notes,
                attach=attach,
                is_here=housed.is_here,
                is_in_memory=housed.is_in_memory,
                typed=early.typed,
            )
            if housed.connection is not None:
                housed.connection.moved = app.server_moved
                app.model = "" if housed.is_here else clean(options.model or "")
            with _told_to_end(app):
                with _while_there(app):
                    code = await app.run_async()
            early.restore()
    if app.problem:
        return complain(f"the screen broke down: {app.problem}; please report this, with {log}", 1)
    for line in app.farewell:
        print(line)
    return code or 0


def _language(said: str) -> Literal["en", "zh", ""]:
    if said in ("en", "zh"):
        return said
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name, ""):
            return "zh" if value.startswith("zh") else ""
    return ""


def _log_to(file: Path) -> None:
    """What would be said on stderr goes to a file of the person's own: the screen is drawn on."""
    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600))
        handler = logging.FileHandler(file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@contextlib.contextmanager
def _quiet_terminal(log: Path) -> Generator[None]:
    """Let nobody but the screen write to the terminal: not a tool that prints, and not a program that it starts.

    Textual draws on `sys.__stderr__` and asks `sys.__stdout__` how large it is; both become the terminal under other
    numbers, and the usual two go to the log.
    """
    if os.name == "nt":
        yield
        return
    said, wrong = sys.__stdout__, sys.__stderr__
    kept = (os.dup(1), os.dup(2))
    screen = [_text(os.dup(1)), _text(os.dup(1))]
    try:
        sink = os.open(log, os.O_WRONLY | os.O_APPEND)
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    sys.__stdout__, sys.__stderr__ = screen
    try:
        yield
    finally:
        sys.__stdout__, sys.__stderr__ = said, wrong
        for number, old in enumerate(kept, 1):
            os.dup2(old, number)
            os.close(old)
        os.close(sink)
        for stream in screen:
            with contextlib.suppress(OSError, ValueError):
                stream.close()


def _text(number: int) -> TextIO:
    return io.TextIOWrapper(io.FileIO(number, "w"), encoding="utf-8", errors="replace", write_through=True)


@contextlib.contextmanager
def _while_there(app: EverturnApp) -> Generator[None]:
    """Leave when the terminal is gone without a word: nobody sees anything any more, and nobody can press a key.

    A thread looks: what draws may wait for ever for a terminal that takes nothing, and the loop with it. What was sent
    is safe, and goes on another time.
    """
    loop, over = asyncio.get_running_loop(), threading.Event()

    def look() -> None:
        while os.isatty(0):
            if over.wait(LOOK):
                return
        with contextlib.suppress(RuntimeError):  # it has ended meanwhile
            loop.call_soon_threadsafe(app.exit, 128 + 1)
        if not over.wait(GONE):
            os._exit(128 + 1)

    threading.Thread(target=look, name="terminal", daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextlib.contextmanager
def _told_to_end(app: EverturnApp) -> Generator[None]:
    """Leave in order when the system says so: the terminal is put back, and what runs is let go of."""
    loop, caught = asyncio.get_running_loop(), list[signal.Signals]()

    def leave(number: signal.Signals) -> None:
        app.exit(128 + number)

    for number in TOLD:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave, number)
            caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
