"""`everturn chat`: a conversation in the full-screen UI or, where that is not possible, line by line."""

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
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO

from everturn.cli.commands.plain_chat import NO_STORE
from everturn.cli.commands.plain_chat import chat as line_by_line
from everturn.cli.early_input import TERMINATION_SIGNALS, EarlyInput, capture_early_input
from everturn.cli.garbage_collector import pause_garbage_collector, resume_garbage_collector
from everturn.cli.model_option import resolve_model_option
from everturn.cli.output import is_terminal, print_error
from everturn.core.canonical_json import replace_surrogates

if TYPE_CHECKING:
    from everturn.terminal.tui.app import TerminalApp

NEEDED: Final = ("textual", "starlette", "uvicorn", "jwt")
TUI_HINT = "for the whole screen: pip install 'everturn[tui]'"
NO_SCREEN = "--connect draws on the whole screen, and that cannot be done here: {}; `everturn run --connect` can"
LOOK, GONE = 1.0, 5.0  # seconds between two checks of the terminal, and to exit once it is gone


def chat(options: argparse.Namespace) -> int:
    """Run the chat until the user leaves, and return the exit code.

    Raises:
        ConfigError: there is no such model, file, folder, tool or rule.
        StoreBusy: another process has the store.
        StoreUnavailable: the store does not answer.
    """
    resolve_model_option(options)
    reason = find_tui_obstacle(options)
    if options.goes_on or options.resume or options.mode or options.trust:
        options.here = True
    if options.here and not options.connect and (not reason or is_interactive()):
        from everturn.cli.folder_start import prepare_folder

        options.start = prepare_folder(options)
    if not reason:
        pause_garbage_collector()
        return _full_screen(options)
    resume_garbage_collector()
    if options.connect:
        return print_error(NO_SCREEN.format(reason), 2)
    if reason == "it is not installed" and not options.plain and is_interactive():
        print(f"everturn: {TUI_HINT}", file=sys.stderr)
    return line_by_line(options)


def start_default_chat(words: Sequence[str] = ()) -> int:
    """Run `everturn chat --here`: what bare `everturn` does once there is a configuration."""
    from everturn.cli.args.commands import make_chat_parser

    return chat(make_chat_parser().parse_args(["chat", "--here", *words]))


def find_tui_obstacle(options: argparse.Namespace) -> str:
    """Return the reason why the full-screen UI cannot be used, or "" if it can."""
    if options.plain:
        return "--plain was said"
    if options.save:
        return "--save is for line by line"
    if not is_interactive():
        return "this is no terminal"
    if os.environ.get("TERM", "") in ("", "dumb") and os.name != "nt":
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    from importlib.util import find_spec

    return "it is not installed" if any(find_spec(name) is None for name in NEEDED) else ""


def is_interactive() -> bool:
    """Whether stdin and stdout are both a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


# Full screen --------------------------------------------------------------------------------------------------------


def _full_screen(options: argparse.Namespace) -> int:
    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    if options.session and not (options.store or options.connect):
        return print_error(NO_STORE, 2)
    with capture_early_input() as early:
        return asyncio.run(_run_app(options, early))


async def _run_app(options: argparse.Namespace, early: EarlyInput) -> int:
    from everturn.cli.store.local_server import open_chat_server
    from everturn.terminal.text.local_tools import state_dir
    from everturn.terminal.text.paths import check_paths

    attach = check_paths(options.attach)
    log = state_dir(os.environ) / "chat.log"
    _log_to(log)
    async with open_chat_server(options) as chat_server:
        from everturn.terminal.tui.app import TerminalApp

        with _quiet_terminal(log):
            app = TerminalApp(
                chat_server.server,
                session=replace_surrogates(options.session),
                language=_language(options.language),
                theme=options.theme,
                notes=chat_server.notes,
                attach=attach,
                is_here=chat_server.is_own_process,
                is_in_memory=chat_server.is_in_memory,
                typed=early.typed,
                start=getattr(options, "start", None),
            )
            app.on_first_screen = resume_garbage_collector
            if chat_server.connection is not None:
                chat_server.connection.on_moved = app.server_moved
                app.model = "" if chat_server.is_own_process else replace_surrogates(options.model or "")
            with _exit_on_signal(app):
                with _exit_without_terminal(app):
                    code = await app.run_async()
            early.restore()
    if app.problem:
        return print_error(f"the screen broke down: {app.problem}; please report this, with {log}", 1)
    for line in app.exit_messages:
        print(line)
    return code or 0


def _language(option: str) -> Literal["en", "zh", ""]:
    if option in ("en", "zh"):
        return option
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name, ""):
            return "zh" if value.startswith("zh") else ""
    return ""


def _log_to(file: Path) -> None:
    """Send log records to a file of the user, because the UI draws on the terminal."""
    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600))
        handler = logging.FileHandler(file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


@contextlib.contextmanager
def _quiet_terminal(log: Path) -> Generator[None]:
    """Keep everything but the UI from writing to the terminal: tools that print, and programs that they start.

    Textual draws on `sys.__stderr__` and reads the size of `sys.__stdout__`. Both are pointed at duplicates of the
    terminal's descriptor, and descriptors 1 and 2 are redirected to the log.
    """
    if os.name == "nt":
        yield
        return
    old_stdout, old_stderr = sys.__stdout__, sys.__stderr__
    saved = (os.dup(1), os.dup(2))
    screen = [_text_stream(os.dup(1)), _text_stream(os.dup(1))]
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
        sys.__stdout__, sys.__stderr__ = old_stdout, old_stderr
        for number, old in enumerate(saved, 1):
            os.dup2(old, number)
            os.close(old)
        os.close(sink)
        for stream in screen:
            with contextlib.suppress(OSError, ValueError):
                stream.close()


def _text_stream(number: int) -> TextIO:
    return io.TextIOWrapper(io.FileIO(number, "w"), encoding="utf-8", errors="replace", write_through=True)


@contextlib.contextmanager
def _exit_without_terminal(app: TerminalApp) -> Generator[None]:
    """Exit when the terminal is gone without a signal: the UI can neither be seen nor controlled any more.

    A thread checks, because drawing may block forever on a terminal that accepts no output, and the event loop with it.
    Sent messages are in the store, and their turns continue at the next start.
    """
    loop, is_done = asyncio.get_running_loop(), threading.Event()

    def check() -> None:
        while os.isatty(0):
            if is_done.wait(LOOK):
                return
        with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile
            loop.call_soon_threadsafe(app.exit, 128 + 1)
        if not is_done.wait(GONE):
            os._exit(128 + 1)

    threading.Thread(target=check, name="terminal", daemon=True).start()
    try:
        yield
    finally:
        is_done.set()


@contextlib.contextmanager
def _exit_on_signal(app: TerminalApp) -> Generator[None]:
    """Exit cleanly on SIGTERM or SIGHUP: the terminal is restored, and resources are released."""
    loop, handled = asyncio.get_running_loop(), list[signal.Signals]()

    def leave(number: signal.Signals) -> None:
        app.exit(128 + number)

    for number in TERMINATION_SIGNALS:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave, number)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
