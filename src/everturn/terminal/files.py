"""The files of a chat: those that go with the next message, and those that came with an answer.

Nothing is sent or written that nobody asked for: a file waits until there is a message, and stays in memory until it is
saved.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from everturn import Chat, FilePart
from everturn.core.canonical import clean
from everturn.errors import ConfigError
from everturn.terminal.paths import about, check, folder, given, safe_name, size, target, write

ATTACHED = "what is attached goes with your next message; /send sends it without words, /detach drops it"

Say = Callable[..., None]
"""Says a text, in a style, behind a sign."""


class Files:
    """What is attached, and what was made. `is_typed` when somebody is there who can type what a hint says."""

    def __init__(self, chat: Chat, say: Say, is_typed: bool, save: str = "") -> None:
        self._chat, self._say, self._is_typed = chat, say, is_typed
        self._folder = folder(Path(os.path.expanduser(save))) if save else None
        self.attached: list[FilePart] = []
        self._made: Sequence[FilePart] = ()
        self._hinted: set[str] = set()

    # On the way out

    async def attach(self, text: str) -> None:
        """Attach the files that a person names; without a name say what is attached."""
        if text:
            await self.add(given(text))
        elif not self.attached:
            self._say("nothing is attached; /attach PATH lets a file go with your next message")
        else:
            self._show(self.attached)
            self._say(ATTACHED)

    async def add(self, paths: Iterable[Path]) -> None:
        """Attach files, all of them or none.

        Raises:
            ConfigError: one of them cannot be sent; the text says what to do.
        """
        files = [await self._read(path) for path in paths]
        self.attached = list(dict.fromkeys([*self.attached, *files]))  # twice is once
        if self._is_typed and files:
            self._show(files)
            self._hint(ATTACHED)

    async def _read(self, path: Path) -> FilePart:
        check(path)
        try:
            return await self._chat.attach(path, name=clean(path.name))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None

    def detach(self) -> None:
        """Drop what is attached."""
        count, self.attached = len(self.attached), []
        self._say(f"{count} {'file' if count == 1 else 'files'} dropped" if count else "nothing is attached")

    def _show(self, files: Iterable[FilePart]) -> None:
        for file in files:
            self._say(about(file.name, file), "", "↑")

    # On the way in

    async def keep(self, files: Sequence[FilePart]) -> bool:
        """Take what came with an answer, save it where that was asked for, and say whether it has a place to stay."""
        if not files:
            return True
        self._made = files
        if self._folder is not None:
            for file in files:
                await self._write(file, self._folder / safe_name(file))
        elif self._is_typed:
            self._hint("/save writes it to this folder, /save PATH elsewhere")
        else:
            named = ", ".join(f"{safe_name(file)} ({size(file.size)})" for file in files)
            self._say(f"not saved: {named}; say where with --save DIR")
        return self._folder is not None or self._is_typed

    async def save(self, text: str) -> None:
        """Write the files that came last, into this folder, into another one or under another name."""
        if not self._made:
            raise ConfigError("there is nothing to save: no answer has brought a file yet")
        for file in self._made:
            await self._write(file, target(text, file))

    async def _write(self, file: FilePart, path: Path) -> None:
        data = await self._chat.read(file)
        self._say(f"saved {await asyncio.to_thread(write, data, path)}")

    def _hint(self, text: str) -> None:
        if text not in self._hinted:
            self._hinted.add(text)
            self._say(text)
