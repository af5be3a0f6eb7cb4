"""Slash commands and actions of the conversation: sends them to the server; refused text returns to the input."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from everturn import api
from everturn.client import RemoteTurn
from everturn.core.canonical_json import replace_surrogates
from everturn.core.messages import Message
from everturn.core.parts import FilePart, ToolPart
from everturn.errors import ConfigError
from everturn.terminal.text.paths import check_sendable, parse_paths, save_path, write_new_file
from everturn.terminal.tui.composer import Composer
from everturn.terminal.tui.host import Host
from everturn.terminal.tui.texts.app import AppTexts, get_app_texts
from everturn.terminal.tui.transcript import Transcript


class ConversationView(Protocol):
    """The conversation screen, as commands see it."""

    @property
    def composer(self) -> Composer:
        """The input."""
        ...

    @property
    def transcript(self) -> Transcript:
        """The conversation."""
        ...

    def draw(self) -> None:
        """Draw the lines around the conversation again."""
        ...


class CommandHost(Host, Protocol):
    """The app, as commands see it."""

    agent: str  # choice for the next message; "": the default
    model: str
    attached: list[api.FileView]  # files of the next message
    editing: str  # the message that is edited; "": none

    @property
    def chat_screen(self) -> ConversationView:
        """The conversation screen, whichever screen is on top of it."""
        ...

    async def open_session(self, session: str, leaf: str | None = None, *, keeps_text: bool = False) -> None:
        """Show another session; "" is a new one. `keeps_text`: the text in the input is meant for it, and stays."""
        ...

    def current_agent_and_model(self) -> tuple[str, str]:
        """Return the agent and the model of the next message."""
        ...

    def choose(self, agent: str = "", model: str = "") -> None:
        """Select another agent for new sessions, or another model."""
        ...

    async def action_help(self) -> None:
        """Show all keys."""
        ...

    async def action_new(self) -> None:
        """Begin a new session."""
        ...

    async def action_quit(self) -> None:
        """Quit, and print what is still running."""
        ...

    async def action_files(self) -> None:
        """Show the file changes, and revert them."""
        ...

    async def action_pick(self) -> None:
        """Choose the model or the agent."""
        ...


class Commands:
    """Everything that a person can send from the input of a conversation."""

    def __init__(self, app: CommandHost) -> None:
        self._app = app

    @property
    def _app_texts(self) -> AppTexts:
        return get_app_texts(self._app.language)

    # Messages ------------------------------------------------------------------------------------------------------

    async def submit(self, text: str, steers: bool = False) -> None:
        """Run a command, or send a message."""
        app = self._app
        word, _, rest = text.strip().partition(" ")
        if text.startswith("/") and "\n" not in text and not steers:
            await self._run_command(word, rest.strip())
        elif not text.strip() and not app.attached:
            app.show_message(self._app_texts.nothing_said)
        else:
            await self._send(replace_surrogates(text.strip()), steers)

    async def _send(self, text: str, steers: bool) -> None:
        app, files = self._app, list(self._app.attached)
        app.attached = []
        turn = await app.attempt(self._sending(text, files, steers))
        if turn is None:
            app.attached = files
            app.chat_screen.composer.write("\n".join(filter(None, (text, app.chat_screen.composer.text))))
            return
        app.editing = ""
        if app.follower is None or app.follower.id != turn.session:
            await app.open_session(turn.session, keeps_text=app.follower is None)
        else:
            app.follower.poll_now()
        app.chat_screen.transcript.scroll_end(animate=False)
        app.chat_screen.draw()

    async def _sending(self, text: str, files: list[api.FileView], steers: bool) -> RemoteTurn:
        app = self._app
        follower = app.follower
        if follower is None:
            return await app.server.start_session(text, files=files, agent=app.agent, model=app.model)
        if app.editing:
            return await follower.session.edit(app.editing, text, model=app.model)
        is_running = follower.state.running is not None
        busy: api.Busy = "steer" if steers and is_running else "queue"
        return await follower.session.send(text, files=files, model=app.model, busy=busy)

    async def _run_command(self, word: str, rest: str) -> None:
        app = self._app
        match word:
            case "/help":
                await app.action_help()
            case "/new":
                await app.action_new()
            case "/quit":
                await app.action_quit()
            case "/again":
                await self.regenerate()
            case "/files" | "/revert":
                await app.action_files()
            case "/model" | "/agent":
                await self._choose(word, rest)
            case "/steer":
                await self._send(replace_surrogates(rest), True)
            case _:
                await self._run_file_command(word, rest)

    async def _run_file_command(self, word: str, rest: str) -> None:
        match word:
            case "/attach":
                await self.attach(parse_paths(rest))
            case "/detach":
                self._app.attached = []
            case "/save":
                await self.save(rest)
            case "/export":
                await self.export(rest)
            case _:
                known = ", ".join(self._app_texts.slash)
                self._app.show_message(self._app_texts.no_command.format(name=word, known=known), "warning")

    # Model and agent ------------------------------------------------------------------------------------------------

    def values(self, word: str) -> Sequence[str]:
        """Return the possible arguments of a command, for completion."""
        if word == "/model":
            return self.models()
        return [agent.name for agent in self._app.agents.agents] if word == "/agent" else ()

    def models(self) -> list[str]:
        """Return the models that the agent of this session may use, its own first."""
        name = self._app.current_agent_and_model()[0]
        agent = next((candidate for candidate in self._app.agents.agents if candidate.name == name), None)
        return [] if agent is None else list(dict.fromkeys([agent.model, *agent.models]))

    async def _choose(self, word: str, name: str) -> None:
        app, texts = self._app, self._app_texts
        if not name:
            return await app.action_pick()
        known = self.values(word)
        if name not in known:
            text = texts.no_model if word == "/model" else texts.no_agent
            app.show_message(text.format(name=name, known=", ".join(known)), "warning")
        elif word == "/model":
            app.choose(model=name)
        else:
            app.choose(agent=name)
        return None

    # The turn ------------------------------------------------------------------------------------------------------

    async def stop(self, is_hard: bool) -> None:
        """Cancel the running turn; with `is_hard` its tools, too."""
        app = self._app
        turn = None if app.follower is None else app.follower.state.running
        if app.follower is None or turn is None:
            return
        await app.attempt(app.follower.session.turn(turn.id).cancel(hard=is_hard))
        app.show_message(self._app_texts.stopped_hard if is_hard else self._app_texts.stopping)

    async def take_back(self) -> None:
        """Cancel the last queued message, and put its text back into the input."""
        app = self._app
        waiting = [] if app.follower is None else app.follower.state.queued_messages
        if app.follower is None or not waiting:
            return
        last = waiting[-1]
        await app.attempt(app.follower.session.turn(last.turn).cancel())
        app.follower.poll_now()
        if not app.chat_screen.composer.text:
            app.chat_screen.composer.write(last.text)
        app.show_message(self._app_texts.taken_back)

    async def regenerate(self, message: str = "", model: str = "") -> None:
        """Regenerate the last answer, or the answer to the given message."""
        app = self._app
        branch = self._branch()
        message_id = message or (branch[-1].id if branch else "")
        if app.follower is None or not message_id:
            return app.show_message(self._app_texts.nothing_to_edit)
        await app.attempt(app.follower.session.rerun(message_id, model=model or app.model))
        return None

    def edit_last(self) -> None:
        """Edit the last message of the person."""
        sent = [message for message in self._branch() if message.role == "user"]
        if sent:
            self.edit(sent[-1])
        else:
            self._app.show_message(self._app_texts.nothing_to_edit)

    def edit(self, message: Message) -> None:
        """Put a message into the input, to edit it."""
        app = self._app
        app.editing = message.id
        app.chat_screen.composer.write(message.text)
        app.chat_screen.composer.text_area.focus()
        app.chat_screen.draw()

    def leave_edit(self) -> None:
        """Cancel the edit."""
        self._app.editing = ""
        self._app.chat_screen.composer.write("")
        self._app.chat_screen.draw()

    def _branch(self) -> list[Message]:
        return [] if self._app.follower is None else self._app.follower.state.branch()

    # Files ---------------------------------------------------------------------------------------------------------

    async def attach(self, paths: Sequence[Path]) -> None:
        """Upload files for the next message."""
        for path in paths:
            await self._app.attempt(self._attach(path))
        self._app.chat_screen.draw()

    async def _attach(self, path: Path) -> None:
        import mimetypes

        await asyncio.to_thread(check_sendable, path)
        kind = mimetypes.guess_type(path.name)[0] or ""
        try:
            view = await self._app.server.attach(path, kind, replace_surrogates(path.name))
        except OSError as error:
            raise ConfigError(self._app_texts.no_file.format(path=path, why=error.strerror)) from None
        self._app.attached = [*self._app.attached, view]

    async def save(self, path: str) -> None:
        """Save the files of the last answer that has some."""
        files = next(
            (attached for message in reversed(self._branch()) if (attached := message_files(message))), list[FilePart]()
        )
        if not files or self._app.follower is None:
            return self._app.show_message(self._app_texts.nothing_to_save)
        for file in files:
            await self._app.attempt(self._save(file, path))
        return None

    async def _save(self, file: FilePart, destination: str) -> None:
        assert self._app.follower is not None
        data = await self._app.follower.session.read(file.blob)
        path = await asyncio.to_thread(write_new_file, data, save_path(destination, file))
        self._app.show_message(self._app_texts.saved.format(path=path))

    async def export(self, path: str, session: str = "") -> None:
        """Write a session to a new file; existing files are not overwritten."""
        app = self._app
        name = session or (app.follower.id if app.follower is not None else "")
        if not name:
            return app.show_message(self._app_texts.nothing_said)
        await app.attempt(self._export(name, _zip_at(path, name)))
        return None

    async def _export(self, session: str, path: Path) -> None:
        data = await self._app.server.session(session).export()
        done = await asyncio.to_thread(write_new_file, data, path)
        self._app.show_message(self._app_texts.exported.format(path=done))


def message_files(message: Message) -> list[FilePart]:
    """Return the files of an answer: its own, and those of its tools."""
    if message.role != "assistant":
        return []
    own = [part for part in message.parts if isinstance(part, FilePart)]
    tools = [part for part in message.parts if isinstance(part, ToolPart) and part.output is not None]
    return own + [file for part in tools if part.output is not None for file in part.output.attachments]


def _zip_at(destination: str, name: str) -> Path:
    """Return the path of an export: in a folder, under a name, or in the current folder."""
    path = Path(os.path.expanduser(destination or f"{name}.zip"))
    return path / f"{name}.zip" if path.is_dir() else path
