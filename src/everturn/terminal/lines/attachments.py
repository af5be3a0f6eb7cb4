"""Attachments of a chat: files for the next message, and files that came with the last answer.

Nothing is sent or written without a request: a file waits for the next message, and a received file stays in memory
until it is saved.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from everturn import Chat, FilePart
from everturn.core.canonical_json import replace_surrogates
from everturn.errors import ConfigError
from everturn.terminal.text.paths import (
    check_sendable,
    describe_file,
    ensure_folder,
    format_size,
    parse_paths,
    safe_name,
    save_path,
    write_new_file,
)

ATTACHED_HINT = "what is attached goes with your next message; /send sends it without words, /detach drops it"

Notify = Callable[..., None]
"""Prints a message, in a style, behind a sign."""


class Attachments:
    """Attached and received files. `is_typed` means that a person types the input, and can follow a hint."""

    def __init__(self, chat: Chat, say: Notify, is_typed: bool, save: str = "") -> None:
        self._chat, self._say, self._is_typed = chat, say, is_typed
        self._folder = ensure_folder(Path(os.path.expanduser(save))) if save else None
        self.attached: list[FilePart] = []
        self._received: Sequence[FilePart] = ()
        self._hinted: set[str] = set()

    # To the model

    async def attach(self, text: str) -> None:
        """Attach the files that a person names; without a name, list what is attached."""
        if text:
            await self.add(parse_paths(text))
        elif not self.attached:
            self._say("nothing is attached; /attach PATH lets a file go with your next message")
        else:
            self._show(self.attached)
            self._say(ATTACHED_HINT)

    async def add(self, paths: Iterable[Path]) -> None:
        """Attach files: all of them or none.

        Raises:
            ConfigError: a file cannot be sent; the message says what to do.
        """
        files = [await self._read(path) for path in paths]
        self.attached = list(dict.fromkeys([*self.attached, *files]))  # a file attached twice is sent once
        if self._is_typed and files:
            self._show(files)
            self._hint(ATTACHED_HINT)

    async def _read(self, path: Path) -> FilePart:
        check_sendable(path)
        try:
            return await self._chat.attach(path, name=replace_surrogates(path.name))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None

    def detach(self) -> None:
        """Drop the attached files."""
        count, self.attached = len(self.attached), []
        self._say(f"{count} {'file' if count == 1 else 'files'} dropped" if count else "nothing is attached")

    def _show(self, files: Iterable[FilePart]) -> None:
        for file in files:
            self._say(describe_file(file.name, file), "", "↑")

    # From the model

    async def receive(self, files: Sequence[FilePart]) -> bool:
        """Take the files of an answer, save them if there is a folder, and return whether they can be saved at all."""
        if not files:
            return True
        self._received = files
        if self._folder is not None:
            for file in files:
                await self._write(file, self._folder / safe_name(file))
        elif self._is_typed:
            self._hint("/save writes it to this folder, /save PATH to another place")
        else:
            names = ", ".join(f"{safe_name(file)} ({format_size(file.size)})" for file in files)
            self._say(f"not saved: {names}; say where with --save DIR")
        return self._folder is not None or self._is_typed

    async def save(self, text: str) -> None:
        """Write the files that came last: into this folder, into another one, or under another name."""
        if not self._received:
            raise ConfigError("there is nothing to save: no answer has a file yet")
        for file in self._received:
            await self._write(file, save_path(text, file))

    async def _write(self, file: FilePart, path: Path) -> None:
        data = await self._chat.read(file)
        self._say(f"saved {await asyncio.to_thread(write_new_file, data, path)}")

    def _hint(self, text: str) -> None:
        if text not in self._hinted:
            self._hinted.add(text)
            self._say(text)
