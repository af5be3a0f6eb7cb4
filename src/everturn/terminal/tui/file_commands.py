"""Commands for files: attach them, save those of an answer, undo changes, and export the session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from everturn.core.canonical_json import replace_surrogates
from everturn.core.messages import Message
from everturn.core.parts import FilePart, ToolPart
from everturn.errors import ConfigError
from everturn.terminal.text.file_changes import steps_with_changes
from everturn.terminal.text.paths import check_sendable, save_path, write_new_file
from everturn.terminal.tui.command_host import CommandHost
from everturn.terminal.tui.folder_commands import markdown_path, render_markdown
from everturn.terminal.tui.texts.app import AppTexts, get_app_texts
from everturn.terminal.tui.texts.folder import get_folder_texts


class FileCommands:
    """What a person can do with files."""

    def __init__(self, app: CommandHost) -> None:
        self._app = app

    @property
    def _texts(self) -> AppTexts:
        return get_app_texts(self._app.language)

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
            raise ConfigError(self._texts.no_file.format(path=path, why=error.strerror)) from None
        self._app.attached = [*self._app.attached, view]

    async def save(self, path: str) -> None:
        """Save the files of the last answer that has some."""
        files = next(
            (attached for message in reversed(_branch(self._app)) if (attached := message_files(message))),
            list[FilePart](),
        )
        if not files or self._app.follower is None:
            return self._app.show_message(self._texts.nothing_to_save)
        for file in files:
            await self._app.attempt(self._save(file, path))
        return None

    async def _save(self, file: FilePart, destination: str) -> None:
        assert self._app.follower is not None
        data = await self._app.follower.session.read(file.blob)
        path = await asyncio.to_thread(write_new_file, data, save_path(destination, file))
        self._app.show_message(self._texts.saved.format(path=path))

    async def undo(self) -> None:
        """Restore the files as they were before the last turn that changed some, after a confirmation."""
        app, texts = self._app, get_folder_texts(self._app.language)
        changes = [] if app.follower is None else steps_with_changes(_branch(self._app))
        if app.follower is None or not changes:
            return app.show_message(texts.nothing_to_undo)
        turn_of = {id(part): message.turn for message in _branch(self._app) for part in message.parts}
        last = turn_of.get(id(changes[-1]))
        first = next((part for part in changes if turn_of.get(id(part)) == last), changes[-1])
        app.confirm_revert(first)
        return None

    async def _export_markdown(self, path: Path) -> None:
        assert self._app.follower is not None
        text = render_markdown(self._app.follower.state.tree.title, list(_branch(self._app)))
        done = await asyncio.to_thread(write_new_file, text.encode(), path)
        self._app.show_message(self._texts.exported.format(path=done))

    async def export(self, path: str, session: str = "") -> None:
        """Write a session to a new file; existing files are not overwritten."""
        app = self._app
        name = session or (app.follower.id if app.follower is not None else "")
        if not name:
            return app.show_message(self._texts.nothing_said)
        if (markdown := markdown_path(path)) is not None and app.follower is not None and not session:
            await app.attempt(self._export_markdown(markdown))
            return None
        await app.attempt(self._export(name, _zip_at(path, name)))
        return None

    async def _export(self, session: str, path: Path) -> None:
        data = await self._app.server.session(session).export()
        done = await asyncio.to_thread(write_new_file, data, path)
        self._app.show_message(self._texts.exported.format(path=done))


def message_files(message: Message) -> list[FilePart]:
    """Return the files of an answer: its own, and those of its tools."""
    if message.role != "assistant":
        return []
    own = [part for part in message.parts if isinstance(part, FilePart)]
    tools = [part for part in message.parts if isinstance(part, ToolPart) and part.output is not None]
    return own + [file for part in tools if part.output is not None for file in part.output.attachments]


def _branch(app: CommandHost) -> list[Message]:
    return [] if app.follower is None else app.follower.state.branch()


def _zip_at(destination: str, name: str) -> Path:
    """Return the path of an export: in a folder, under a name, or in the current folder."""
    path = Path(os.path.expanduser(destination or f"{name}.zip"))
    return path / f"{name}.zip" if path.is_dir() else path
