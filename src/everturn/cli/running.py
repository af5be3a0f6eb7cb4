"""`everturn run`: one message → one turn, its answer on stdout, and an exit code that says how it went."""

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
from typing import Any, Final, cast

from msgspec.structs import replace

from everturn.cli.run_gates import Beforehand, Leaving, Nobody, check_terminal, terminal_desk
from everturn.cli.run_here import Here, open_here
from everturn.cli.run_outputs import (
    CANCELLED,
    COMPLETED,
    DENIED,
    FAILED,
    PARKED,
    READER_GONE,
    UNUSABLE,
    Aside,
    JsonOutput,
    Output,
    TextOutput,
    say,
)
from everturn.cli.run_reading import read_prompt
from everturn.cli.run_there import There, open_attached, open_there
from everturn.core.canonical import clean
from everturn.core.events import GateOpened, TurnParked
from everturn.core.options import TurnOptions
from everturn.errors import ConfigError, EverturnError, MissingInput, ServerUnavailable, SessionBusy, StoreBusy
from everturn.stores.named import without_password
from everturn.terminal.asking import Asks
from everturn.terminal.files import Files
from everturn.terminal.watching import Watch

STOPS: Final = (signal.SIGINT, signal.SIGTERM)
GOING: Final = 20.0  # seconds that a turn has to end when nobody reads what it says; a machine may be busy
BUSY: Final = "a turn is under way in this session; --resume goes on with it, or name another session"
WRONG: Final[dict[tuple[str, str], str]] = {
    ("session", "store"): "--session names a session in a --store, or at a server (--connect); say which",
    (
        "idempotency_key",
        "store",
    ): "--idempotency-key is found again in a --store, or at a server (--connect); say which",
    ("wait", "store"): "--wait lets a turn wait in a --store, or at a server (--connect); say which",
    ("resume", "session"): "--resume goes on with a --session in a --store; say which",
    ("deltas", "json"): "--deltas is for --json; say both",
}
"""What is of no use alone, and what it needs."""


def run(options: argparse.Namespace) -> int:
    """Do it, and return the exit code."""
    # Python prints what nobody handles; a traceback in the middle of an answer helps no script.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        check_words(options)
        prompt = "" if options.resume else read_prompt(options)
    except ConfigError as error:
        say(str(error))
        return UNUSABLE
    return asyncio.run(perform(options, prompt))


async def perform(options: argparse.Namespace, prompt: str) -> int:
    """Send a prompt, or go on with what was sent before, and return the exit code; what goes wrong is said."""
    code = UNUSABLE
    try:
        code = await _run(options, prompt)
    except* ServerUnavailable as failed:
        code = FAILED
        say(_first(failed))
    except* EverturnError as failed:
        say(_first(failed))
    return code


def _first(group: BaseExceptionGroup[EverturnError]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return str(error)


def check_words(options: argparse.Namespace) -> None:
    """Refuse options that make no sense together.

    Raises:
        ConfigError: and it says which of them do.
    """
    for (name, needed), why in WRONG.items():
        is_there = getattr(options, needed) or (needed == "store" and options.connect)
        if getattr(options, name) and not is_there:
            raise ConfigError(why)
    if options.resume and (options.prompt is not None or options.idempotency_key or options.attach):
        raise ConfigError("--resume sends nothing; leave the prompt out, or --resume")
    if options.ask:
        check_terminal()


async def _run(options: argparse.Namespace, prompt: str) -> int:
    if options.connect:
        async with open_there(options) as there:
            return await Running(options, there).send(prompt)
    async with AsyncExitStack() as stack:
        try:
            here = await stack.enter_async_context(open_here(options, say))
        except StoreBusy as busy:  # a terminal is open, say: the turn runs there, and is watched from here
            there = await stack.enter_async_context(open_attached(options, busy))
            return await Running(options, there).send(prompt)
        running = Running(options, here)
        return await (running.resume() if options.resume else running.send(prompt))


class Running:
    """One turn, from the message to the exit code."""

    def __init__(self, options: argparse.Namespace, place: Here | There) -> None:
        self._options, self._place = options, place
        self._chat: Any = place.chat if isinstance(place, Here) else place
        out, is_terminal = sys.stdout.buffer, sys.stdout.isatty()
        self._output: Output = (
            JsonOutput(out, is_terminal, options.deltas) if options.json else TextOutput(out, is_terminal)
        )
        self._files = Files(self._chat, self._told, False, options.save)
        self._nobody = Nobody(self._chat, self._told, place.options if isinstance(place, Here) else None)

    def _told(self, text: str, *_: object) -> None:
        self._output.pause()
        say(text)

    async def send(self, prompt: str) -> int:
        """Send the message, and watch its turn."""
        interrupted = asyncio.Event()
        with _stopping(interrupted.set):
            try:
                turn = await self._place.send(prompt, clean(self._options.idempotency_key))
            except SessionBusy:
                raise SessionBusy(BUSY) from None
            except MissingInput as error:
                raise MissingInput(f"{error}; --attach FILE sends one") from None
            return await self._watch(turn, interrupted)

    async def resume(self) -> int:
        """Watch what was left unfinished."""
        assert isinstance(self._place, Here)
        interrupted = asyncio.Event()
        with _stopping(interrupted.set):
            left = await self._place.unfinished()
            if not left:
                say(f"nothing was left unfinished in {self._chat.session}")
            code = COMPLETED
            for turn in left:
                if (code := await self._watch(turn, interrupted)) in (PARKED, CANCELLED, READER_GONE):
                    break
            return code

    async def _watch(self, turn: Any, interrupted: asyncio.Event) -> int:
        aside = Aside(turn.id, self._options.verbose, self._output.pause)
        drawn = _Both(self._output, aside)
        after = TurnParked if self._options.wait else GateOpened
        watch = Watch(self._chat, turn, drawn, await self._desk(turn), self._can_wait(), after)
        try:
            self._output.begin(turn.session, turn.id)
            is_over = await watch.until_over(interrupted, lambda: None)
            self._output.end()
        except* BrokenPipeError:
            await self._end(turn)
            raise
        if interrupted.is_set() and isinstance(self._place, Here):
            await self._end(turn)
        if not is_over:
            await self._say_what_waits()
            return PARKED
        if aside.problem is not None:
            say(aside.problem.text)
        is_kept = await self._files.keep(aside.files)
        code = aside.code()
        if code == COMPLETED and self._nobody.has_denied:
            code = DENIED
        return code if is_kept or code != COMPLETED else FAILED

    async def _end(self, turn: Any) -> None:
        """Cancel a turn that nobody reads, and leave nothing behind that says that it runs.

        A tool that runs here ends with this process; at a server it may go on.
        """
        with suppress(EverturnError, TimeoutError):
            async with asyncio.timeout(GOING):
                await turn.cancel(hard=isinstance(self._place, Here))
                async for _ in turn:
                    pass
                if isinstance(self._place, Here):
                    await self._place.at_rest()

    def _can_wait(self) -> bool:
        return self._options.wait or bool(self._options.ask and (self._options.store or self._options.connect))

    async def _desk(self, turn: Any) -> Asks:
        otherwise: Asks = self._nobody
        if self._options.ask:
            otherwise = terminal_desk(self._chat)
        elif self._options.wait:
            otherwise = Leaving()
        if not isinstance(self._place, Here) or not self._place.allowed:
            return Beforehand(self._chat, (), TurnOptions(), otherwise, self._output.pause)
        how = self._place.options
        told = (await turn.state()).options.rules if self._options.resume else ()
        how = replace(how, rules=(*how.rules, *told))
        return Beforehand(self._chat, self._place.allowed, how, otherwise, self._output.pause)

    async def _say_what_waits(self) -> None:
        """Say what the turn waits for, and how that is answered."""
        tools = ", ".join(dict.fromkeys(gate.tool for gate in await self._chat.gates()))
        if self._options.connect:
            how = f"answer it at {self._options.connect}, in session {self._chat.session}"
        else:
            store = without_password(self._options.store)  # what is said here is in somebody's log
            words = ["everturn", "run", "--store", store, "--session", self._chat.session]
            how = f"answer it with: {shlex.join([*words, '--resume', '--ask'])}"
        self._told(f"it waits for somebody ({tools}); {how}")


class _Both:
    """Draws on stdout and beside it."""

    def __init__(self, output: Output, aside: Aside) -> None:
        self._output, self._aside = output, aside

    def show(self, shown: Any) -> None:
        """Draw an event or a delta."""
        self._output.show(shown)
        self._aside.show(shown)


@contextmanager
def _stopping(tell: Callable[[], object]) -> Generator[None]:
    """Tell of the first Ctrl-C or SIGTERM; the second leaves at once, also on the way out."""
    loop, is_told = asyncio.get_running_loop(), False

    def leave(*_: object) -> None:
        os._exit(CANCELLED)

    def first(*_: object) -> None:
        nonlocal is_told
        is_told = True
        for number in STOPS:
            signal.signal(number, leave)
        loop.call_soon_threadsafe(tell)

    before = {number: signal.signal(number, first) for number in STOPS}
    try:
        yield
    finally:
        if not is_told:
            for number, handler in before.items():
                signal.signal(number, handler)
