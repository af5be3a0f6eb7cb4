"""What a person wrote or pressed → what is asked of the server. What is refused stays in the box."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from everturn import api
from everturn.client import RemoteTurn
from everturn.core.canonical import clean
from everturn.core.messages import Message
from everturn.core.parts import FilePart, ToolPart
from everturn.errors import ConfigError
from everturn.terminal.paths import check, given, target, write
from everturn.tui.words.app import AppWords, words

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp


class Commands:
    """All that can be said and done in the box of a conversation."""

    def __init__(self, app: EverturnApp) -> None:
        self._app = app

    @property
    def _said(self) -> AppWords:
        return words(self._app.language)

    # What is said --------------------------------------------------------------------------------------------------

    async def said(self, text: str, steers: bool = False) -> None:
        """Obey a command, or send a message."""
        app = self._app
        word, _, rest = text.strip().partition(" ")
        if text.startswith("/") and "\n" not in text and not steers:
            await self._obey(word, rest.strip())
        elif not text.strip() and not app.attached:
            app.tell(self._said.nothing_said)
        else:
            await self._send(clean(text.strip()), steers)

    async def _send(self, text: str, steers: bool) -> None:
        app, files = self._app, list(self._app.attached)
        app.attached = []
        turn = await app.attempt(self._sending(text, files, steers))
        if turn is None:
            app.attached = files
            app.talk.composer.write("\n".join(filter(None, (text, app.talk.composer.text))))
            return
        app.editing = ""
        if app.follower is None or app.follower.id != turn.session:
            await app.open_session(turn.session, keeps_text=app.follower is None)
        else:
            app.follower.look()
        app.talk.transcript.scroll_end(animate=False)
        app.talk.draw()

    async def _sending(self, text: str, files: list[api.FileView], steers: bool) -> RemoteTurn:
        app = self._app
        follower = app.follower
        if follower is None:
            return await app.server.begin(text, files=files, agent=app.agent, model=app.model)
        if app.editing:
            return await follower.session.edit(app.editing, text, model=app.model)
        is_running = follower.state.running is not None
        busy: api.Busy = "steer" if steers and is_running else "queue"
        return await follower.session.send(text, files=files, model=app.model, busy=busy)

    async def _obey(self, word: str, rest: str) -> None:
        app = self._app
        match word:
            case "/help":
                await app.action_help()
            case "/new":
                await app.action_new()
            case "/quit":
                await app.action_quit()
            case "/again":
                await self.again()
            case "/files" | "/revert":
                await app.action_files()
            case "/model" | "/agent":
                await self._choose(word, rest)
            case "/steer":
                await self._send(clean(rest), True)
            case _:
                await self._obey_about_files(word, rest)

    async def _obey_about_files(self, word: str, rest: str) -> None:
        match word:
            case "/attach":
                await self.attach(given(rest))
            case "/detach":
                self._app.attached = []
            case "/save":
                await self.save(rest)
            case "/export":
                await self.export(rest)
            case _:
                known = ", ".join(self._said.slash)
                self._app.tell(self._said.no_command.format(name=word, known=known), "warning")

    # Who answers ---------------------------------------------------------------------------------------------------

    def values(self, word: str) -> Sequence[str]:
        """What may stand behind a command."""
        if word == "/model":
            return self.models()
        return [agent.name for agent in self._app.agents.agents] if word == "/agent" else ()

    def models(self) -> list[str]:
        """The models that the agent of this session may use, its own first."""
        name = self._app.who()[0]
        agent = next((one for one in self._app.agents.agents if one.name == name), None)
        return [] if agent is None else list(dict.fromkeys([agent.model, *agent.models]))

    async def _choose(self, word: str, name: str) -> None:
        app, said = self._app, self._said
        if not name:
            return await app.action_pick()
        known = self.values(word)
        if name not in known:
            text = said.no_model if word == "/model" else said.no_agent
            app.tell(text.format(name=name, known=", ".join(known)), "warning")
        elif word == "/model":
            app.choose(model=name)
        else:
            app.choose(agent=name)
        return None

    # The turn ------------------------------------------------------------------------------------------------------

    async def stop(self, is_hard: bool) -> None:
        """End the turn that runs; `is_hard`: its tools, too."""
        app = self._app
        turn = None if app.follower is None else app.follower.state.running
        if app.follower is None or turn is None:
            return
        await app.attempt(app.follower.session.turn(turn.id).cancel(hard=is_hard))
        app.tell(self._said.stopped_hard if is_hard else self._said.stopping)

    async def take_back(self) -> None:
        """Take the last message back that waits; its text is in the box again."""
        app = self._app
        waiting = [] if app.follower is None else app.follower.state.waiting
        if app.follower is None or not waiting:
            return
        last = waiting[-1]
        await app.attempt(app.follower.session.turn(last.turn).cancel())
        app.follower.look()
        if not app.talk.composer.text:
            app.talk.composer.write(last.text)
        app.tell(self._said.taken_back)

    async def again(self, message: str = "", model: str = "") -> None:
        """Another answer to what was said last, or to the message that is meant."""
        app = self._app
        branch = self._branch()
        found = message or (branch[-1].id if branch else "")
        if app.follower is None or not found:
            return app.tell(self._said.nothing_to_edit)
        await app.attempt(app.follower.session.rerun(found, model=model or app.model))
        return None

    def edit_last(self) -> None:
        """Have what was said last in the box again."""
        said = [message for message in self._branch() if message.role == "user"]
        if said:
            self.edit(said[-1])
        else:
            self._app.tell(self._said.nothing_to_edit)

    def edit(self, message: Message) -> None:
        """Have a message in the box, to say it differently."""
        app = self._app
        app.editing = message.id
        app.talk.composer.write(message.text)
        app.talk.composer.box.focus()
        app.talk.draw()

    def leave_edit(self) -> None:
        """Let it be as it was."""
        self._app.editing = ""
        self._app.talk.composer.write("")
        self._app.talk.draw()

    def _branch(self) -> list[Message]:
        return [] if self._app.follower is None else self._app.follower.state.branch()

    # Files ---------------------------------------------------------------------------------------------------------

    async def attach(self, paths: Sequence[Path]) -> None:
        """Upload files, to go with the next message."""
        for path in paths:
            await self._app.attempt(self._attach(path))
        self._app.talk.draw()

    async def _attach(self, path: Path) -> None:
        import mimetypes

        await asyncio.to_thread(check, path)
        kind = mimetypes.guess_type(path.name)[0] or ""
        try:
            view = await self._app.server.attach(path, kind, clean(path.name))
        except OSError as error:
            raise ConfigError(self._said.no_file.format(path=path, why=error.strerror)) from None
        self._app.attached = [*self._app.attached, view]

    async def save(self, place: str) -> None:
        """Write the files of the last answer that has some."""
        files = next((found for message in reversed(self._branch()) if (found := files_of(message))), list[FilePart]())
        if not files or self._app.follower is None:
            return self._app.tell(self._said.nothing_to_save)
        for file in files:
            await self._app.attempt(self._save(file, place))
        return None

    async def _save(self, file: FilePart, place: str) -> None:
        assert self._app.follower is not None
        data = await self._app.follower.session.read(file.blob)
        path = await asyncio.to_thread(write, data, target(place, file))
        self._app.tell(self._said.saved.format(path=path))

    async def export(self, place: str, session: str = "") -> None:
        """Write a session to a file; nothing that is there is written over."""
        app = self._app
        name = session or (app.follower.id if app.follower is not None else "")
        if not name:
            return app.tell(self._said.nothing_said)
        await app.attempt(self._export(name, _zip_at(place, name)))
        return None

    async def _export(self, session: str, path: Path) -> None:
        data = await self._app.server.session(session).export()
        done = await asyncio.to_thread(write, data, path)
        self._app.tell(self._said.exported.format(path=done))


def files_of(message: Message) -> list[FilePart]:
    """The files of an answer: its own, and those that its tools brought."""
    if message.role != "assistant":
        return []
    own = [part for part in message.parts if isinstance(part, FilePart)]
    tools = [part for part in message.parts if isinstance(part, ToolPart) and part.output is not None]
    return own + [file for part in tools if part.output is not None for file in part.output.attachments]


def _zip_at(place: str, name: str) -> Path:
    """Where an export goes: a folder, a name, or here."""
    path = Path(os.path.expanduser(place or f"{name}.zip"))
    return path / f"{name}.zip" if path.is_dir() else path
