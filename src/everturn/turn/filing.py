"""The files that a session keeps in its log, and blobs, as a running tool sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from everturn.core.events import FilesChanged
from everturn.core.parts import FileChange
from everturn.core.ports import Store
from everturn.errors import ToolError, UnknownMessage
from everturn.turn.aside import Waiting
from everturn.turn.run import Run

ROOT = ""  # the session's own


class SessionBlobs:
    """The blobs of a store; it remembers which were put by this tool."""

    def __init__(self, store: Store) -> None:
        self._store = store

    put_here: tuple[str, ...] = ()

    async def put(self, data: bytes) -> str:
        """Keep them."""
        name = await self._store.put_blob(data)
        self.put_here = (*self.put_here, name)
        return name

    async def get(self, name: str) -> bytes:
        """Bring them back."""
        return await self._store.blob(name)


class SessionFiles:
    """The tree of a session: read by anybody, changed by one tool at a time."""

    def __init__(self, step: int, call: str, blobs: SessionBlobs, waiting: Waiting) -> None:
        self._step, self._call, self._blobs, self._waiting = step, call, blobs, waiting

    async def tree(self) -> str:
        """The tree as it is now; "" before the first change."""
        return await _tree(self._waiting.run)

    async def change(self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]]) -> str:
        """Put another tree in its place: `make` is given the present one; nobody else changes it meanwhile."""
        found: list[str] = []
        # To its end, though the tool is cancelled meanwhile: or the next would begin from what is no longer there.
        await self._waiting.whole(self._change(make, found))
        return found[0]

    async def _change(
        self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]], found: list[str]
    ) -> None:
        waiting, setup = self._waiting, self._waiting.run.setup
        async with setup.supervisor.filing(self._waiting.run.session):
            before = await _tree(waiting.run)
            after, changes = await make(before)
            found.append(after)
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
            await waiting.put(lambda: [] if waiting.run.state.trees.get(ROOT) == after else [event])
            waiting.run.ledger.trees[ROOT] = after


async def _check_tree(store: Store, tree: str) -> None:
    """Refuse a tree that nobody has put: the files of the session could not be read any more."""
    try:
        await store.blob(tree)
    except UnknownMessage:
        raise ToolError(f"there is no blob {tree[:80]!r}; a tree is one that was put with blobs.put") from None


async def _tree(run: Run) -> str:
    trees = run.ledger.trees
    if ROOT not in trees:
        known = (await run.setup.store.roots(run.session)).get(ROOT, "")
        trees.setdefault(ROOT, known)
    return trees[ROOT]
