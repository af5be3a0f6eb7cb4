"""Revert of file changes: `/files`, `/revert N` and `/unrevert`. Each change is shown and confirmed first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from everturn import Chat
from everturn.core.events import FilesReverted
from everturn.core.parts import FileChange, FilesPart
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.errors import ConfigError, UnknownSession
from everturn.terminal.text.file_changes import count_files, describe_change, steps_with_changes, summarize_changes

MAX_COUNTED = 500  # changes up to which a snapshot store counts
MOST_SHOWN = 200  # files that are listed before the confirmation
Notify = Callable[..., None]
Confirm = Callable[[str], Awaitable[bool]]
UNREVERT_QUESTION = "let them be what they were before the last /revert or /unrevert?"
NO_STEPS = "no step of this conversation has changed files"


class SnapshotStore(Protocol):
    """Snapshots of one folder."""

    async def record(self) -> str:
        """Record the folder as it is now, and return the tree."""
        ...

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the file changes between two trees."""
        ...


class RevertCommands:
    """Lists the steps that changed files, and reverts them. `keepers` are the snapshot stores of folders, by root."""

    def __init__(self, say: Notify, agreed: Confirm, keepers: Mapping[str, SnapshotStore]) -> None:
        self._say, self._agreed, self._keepers = say, agreed, keepers

    async def list(self, chat: Chat) -> None:
        """List the steps that changed files."""
        if not (steps := await self._steps(chat)):
            self._say(NO_STEPS)
            return
        digits = len(str(len(steps)))
        for number, part in enumerate(steps, 1):
            self._say(summarize_changes(part.changes), "", "±", label=f"{number:>{digits}}  ")
        self._say("/revert N lets files be what they were before step N; /unrevert takes that back")

    async def revert(self, chat: Chat, word: str) -> None:
        """Restore files as they were before a step, if the person confirms the changes.

        Raises:
            ConfigError: the step does not exist.
            SessionBusy, CommandRefused: the files could not be restored.
        """
        steps = await self._steps(chat)
        if not steps:
            raise ConfigError(f"{NO_STEPS}; there is nothing to revert")
        if not (word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(steps)):
            raise ConfigError(f"/revert takes the number of a step, 1 to {len(steps)}; /files lists them")
        part = steps[int(word) - 1]
        if await self._confirm_changes(chat, part.root, part.before, f"let them be what they were before step {word}?"):
            await chat.revert(part)
            self._say(f"files reverted to before step {word}; /unrevert undoes this")

    async def unrevert(self, chat: Chat) -> None:
        """Undo the last revert or unrevert.

        Raises:
            ConfigError: this conversation has none.
        """
        try:
            log = [entry.event for entry in await chat.app.store.indexed_events(chat.session, "files")]
        except UnknownSession:
            log = []
        reverts = [event for event in log if isinstance(event, FilesReverted)]
        if not reverts:
            raise ConfigError("nothing was reverted in this conversation; /revert N does that")
        if await self._confirm_changes(chat, reverts[-1].root, reverts[-1].before, UNREVERT_QUESTION):
            await chat.unrevert(reverts[-1])
            self._say("that is done; /unrevert once more takes it back")

    async def _steps(self, chat: Chat) -> list[FilesPart]:
        # Steps of all branches: they changed the folder, whichever answer is selected now.
        return steps_with_changes((await chat.tree()).messages.values())

    async def _confirm_changes(self, chat: Chat, root: str, tree: str, question: str) -> bool:
        changes = await self._changes(chat, root, tree)
        if not changes:
            self._say("the files are like that already; nothing was changed")
            return False
        for change in changes[:MOST_SHOWN]:
            self._say(describe_change(change), "", "±")
        if len(changes) > MOST_SHOWN:
            self._say(f"and {len(changes) - MOST_SHOWN} more", "", "±")
        more = " or more" if len(changes) >= MAX_COUNTED else ""
        if await self._agreed(f"{count_files(len(changes))}{more} would change like this; {question}"):
            return True
        self._say("nothing was changed")
        return False

    async def _changes(self, chat: Chat, root: str, tree: str) -> Sequence[FileChange]:
        """Return the changes that restoring a tree would make to the current files."""
        if root == "":
            return await _virtual_changes(chat, tree)
        if (snapshots := self._keepers.get(root)) is None:
            raise ConfigError("these files have no snapshots here; start with --files and their folder")
        return await snapshots.changes(await snapshots.record(), tree)


async def _virtual_changes(chat: Chat, tree: str) -> Sequence[FileChange]:
    """Return the same changes for files that the session itself holds (virtual files)."""
    from everturn.tools.files.trees import diff_trees, read_tree

    store = chat.app.store
    now = (await store.recorded_trees(chat.session)).get("", "")
    with blobs_of_tenant(chat.tenant):
        before, wanted = [read_tree(await store.blob(name) if name else b"") for name in (now, tree)]
    return diff_trees(before, wanted)
