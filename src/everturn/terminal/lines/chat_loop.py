"""Chat loop of line mode (`everturn chat`): reads lines, runs one turn after the other, and prints each answer while
it streams.

The loop is a client like any other: it draws events, sends commands and decides nothing. Without a store the
conversation is in the memory of this process and ends with it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn import Chat, EverturnError, TextPart, Turn
from everturn.agents.definition import AgentDefinition
from everturn.core.modality import modality_of
from everturn.core.options import TurnOptions
from everturn.core.ports import Model
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, MissingInput, leaf_errors
from everturn.terminal.lines.attachments import Attachments
from everturn.terminal.lines.context import describe_warning, print_context
from everturn.terminal.lines.ctrl_c import EXIT_INTERRUPTED, handle_ctrl_c
from everturn.terminal.lines.folder import LineFolder, OpenLineFolder
from everturn.terminal.lines.gate_prompt import GatePrompt
from everturn.terminal.lines.gate_queue import DenyAll
from everturn.terminal.lines.input import read_piped_lines, read_typed_lines
from everturn.terminal.lines.memory import run_memory_command
from everturn.terminal.lines.messages import MessageWriter
from everturn.terminal.lines.revert import RevertCommands
from everturn.terminal.lines.texts import (
    COMMANDS,
    KEYS,
    MANUAL,
    NAMES,
    describe_missing_input,
    describe_problem,
    unknown_command,
)
from everturn.terminal.lines.tool_list import print_tools, print_unhealthy_servers
from everturn.terminal.lines.turn_view import TextRenderer, TurnPrinter
from everturn.terminal.lines.turn_watch import TurnWatch
from everturn.terminal.lines.unfinished_turns import MakeModel, resume_unfinished_turns
from everturn.terminal.text.local_tools import LocalToolOptions, LocalTools, build_local_tools
from everturn.terminal.text.paths import check_paths, parse_dropped_paths
from everturn.terminal.text.tool_loader import check_manual, load_tools, parse_budget, tools_in

__all__ = ["ChatConfig", "ChatOptions", "LocalToolOptions", "parse_budget", "run_chat"]

PROMPT = "you> "
START_WAIT, LINE_WAIT = 15.0, 0.5  # seconds to wait for servers before the first line, and before any other
FILE_MODALITIES = frozenset({"image-gen", "image-edit", "audio-tts"})  # models whose answers are files


class ChatConfig(Struct, frozen=True):
    """Tools and plugins of the configuration. `rules` are all rules, including those of the command line."""

    tools: tuple[Any, ...] = ()
    plugins: tuple[object, ...] = ()
    rules: tuple[Rule, ...] = ()
    agents: tuple[AgentDefinition[Any], ...] = ()  # the first is the one that the person talks to
    folder: OpenLineFolder | None = None  # opens the folder that the chat works in


class ChatOptions(Struct, frozen=True):
    """Options of a chat; `is_typed` means that a person types the input.

    The files of `attach` go with the first message; the folder `save` receives every file that a model makes. The
    `store` persists the conversation as `session`, and turns that an earlier process left unfinished there are
    resumed. `tools` names files and modules of tools, `turn` has the other options of turns, `reach` selects the local
    tools, and `configured` comes from the configuration. `typeset` makes a renderer for the text of answers
    (Markdown).
    """

    model: str
    color: bool = False
    is_typed: bool = False
    attach: tuple[str, ...] = ()
    save: str = ""
    store: str = ""
    session: str = ""
    tools: tuple[str, ...] = ()
    turn: TurnOptions = TurnOptions()
    local_tools: LocalToolOptions = LocalToolOptions()
    configured: ChatConfig = ChatConfig()
    typeset: Callable[[], TextRenderer] | None = None


def run_chat(options: ChatOptions, make_model: MakeModel) -> int:
    """Run a chat until the person leaves or the pipe ends, and return the exit code.

    Raises:
        ConfigError: the model, a file or a folder does not exist; nothing was sent.
    """
    if (reconfigure := getattr(sys.stdin, "reconfigure", None)) is not None:
        reconfigure(errors="replace")
    # Without a handler Python prints log records; a traceback in the middle of an answer does not help the person.
    logging.getLogger().addHandler(logging.NullHandler())
    return asyncio.run(_talk(options, make_model))


async def _talk(options: ChatOptions, make_model: MakeModel) -> int:
    model = make_model(options.model)
    if not options.is_typed and not options.save and modality_of(model) in FILE_MODALITIES:
        raise ConfigError(f"{model.name} creates files: name a folder for them with --save DIR")
    attach = check_paths(options.attach)
    tools = load_tools(options.tools)
    say = MessageWriter(options.color)
    local = await build_local_tools(options.local_tools, say, say if options.is_typed else None)
    check_manual(
        options.turn.manual,
        [*_plain(options.configured.tools), *tools, *(tool for tool in local.tools if tool is not local.servers)],
    )
    async with Chat(
        model,
        tools=[*options.configured.tools, *tools, *local.tools],
        plugins=[*options.configured.plugins, *local.plugins],
        rules=options.configured.rules,
        store=options.store or None,
        session=options.session or None,
        options=_with_tools(options.turn, [*tools, *local.tools]),
    ) as chat:
        chat.app.replace_agents(options.configured.agents)
        folder = None
        if options.configured.folder is not None:
            folder = await asyncio.to_thread(options.configured.folder, chat.app)
            await chat.app.put_agent(folder.definition)
            options = replace(options, turn=folder.options)
            chat = Chat(model, app=chat.app, session=options.session or None, options=folder.options)
            for note in (folder.label, *folder.notes):
                say(note)
        loop = ChatLoop(chat, model, make_model, options, say, local, folder)
        if options.is_typed:
            say(f"{model.name}. /help says what there is, Ctrl-C stops an answer, Ctrl-D leaves.")
        await local.wait_for_servers(START_WAIT)
        print_unhealthy_servers(say, local.status())
        if options.store:
            await loop.resume_unfinished()
        if loop.is_over:
            return 0
        await loop.files.add(attach)
        if options.is_typed:
            print()
            await loop.run_lines(read_typed_lines(PROMPT))
            loop.print_resume_hint()
            return 0
        await loop.run_lines(read_piped_lines())
        if loop.files.attached and not (loop.has_tried or loop.is_over):  # `--attach talk.mp3 </dev/null`
            await loop.run_lines(["/send"])
        loop.print_resume_hint()
        return EXIT_INTERRUPTED if loop.is_interrupted else int(loop.has_failed)


def _with_tools(turn: TurnOptions, tools: Iterable[Any]) -> TurnOptions:
    """Add the tools of the command line to the tools of the agent: naming them there asks for them."""
    if turn.tools is None:
        return turn
    return replace(turn, tools=(*turn.tools, *tools_in(_plain(tools))))


def _plain(tools: Iterable[Any]) -> list[Any]:
    """Return the tools that are available at once; MCP servers bring theirs later."""
    return [tool for tool in tools if not hasattr(tool, "aclose")]


class ChatLoop:
    """One conversation after the other, on one runtime."""

    def __init__(
        self,
        chat: Chat,
        model: Model,
        make_model: MakeModel,
        options: ChatOptions,
        say: MessageWriter,
        local: LocalTools,
        folder: LineFolder | None = None,
    ) -> None:
        self._chat, self._model, self._make_model, self._options = chat, model, make_model, options
        self.say, self._local, self._folder = say, local, folder
        self._has_answered = False
        self.files = Attachments(chat, say, options.is_typed, options.save)
        self._revert_commands = RevertCommands(say, say.confirm, local.snapshots)
        self.has_tried = self.has_failed = self.is_interrupted = self.is_over = False

    def _print_error(self, text: str) -> None:
        self.has_failed = True
        self.say(" ".join(text.split()), "bad", "×")

    async def run_lines(self, lines: Iterable[str]) -> None:
        """Run one line after the other, with an empty line between them."""
        is_typed = self._options.is_typed
        for line in lines:
            if not line.strip():
                continue
            try:
                await self._local.wait_for_servers(LINE_WAIT)
                await self._run_line(line)
            except* EverturnError as errors:
                self._print_error("; ".join(map(str, leaf_errors(errors))))
            if self.is_over or (self.is_interrupted and not is_typed):
                return
            if is_typed:
                print()

    async def _run_line(self, line: str) -> None:
        word, rest = [*line.split(maxsplit=1), ""][:2]
        if self._options.is_typed and word not in NAMES and (paths := parse_dropped_paths(line.rstrip())):
            await self.files.add(paths)
        elif not line.startswith("/"):
            await self._send(line.strip())
        elif word in MANUAL and not self._options.is_typed:
            self._print_error(f"{word} works only in a terminal; {MANUAL[word]}")
        else:
            await self._run_command(word, rest.strip())

    async def _run_command(self, word: str, rest: str) -> None:
        match word:
            case "/help":
                self._help()
            case "/send":
                await self._send("")
            case "/tools":
                print_tools(self.say, self._chat.app.registry.enabled(), self._local.status())
            case "/model":
                self._switch(rest)
            case "/again":
                await self._again()
            case "/context":
                print_context(self.say, await self._chat.context(model=self._model))
            case "/compact":
                await self._compact(rest)
            case "/new":
                self.print_resume_hint()
                self._chat = Chat(self._model, app=self._chat.app, options=self._options.turn)
                self.say("a new conversation; the model knows nothing of the one before")
            case "/quit":
                self.is_over = True
            case _:
                await self._run_file_command(word, rest)

    async def _run_file_command(self, word: str, rest: str) -> None:
        match word:
            case "/attach":
                await self.files.attach(rest)
            case "/detach":
                self.files.detach()
            case "/save":
                await self.files.save(rest)
            case "/memory":
                app = self._chat.app
                await run_memory_command(app.store.user_memory, rest, self.say, app.clock.now())
            case "/files":
                await self._revert_commands.list(self._chat)
            case "/revert":
                await self._revert_commands.revert(self._chat, rest)
            case "/unrevert":
                await self._revert_commands.unrevert(self._chat)
            case _ if self._folder is not None and (text := self._folder.expand(word, rest)) is not None:
                await self._send(text)
            case _:
                self._print_error(unknown_command(word))

    async def _send(self, text: str) -> None:
        """Send a message with the attached files, which stay attached if the message is refused."""
        self.has_tried = True
        if not text and not self.files.attached:
            raise ConfigError("there is nothing to send: type a message, or /attach PATH first")
        parts = [*([TextPart(text)] if text else []), *self.files.attached]

        async def sending() -> Turn:
            at_step_limit = "ask" if self._options.is_typed else None
            turn = await self._chat.send(parts, model=self._model, at_step_limit=at_step_limit)
            self.files.attached = []
            return turn

        try:
            await self._watch(sending())
        except MissingInput as error:
            raise MissingInput(describe_missing_input(error, bool(text), self._options.is_typed)) from None

    async def _compact(self, focus: str) -> None:
        if not await self._chat.messages():
            raise ConfigError("there is nothing to compact yet; type a message first")
        await self._watch(self._chat.compact(focus=focus))

    async def resume_unfinished(self) -> None:
        """Print how much of this conversation the store has, and watch its unfinished turns."""
        if (unfinished := await resume_unfinished_turns(self._chat, self._make_model)) is None:
            return
        self.say(f"{self._chat.session}: {len(await self._chat.messages())} messages so far")
        for turn in unfinished:
            self.say("resuming an unfinished turn")
            await self._watch(_return_turn(turn))
            if self.is_over:  # the person left at a question
                return

    def print_resume_hint(self) -> None:
        """Print how to continue this conversation, if a store has it."""
        if self._options.store and self.has_tried and self._chat.session != self._options.session:
            self.say(f"kept; go on with: everturn chat --store {self._options.store} --session {self._chat.session}")

    def _help(self) -> None:
        widest = max(map(len, COMMANDS))
        for name, about in COMMANDS.items():
            self.say(about, label=f"{name:<{widest}}  ")
        for command in () if self._folder is None else self._folder.commands:
            self.say(command.description or command.source, label=f"/{command.name:<{widest - 1}}  ")
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
        with handle_ctrl_c(interrupted.set):
            turn = await sending
            if self._has_answered and not self._options.is_typed:
                print()
            typeset = self._options.typeset() if self._options.typeset is not None and not self.say.is_bare else None
            printer = TurnPrinter(screen, turn.id, self.say, self.say.is_bare, typeset)
            prompter = (
                GatePrompt(screen, self._chat) if self._options.is_typed else DenyAll(self._chat, self._print_error)
            )

            def echo() -> None:
                if not self.say.is_bare:
                    screen.record_echo("^C")

            watch = TurnWatch(self._chat, turn, printer, prompter, can_wait=bool(self._options.store))
            if not await watch.until_over(interrupted, echo):
                self.is_over = True
                self.say("nothing was answered, and the question stays open")
        self._has_answered = printer.has_text or not self.say.is_bare
        self.is_interrupted = printer.is_cancelled
        if printer.problem is not None:
            self._print_error(describe_problem(printer.problem, self._options.is_typed))
        if not await self.files.receive(printer.files):
            self.has_failed = True
        if self._options.is_typed and (warning := describe_warning(await self._chat.context(model=self._model))):
            self.say(warning, "", "!")


async def _return_turn(turn: Turn) -> Turn:
    return turn
