"""What steps did to files → what they were before: `/files`, `/revert N` and `/unrevert`. Nothing changes unasked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from everturn import Chat
from everturn.core.events import FilesChanged, FilesReverted
from everturn.core.parts import FileChange, FilesPart
from everturn.errors import ConfigError, UnknownSession
from everturn.terminal.changes import change_of, changed, count_of, steps_of

COUNTED = 500  # changes up to which a keeper counts
MOST_SHOWN = 200  # files that are listed before a person is asked
Say = Callable[..., None]
Agreed = Callable[[str], Awaitable[bool]]
LAST = "let them be what they were before the last /revert or /unrevert?"
NONE_YET = "no step of this conversation has changed files"


class Keeper(Protocol):
    """Whoever keeps what was in a folder."""

    async def record(self) -> str:
        """What is in it now."""
        ...

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """What became of files between two trees."""
        ...


class Reverting:
    """Lists the steps that changed files, and takes back what they did. `keepers` are those of folders, by root."""

    def __init__(self, say: Say, agreed: Agreed, keepers: Mapping[str, Keeper]) -> None:
        self._say, self._agreed, self._keepers = say, agreed, keepers

    async def list(self, chat: Chat) -> None:
        """Say which steps there are."""
        if not (steps := await self._steps(chat)):
            self._say(NONE_YET)
            return
        wide = len(str(len(steps)))
        for number, part in enumerate(steps, 1):
            self._say(changed(part.changes), "", "±", label=f"{number:>{wide}}  ")
        self._say("/revert N lets files be what they were before step N; /unrevert takes that back")

    async def revert(self, chat: Chat, word: str) -> None:
        """Let files be what they were before a step, if the person still wants that once they see what it changes.

        Raises:
            ConfigError: there is no such step.
            SessionBusy, CommandRefused: it could not be done.
        """
        steps = await self._steps(chat)
        if not steps:
            raise ConfigError(f"{NONE_YET}; there is nothing to revert")
        if not (word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(steps)):
            raise ConfigError(f"/revert takes the number of a step, 1 to {len(steps)}; /files lists them")
        part = steps[int(word) - 1]
        if await self._is_wanted(chat, part.root, part.before, f"let them be what they were before step {word}?"):
            await chat.revert(part)
            self._say(f"the files are what they were before step {word}; /unrevert takes that back")

    async def unrevert(self, chat: Chat) -> None:
        """Take back the last revert, or what took it back.

        Raises:
            ConfigError: there was none.
        """
        try:
            log = [entry.event for entry in await chat.runtime.store.events(chat.session)]
        except UnknownSession:
            log = []
        done = [event for event in log if isinstance(event, FilesReverted)]
        if not done:
            raise ConfigError("nothing was reverted in this conversation; /revert N does that")
        if await self._is_wanted(chat, done[-1].root, done[-1].before, LAST):
            await chat.unrevert(done[-1])
            self._say("that is done; /unrevert once more takes it back")

    async def _steps(self, chat: Chat) -> list[FilesPart]:
        # Of all branches: what was done to a folder is done, whichever answer is selected now.
        return steps_of((await chat.tree()).messages.values())

    async def _is_wanted(self, chat: Chat, root: str, tree: str, question: str) -> bool:
        changes = await self._changes(chat, root, tree)
        if not changes:
            self._say("the files are like that already; nothing was changed")
            return False
        for change in changes[:MOST_SHOWN]:
            self._say(change_of(change), "", "±")
        if len(changes) > MOST_SHOWN:
            self._say(f"and {len(changes) - MOST_SHOWN} more", "", "±")
        more = " or more" if len(changes) >= COUNTED else ""
        if await self._agreed(f"{count_of(len(changes))}{more} would change like this; {question}"):
            return True
        self._say("nothing was changed")
        return False

    async def _changes(self, chat: Chat, root: str, tree: str) -> Sequence[FileChange]:
        """What would become of the files as they are now."""
        if root == "":
            return await _within(chat, tree)
        if (keeper := self._keepers.get(root)) is None:
            raise ConfigError("nobody keeps these files here; begin with --files and the folder they are in")
        return await keeper.changes(await keeper.record(), tree)


async def _within(chat: Chat, tree: str) -> Sequence[FileChange]:
    """The same for files that the session keeps by itself."""
    from everturn.tools.files.trees import changes, read_tree

    store, now = chat.runtime.store, ""
    for entry in await store.events(chat.session):
        if isinstance(entry.event, FilesChanged | FilesReverted) and entry.event.root == "":
            now = entry.event.after
    was, wanted = [read_tree(await store.blob(name) if name else b"") for name in (now, tree)]
    return changes(was, wanted)
