"""Session files: the files and blobs of a session, as a running tool reads and changes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from everturn.calls.suspend import ToolWait
from everturn.core.events import FilesChanged
from everturn.core.parts import FileChange
from everturn.core.store_ports import Store
from everturn.errors import ToolError, UnknownMessage
from everturn.running.active_turn import ActiveTurn

SESSION_ROOT = ""  # the session's own


class SessionBlobs:
    """The blobs of a store; `put_here` lists those that this tool stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    put_here: tuple[str, ...] = ()

    async def put(self, data: bytes) -> str:
        """Store bytes, and return their hash."""
        name = await self._store.put_blob(data)
        self.put_here = (*self.put_here, name)
        return name

    async def get(self, name: str) -> bytes:
        """The bytes with this hash."""
        return await self._store.blob(name)


class SessionFiles:
    """The file tree of a session: any tool may read it, one tool at a time may change it."""

    def __init__(self, step: int, call: str, blobs: SessionBlobs, waiting: ToolWait) -> None:
        self._step, self._call, self._blobs, self._waiting = step, call, blobs, waiting

    async def tree(self) -> str:
        """The present tree; "" before the first change."""
        return await _tree(self._waiting.run)

    async def change(self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]]) -> str:
        """Replace the tree: `make` gets the present one and returns the new one, under a lock."""
        result: list[str] = []
        # Shielded from the cancellation of the tool: otherwise the next change would start from a stale tree.
        await self._waiting.run_shielded(self._change(make, result))
        return result[0]

    async def _change(
        self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]], result: list[str]
    ) -> None:
        waiting, setup = self._waiting, self._waiting.run.setup
        async with setup.tool_tasks.files_lock(self._waiting.run.session):
            before = await _tree(waiting.run)
            after, changes = await make(before)
            result.append(after)
            if after == before:
                return
            if after and after not in self._blobs.put_here:
                await _check_tree(setup.store, after)
            run = waiting.run
            event = FilesChanged(
                turn=run.turn,
                at=run.now(),
                step=self._step,
                before=before,
                after=after,
                changes=tuple(changes),
                call=self._call,
                blobs=tuple(dict.fromkeys(self._blobs.put_here)),
            )
            await waiting.commit_in_current_drive(
                lambda: [] if waiting.run.state.trees.get(SESSION_ROOT) == after else [event]
            )
            waiting.run.ledger.trees[SESSION_ROOT] = after


async def _check_tree(store: Store, tree: str) -> None:
    """Refuse a tree that is not stored as a blob: the session's files could not be read any more."""
    try:
        await store.blob(tree)
    except UnknownMessage:
        raise ToolError(f"there is no blob {tree[:80]!r}; a tree is one that was put with blobs.put") from None


async def _tree(run: ActiveTurn) -> str:
    trees = run.ledger.trees
    if SESSION_ROOT not in trees:
        known = (await run.setup.store.recorded_trees(run.session)).get(SESSION_ROOT, "")
        trees.setdefault(SESSION_ROOT, known)
    return trees[SESSION_ROOT]
