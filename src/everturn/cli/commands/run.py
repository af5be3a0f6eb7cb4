"""`everturn run`: sends one message, prints the answer of its turn on stdout, and returns an exit code for the outcome."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any, Final

from msgspec.structs import replace

from everturn.cli.output import join_problems
from everturn.cli.run.gates import LeaveOpen, NonInteractive, PreApproved, check_terminal, open_terminal_prompt
from everturn.cli.run.input import read_prompt
from everturn.cli.run.local import LocalChat, open_local_chat
from everturn.cli.run.output import (
    CANCELLED,
    COMPLETED,
    DENIED,
    FAILED,
    PARKED,
    READER_GONE,
    UNUSABLE,
    JsonOutput,
    StderrOutput,
    TextOutput,
    TurnOutput,
    TypedOutput,
    print_note,
)
from everturn.cli.run.remote import RemoteChat, attach_to_store_server, open_remote_chat
from everturn.cli.run.run_store import NEEDS_STORE, choose_store, save_session
from everturn.config.errors import ConfigProblems
from everturn.core.canonical_json import replace_surrogates
from everturn.core.events import GateOpened, TurnSuspended
from everturn.core.options import TurnOptions
from everturn.errors import (
    ConfigError,
    EverturnError,
    MissingInput,
    ServerUnavailable,
    SessionBusy,
    StoreBusy,
    leaf_errors,
)
from everturn.stores.registry import without_password
from everturn.terminal.lines.attachments import Attachments
from everturn.terminal.lines.gate_queue import GatePrompter
from everturn.terminal.lines.turn_watch import TurnWatch
from everturn.terminal.text.context import format_gauge

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
CANCEL_TIMEOUT: Final = 20.0  # seconds for a turn to end after its cancellation; a machine may be busy
BUSY: Final = "a turn is under way in this session; --resume goes on with it, or name another session"
NEEDS_OTHER: Final[dict[tuple[str, str], str]] = {
    ("resume", "session"): "--resume goes on with a session; say which, with --session NAME or -c",
    ("deltas", "json"): "--deltas is for --json; say both",
}
"""Pairs (option, other option that it needs) → the error if the other one is missing."""
FLAGS: Final = {"goes_on": "--continue"}


def run(options: argparse.Namespace) -> int:
    """Run the command, and return the exit code."""
    # Without a handler Python prints log records to stderr; a traceback amid an answer helps no script.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        check_options(options)
        prompt = "" if options.resume else read_prompt(options)
    except ConfigError as error:
        print_note(str(error))
        return UNUSABLE
    return asyncio.run(run_prompt(options, prompt))


async def run_prompt(options: argparse.Namespace, prompt: str) -> int:
    """Send a prompt, or resume unfinished turns, and return the exit code; errors are printed."""
    code = UNUSABLE
    try:
        code = await _run(options, prompt)
    except* ServerUnavailable as failed:
        code = FAILED
        print_note(str(leaf_errors(failed)[0]))
    except* EverturnError as failed:
        error = leaf_errors(failed)[0]
        print_note(join_problems(str(error)) if isinstance(error, ConfigProblems) else str(error))
    return code


def check_options(options: argparse.Namespace) -> None:
    """Refuse options that are invalid together.

    Raises:
        ConfigError: names the option, and the one it needs.
    """
    for (name, needed), why in NEEDS_OTHER.items():
        is_there = getattr(options, needed) or (needed == "session" and options.goes_on)
        if getattr(options, name) and not is_there:
            raise ConfigError(why)
    for name in ("store", "connect", *NEEDS_STORE):
        if options.no_save and getattr(options, name):
            flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
            raise ConfigError(f"{flag} needs a saved session; leave --no-save out")
    if options.goes_on and options.session:
        raise ConfigError("-c continues the last session, and --session names one; use one of them")
    if options.output_schema and options.json:
        raise ConfigError("--output-schema prints the answer, and --json its events; use one of them")
    if options.resume and (options.prompt is not None or options.idempotency_key or options.attach):
        raise ConfigError("--resume sends no message; leave out the prompt or --resume")
    if options.ask:
        check_terminal()


async def _run(options: argparse.Namespace, prompt: str) -> int:
    if options.connect:
        async with open_remote_chat(options) as remote:
            return await RunCommand(options, remote).send(prompt)
    is_default = choose_store(options, print_note)
    store = options.store
    async with AsyncExitStack() as stack:
        try:
            local = await stack.enter_async_context(open_local_chat(options, print_note))
        except StoreBusy as busy:  # such as an open terminal: the turn runs there, and is watched from here
            try:
                remote = await stack.enter_async_context(attach_to_store_server(options, busy))
                return await RunCommand(options, remote).send(prompt)
            except (StoreBusy, ConfigError):
                if not is_default or any(getattr(options, name) for name in NEEDS_STORE):
                    raise
            options.store = options.connect = (
                ""  # the other process cannot do it: it is done here, and saved afterwards
            )
            local = await stack.enter_async_context(open_local_chat(options, print_note))
            stack.push_async_callback(save_session, local.chat.app, local.chat.session, store, print_note)
        command = RunCommand(options, local, is_default_store=is_default)
        return await (command.resume() if options.resume else command.send(prompt))


class RunCommand:
    """Runs one turn, from the message to the exit code."""

    def __init__(
        self, options: argparse.Namespace, place: LocalChat | RemoteChat, *, is_default_store: bool = False
    ) -> None:
        self._options, self._place, self._is_default_store = options, place, is_default_store
        self._chat: Any = place.chat if isinstance(place, LocalChat) else place
        out, is_terminal = sys.stdout.buffer, sys.stdout.isatty()
        self._output: TurnOutput = (
            JsonOutput(out, is_terminal, options.deltas)
            if options.json
            else TypedOutput(out, is_terminal)
            if options.output_schema
            else TextOutput(out, is_terminal)
        )
        self._files = Attachments(self._chat, self._notify, False, options.save)
        self._non_interactive = NonInteractive(
            self._chat, self._notify, place.options if isinstance(place, LocalChat) else None
        )

    def _notify(self, text: str, *_: object) -> None:
        self._output.pause()
        print_note(text)

    async def send(self, prompt: str) -> int:
        """Send the message, and watch its turn until it ends."""
        interrupted = asyncio.Event()
        with _on_stop_signal(interrupted.set):
            try:
                turn = await self._place.send(prompt, replace_surrogates(self._options.idempotency_key))
            except SessionBusy:
                raise SessionBusy(BUSY) from None
            except MissingInput as error:
                raise MissingInput(f"{error}; --attach FILE sends one") from None
            return await self._watch(turn, interrupted)

    async def resume(self) -> int:
        """Watch the turns that were left unfinished."""
        assert isinstance(self._place, LocalChat)
        interrupted = asyncio.Event()
        with _on_stop_signal(interrupted.set):
            unfinished = await self._place.unfinished()
            if not unfinished:
                print_note(f"nothing was left unfinished in {self._chat.session}")
            code = COMPLETED
            for turn in unfinished:
                if (code := await self._watch(turn, interrupted)) in (PARKED, CANCELLED, READER_GONE):
                    break
            return code

    async def _watch(self, turn: Any, interrupted: asyncio.Event) -> int:
        stderr = StderrOutput(turn.id, self._options.verbose, self._output.pause)
        outputs = _TeeOutput(self._output, stderr)
        after = TurnSuspended if self._options.wait else GateOpened
        watch = TurnWatch(self._chat, turn, outputs, await self._gate_prompter(turn), self._can_wait(), after)
        try:
            self._output.begin(turn.session, turn.id)
            is_over = await watch.until_over(interrupted, lambda: None)
            self._output.end()
        except* BrokenPipeError:
            await self._end(turn)
            raise
        if interrupted.is_set() and isinstance(self._place, LocalChat):
            await self._end(turn)
        if not is_over:
            await self._print_waiting()
            return PARKED
        if stderr.problem is not None:
            print_note(stderr.problem.text)
        if self._options.verbose:
            await self._print_context()
        is_saved = await self._files.receive(stderr.files)
        code = stderr.code()
        if code == COMPLETED and self._non_interactive.has_denied:
            code = DENIED
        return code if is_saved or code != COMPLETED else FAILED

    async def _print_context(self) -> None:
        """Print how full the context window is now."""
        with suppress(EverturnError):  # such as a server that is gone by now
            print_note(f"context {format_gauge(await self._chat.context())}")

    async def _end(self, turn: Any) -> None:
        """Cancel a turn whose output has no reader, and wait until the store no longer says that it runs.

        A tool that runs in this process ends with it; at a server it may continue.
        """
        with suppress(EverturnError, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await turn.cancel(hard=isinstance(self._place, LocalChat))
                async for _ in turn:
                    pass
                if isinstance(self._place, LocalChat):
                    await self._place.wait_until_idle()

    def _can_wait(self) -> bool:
        return self._options.wait or bool(self._options.ask and (self._options.store or self._options.connect))

    async def _gate_prompter(self, turn: Any) -> GatePrompter:
        fallback: GatePrompter = self._non_interactive
        if self._options.ask:
            fallback = open_terminal_prompt(self._chat)
        elif self._options.wait:
            fallback = LeaveOpen()
        if not isinstance(self._place, LocalChat) or not self._place.allowed:
            return PreApproved(self._chat, (), TurnOptions(), fallback, self._output.pause)
        turn_options = self._place.options
        turn_rules = (await turn.state()).options.rules if self._options.resume else ()
        turn_options = replace(turn_options, rules=(*turn_options.rules, *turn_rules))
        return PreApproved(self._chat, self._place.allowed, turn_options, fallback, self._output.pause)

    async def _print_waiting(self) -> None:
        """Print which tools the turn waits for, and how to answer."""
        tools = ", ".join(dict.fromkeys(gate.tool for gate in await self._chat.gates()))
        if self._options.connect:
            how = f"answer it at {self._options.connect}, in session {self._chat.session}"
        else:
            store = without_password(self._options.store)  # stderr may end up in a log
            where = [] if self._is_default_store else ["--store", store]
            words = ["everturn", "run", *where, "--session", self._chat.session]
            how = f"answer it with: {shlex.join([*words, '--resume', '--ask'])}"
        self._notify(f"it waits for a person ({tools}); {how}")


class _TeeOutput:
    """Writes to stdout and to stderr."""

    def __init__(self, output: TurnOutput, stderr: StderrOutput) -> None:
        self._output, self._stderr = output, stderr

    def show(self, shown: Any) -> None:
        """Write an event or a delta."""
        self._output.show(shown)
        self._stderr.show(shown)


@contextmanager
def _on_stop_signal(tell: Callable[[], object]) -> Generator[None]:
    """Call `tell` on the first Ctrl-C or SIGTERM; the second one exits at once, also during shutdown."""
    loop, is_stopping = asyncio.get_running_loop(), False

    def leave(*_: object) -> None:
        os._exit(CANCELLED)

    def first(*_: object) -> None:
        nonlocal is_stopping
        is_stopping = True
        for number in STOP_SIGNALS:
            signal.signal(number, leave)
        loop.call_soon_threadsafe(tell)

    before = {number: signal.signal(number, first) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        if not is_stopping:
            for number, handler in before.items():
                signal.signal(number, handler)
