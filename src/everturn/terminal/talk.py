"""Lines → turns, one after the other, and each answer on the screen while it comes: `everturn chat`.

It is a face like any other: it draws events, sends commands and decides nothing. The conversation is in the memory of
this process, and ends with it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from msgspec import Struct

from everturn import Chat, EverturnError, Turn
from everturn.core.events import Problem
from everturn.core.ports import Model
from everturn.errors import ConfigError
from everturn.terminal.answer import Answer
from everturn.terminal.ctrl_c import INTERRUPTED, interrupts
from everturn.terminal.lines import piped, typed
from everturn.terminal.screen import Screen, printable, prose, typeset

PROMPT = "you> "
COMMANDS: Final = {
    "/help": "say what there is",
    "/model NAME": "go on with another model; without a NAME: say which it is",
    "/again": "answer the last message again",
    "/new": "begin a new conversation",
    "/quit": "leave; so does Ctrl-D, and Ctrl-C where no answer is under way",
}
KEYS: Final = (
    "Ctrl-C while an answer comes cancels it, and twice leaves at once. A line that begins with a blank is sent as it "
    "is, so a message may begin with a slash."
)

_AGAIN, _OTHER = "/again tries once more", "/model NAME takes another model"
NEXT: Final = {
    "context": "/new begins a new conversation, " + _OTHER,
    "key": _OTHER,
    "quota": _OTHER,
    "unknown_model": _OTHER,
    "request": _OTHER,
    "internal": "Please report this, and what you did before; " + _AGAIN,
    **dict.fromkeys(("rate", "server", "network", "stalled", "truncated"), _AGAIN),
}
"""What to do about a failed turn, by the kind of its problem."""

MakeModel = Callable[[str], Model]
"""A name → a model. It raises ConfigError with a text that says what to do."""


class Options(Struct, frozen=True):
    """How a chat begins, and where: `is_typed` when a person sits in front of it."""

    model: str
    system: str = ""
    color: bool = False
    is_typed: bool = False


def talk(options: Options, make_model: MakeModel) -> int:
    """Talk until the person leaves, or the pipe ends, and return the exit code.

    Raises:
        ConfigError: there is no such model; nothing was sent.
    """
    if (reconfigure := getattr(sys.stdin, "reconfigure", None)) is not None:
        reconfigure(errors="replace")
    # Python prints what nobody handles; a traceback in the middle of an answer helps no one who only wants to talk.
    logging.getLogger().addHandler(logging.NullHandler())
    return asyncio.run(_talk(options, make_model))


async def _talk(options: Options, make_model: MakeModel) -> int:
    model = make_model(options.model)
    async with Chat(model, system=options.system) as chat:
        talk = Talk(chat, model, make_model, options)
        if not options.is_typed:
            await talk.listen(piped())
            return INTERRUPTED if talk.is_interrupted else int(talk.has_failed)
        talk.say(f"{model.name}. /help says what there is, Ctrl-C stops an answer, Ctrl-D leaves.")
        print()
        await talk.listen(typed(PROMPT))
    return 0


class Talk:
    """One conversation after the other, on one runtime."""

    def __init__(self, chat: Chat, model: Model, make_model: MakeModel, options: Options) -> None:
        self._chat, self._model, self._make_model, self._options = chat, model, make_model, options
        self._is_bare = not sys.stdout.isatty()
        self._has_answered = False
        self.has_failed = self.is_interrupted = self.is_over = False

    def _screen(self) -> Screen:
        """As wide as the terminal is now."""
        return Screen(sys.stdout, self._options.color, gutter=0, width=0, safe=prose if self._is_bare else typeset)

    def say(self, text: str, style: str = "dim", sign: str = "·") -> None:
        """Say something that the model did not say; beside what goes into a pipe, not in it."""
        if self._is_bare:
            print(f"everturn: {printable(text)}", file=sys.stderr)
        else:
            screen = self._screen()
            screen.row(f"{screen.sign(sign)} ", text, style)

    def _complain(self, text: str) -> None:
        self.has_failed = True
        self.say(" ".join(text.split()), "bad", "×")

    async def listen(self, lines: Iterable[str]) -> None:
        """Act on one line after the other, with an empty line between them."""
        is_typed = self._options.is_typed
        for line in lines:
            if not line.strip():
                continue
            try:
                await self._act(line)
            except* EverturnError as errors:
                self._complain("; ".join(map(str, _flat(errors))))
            if self.is_over or (self.is_interrupted and not is_typed):
                return
            if is_typed:
                print()

    async def _act(self, line: str) -> None:
        if not line.startswith("/"):
            await self._watch(self._chat.send(line.strip(), model=self._model))
            return
        word, _, rest = line.strip().partition(" ")
        match word, rest.strip():
            case "/help", _:
                self._help()
            case "/model", name:
                self._switch(name)
            case "/again", _:
                await self._again()
            case "/new", _:
                self._chat = Chat(self._model, runtime=self._chat.runtime)
                self.say("a new conversation; the model knows nothing of the one before")
            case "/quit", _:
                self.is_over = True
            case _:
                names = ", ".join(name.partition(" ")[0] for name in COMMANDS)
                self._complain(f"there is no command {word}; there are: {names}")

    def _help(self) -> None:
        widest = max(map(len, COMMANDS))
        for name, about in COMMANDS.items():
            self.say(f"{name:<{widest}}  {about}")
        self.say(KEYS)

    def _switch(self, name: str) -> None:
        if name:
            self._model = self._make_model(name)
        self.say(f"{'from here on' if name else 'the model is'} {self._model.name}")

    async def _again(self) -> None:
        if not (messages := await self._chat.messages()):
            raise ConfigError("there is nothing to answer again yet; type a message first")
        await self._watch(self._chat.rerun(messages[-1], model=self._model))

    async def _watch(self, sending: Awaitable[Turn]) -> None:
        """Draw a turn until it is over; the first Ctrl-C cancels it."""
        interrupted, screen = asyncio.Event(), self._screen()
        with interrupts(interrupted.set):
            turn = await sending
            if self._has_answered and not self._options.is_typed:
                print()
            self._has_answered = True
            answer = Answer(screen, turn.id, self.say, self._is_bare)

            async def cancel() -> None:
                await interrupted.wait()
                if not self._is_bare:
                    screen.echoed("^C")
                await turn.cancel()

            async with asyncio.TaskGroup() as group:
                beside = group.create_task(cancel())
                async for shown in turn:
                    answer.show(shown)
                beside.cancel()
        self.is_interrupted = answer.is_cancelled
        if answer.problem is not None:
            self._complain(_told(answer.problem, self._options.is_typed))


def _told(problem: Problem, is_typed: bool) -> str:
    """What went wrong and, for a person, what to type about it."""
    text = f"{problem.kind}: {problem.text}"
    if not is_typed:
        return text
    return f"{text}{'' if text[-1] in '.?!' else '.'} {NEXT.get(problem.kind, f'{_AGAIN}, {_OTHER}')}"


def _flat(errors: BaseExceptionGroup[EverturnError]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in errors.exceptions:
        found += _flat(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
