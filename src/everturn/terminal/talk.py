"""Lines → turns, one after the other, and each answer on the screen while it comes: `everturn chat`.

It is a face like any other: it draws events, sends commands and decides nothing. The conversation is in the memory of
this process and ends with it, unless there is a store to keep it in.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn import Chat, EverturnError, MissingInput, TextPart, Turn
from everturn.core.modality import modality_of
from everturn.core.options import TurnOptions
from everturn.core.policy import Rule
from everturn.core.ports import Model
from everturn.errors import ConfigError
from everturn.terminal.answer import Answer, Typesets
from everturn.terminal.asking import Nobody
from everturn.terminal.ctrl_c import INTERRUPTED, interrupts
from everturn.terminal.desk import Desk
from everturn.terminal.files import Files
from everturn.terminal.leftovers import MakeModel, left_unfinished
from everturn.terminal.lines import piped, typed
from everturn.terminal.loading import check_by_hand, load_tools, read_budget, tools_in
from everturn.terminal.offered import tell_tools, tell_unwell
from everturn.terminal.paths import dropped, named
from everturn.terminal.reaching import Brought, Reach, bring
from everturn.terminal.reverting import Reverting
from everturn.terminal.saying import Sayer
from everturn.terminal.watching import Watch
from everturn.terminal.words import BY_HAND, COMMANDS, KEYS, NAMES, lacking, no_command, told

__all__ = ["Configured", "Options", "Reach", "read_budget", "talk"]

PROMPT = "you> "
COMING, MOMENT = 15.0, 0.5  # seconds for servers to come before the first line, and before any other
MAKERS = frozenset({"image-gen", "image-edit", "audio-tts"})  # models whose answers are files


class Configured(Struct, frozen=True):
    """What is there whatever the command line says; all `rules` are in it, those of the command line, too."""

    tools: tuple[Any, ...] = ()
    plugins: tuple[object, ...] = ()
    rules: tuple[Rule, ...] = ()


class Options(Struct, frozen=True):
    """How a chat begins, and where: `is_typed` when a person sits in front of it.

    The files of `attach` go with the first message; in the folder `save` every file is kept that a model makes. In the
    `store` the conversation is kept, as `session`; what a process before this one left unfinished there goes on.
    `tools` says where there are some, `turn` is what else holds for turns, `reach` is what else they may reach, and
    `configured` is there anyway. `typeset` gives whoever makes more than letters of an answer.
    """

    model: str
    system: str = ""
    color: bool = False
    is_typed: bool = False
    attach: tuple[str, ...] = ()
    save: str = ""
    store: str = ""
    session: str = ""
    tools: tuple[str, ...] = ()
    turn: TurnOptions = TurnOptions()
    reach: Reach = Reach()
    configured: Configured = Configured()
    typeset: Callable[[], Typesets] | None = None


def talk(options: Options, make_model: MakeModel) -> int:
    """Talk until the person leaves, or the pipe ends, and return the exit code.

    Raises:
        ConfigError: there is no such model, or no such file or folder; nothing was sent.
    """
    if (reconfigure := getattr(sys.stdin, "reconfigure", None)) is not None:
        reconfigure(errors="replace")
    # Python prints what nobody handles; a traceback in the middle of an answer helps no one who only wants to talk.
    logging.getLogger().addHandler(logging.NullHandler())
    return asyncio.run(_talk(options, make_model))


async def _talk(options: Options, make_model: MakeModel) -> int:
    model = make_model(options.model)
    if not options.is_typed and not options.save and modality_of(model) in MAKERS:
        raise ConfigError(f"{model.name} makes files: say with --save DIR where they go")
    attach = named(options.attach)
    tools = load_tools(options.tools)
    say = Sayer(options.color)
    brought = await bring(options.reach, say, say if options.is_typed else None)
    check_by_hand(
        options.turn.by_hand,
        [*_plain(options.configured.tools), *tools, *(tool for tool in brought.tools if tool is not brought.servers)],
    )
    async with Chat(
        model,
        tools=[*options.configured.tools, *tools, *brought.tools],
        plugins=[*options.configured.plugins, *brought.plugins],
        rules=options.configured.rules,
        system=options.system,
        store=options.store or None,
        session=options.session or None,
        options=_with_tools(options.turn, [*tools, *brought.tools]),
    ) as chat:
        talk = Talk(chat, model, make_model, options, say, brought)
        if options.is_typed:
            say(f"{model.name}. /help says what there is, Ctrl-C stops an answer, Ctrl-D leaves.")
        await brought.settled(COMING)
        tell_unwell(say, brought.status())
        if options.store:
            await talk.go_on()
        if talk.is_over:
            return 0
        await talk.files.add(attach)
        if options.is_typed:
            print()
            await talk.listen(typed(PROMPT))
            talk.say_where()
            return 0
        await talk.listen(piped())
        if talk.files.attached and not (talk.has_tried or talk.is_over):  # `--attach talk.mp3 </dev/null`
            await talk.listen(["/send"])
        talk.say_where()
        return INTERRUPTED if talk.is_interrupted else int(talk.has_failed)


def _with_tools(turn: TurnOptions, tools: Iterable[Any]) -> TurnOptions:
    """What is named on the command line is wanted, whatever tools the agent has otherwise."""
    if turn.tools is None:
        return turn
    return replace(turn, tools=(*turn.tools, *tools_in(_plain(tools))))


def _plain(tools: Iterable[Any]) -> list[Any]:
    """Those that are there already; what servers bring comes later."""
    return [one for one in tools if not hasattr(one, "aclose")]


class Talk:
    """One conversation after the other, on one runtime."""

    def __init__(
        self, chat: Chat, model: Model, make_model: MakeModel, options: Options, say: Sayer, brought: Brought
    ) -> None:
        self._chat, self._model, self._make_model, self._options = chat, model, make_model, options
        self.say, self._brought = say, brought
        self._has_answered = False
        self.files = Files(chat, say, options.is_typed, options.save)
        self._reverting = Reverting(say, say.agreed, brought.keepers)
        self.has_tried = self.has_failed = self.is_interrupted = self.is_over = False

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
                await self._brought.settled(MOMENT)
                await self._act(line)
            except* EverturnError as errors:
                self._complain("; ".join(map(str, _flat(errors))))
            if self.is_over or (self.is_interrupted and not is_typed):
                return
            if is_typed:
                print()

    async def _act(self, line: str) -> None:
        word, rest = [*line.split(maxsplit=1), ""][:2]
        if self._options.is_typed and word not in NAMES and (paths := dropped(line.rstrip())):
            await self.files.add(paths)
        elif not line.startswith("/"):
            await self._send(line.strip())
        elif word in BY_HAND and not self._options.is_typed:
            self._complain(f"{word} is for who types it; {BY_HAND[word]}")
        else:
            await self._obey(word, rest.strip())

    async def _obey(self, word: str, rest: str) -> None:
        match word:
            case "/help":
                self._help()
            case "/send":
                await self._send("")
            case "/tools":
                tell_tools(self.say, self._chat.runtime.registry.enabled(), self._brought.status())
            case "/model":
                self._switch(rest)
            case "/again":
                await self._again()
            case "/new":
                self.say_where()
                self._chat = Chat(self._model, runtime=self._chat.runtime, options=self._options.turn)
                self.say("a new conversation; the model knows nothing of the one before")
            case "/quit":
                self.is_over = True
            case _:
                await self._obey_about_files(word, rest)

    async def _obey_about_files(self, word: str, rest: str) -> None:
        match word:
            case "/attach":
                await self.files.attach(rest)
            case "/detach":
                self.files.detach()
            case "/save":
                await self.files.save(rest)
            case "/files":
                await self._reverting.list(self._chat)
            case "/revert":
                await self._reverting.revert(self._chat, rest)
            case "/unrevert":
                await self._reverting.unrevert(self._chat)
            case _:
                self._complain(no_command(word))

    async def _send(self, text: str) -> None:
        """Send a message with what is attached, which stays attached if the message is refused."""
        self.has_tried = True
        if not text and not self.files.attached:
            raise ConfigError("there is nothing to send: type a message, or /attach PATH first")
        parts = [*([TextPart(text)] if text else []), *self.files.attached]

        async def sending() -> Turn:
            turn = await self._chat.send(parts, model=self._model)
            self.files.attached = []
            return turn

        try:
            await self._watch(sending())
        except MissingInput as error:
            raise MissingInput(lacking(error, bool(text), self._options.is_typed)) from None

    async def go_on(self) -> None:
        """Say what the store holds of this conversation, and watch what was left unfinished in it."""
        if (left := await left_unfinished(self._chat, self._make_model)) is None:
            return
        self.say(f"{self._chat.session}: {len(await self._chat.messages())} messages so far")
        for turn in left:
            self.say("this was left unfinished, and goes on")
            await self._watch(_found(turn))
            if self.is_over:  # they left at a question
                return

    def say_where(self) -> None:
        """Say how to go on with this conversation, if it is kept anywhere."""
        if self._options.store and self.has_tried and self._chat.session != self._options.session:
            self.say(f"kept; go on with: everturn chat --store {self._options.store} --session {self._chat.session}")

    def _help(self) -> None:
        widest = max(map(len, COMMANDS))
        for name, about in COMMANDS.items():
            self.say(about, label=f"{name:<{widest}}  ")
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
        interrupted, screen = asyncio.Event(), self.say.screen()
        with interrupts(interrupted.set):
            turn = await sending
            if self._has_answered and not self._options.is_typed:
                print()
            typeset = self._options.typeset() if self._options.typeset is not None and not self.say.is_bare else None
            answer = Answer(screen, turn.id, self.say, self.say.is_bare, typeset)
            desk = Desk(screen, self._chat) if self._options.is_typed else Nobody(self._chat, self._complain)

            def echo() -> None:
                if not self.say.is_bare:
                    screen.echoed("^C")

            watch = Watch(self._chat, turn, answer, desk, can_wait=bool(self._options.store))
            if not await watch.until_over(interrupted, echo):
                self.is_over = True
                self.say("nothing was answered, and the question stays open")
        self._has_answered = answer.has_said or not self.say.is_bare
        self.is_interrupted = answer.is_cancelled
        if answer.problem is not None:
            self._complain(told(answer.problem, self._options.is_typed))
        if not await self.files.keep(answer.files):
            self.has_failed = True


async def _found(turn: Turn) -> Turn:
    return turn


def _flat(errors: BaseExceptionGroup[EverturnError]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in errors.exceptions:
        found += _flat(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
