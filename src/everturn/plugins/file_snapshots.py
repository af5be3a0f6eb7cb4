"""File snapshots: a plugin that records folders before a turn and after each step, so that changes can be reverted.

The first request of a turn is sent only after the log has the trees of its folders; no call has run before that. The
changes of a step are recorded before the next request, and when the turn ends. Changes that other programs make
meanwhile are attributed to the running step, because they cannot be told apart. While any turn runs, in any session or
process with the same `store_dir`, its folders are not reverted. The `.gitignore` files at the start of the turn apply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from everturn.core.events import FilesChanged, Problem
from everturn.core.hooks import Cleanup, RequestContext, RevertContext, TurnContext
from everturn.core.parts import FileChange, FilesPart
from everturn.errors import ConfigError
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import HookContext
from everturn.tools.snapshots.store import FolderSnapshots

DEFAULT_ROOT: Final = "work"  # the name of a single folder
_ROOTS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class FileSnapshots:
    """Takes snapshots of named folders and stores them in `store_dir`, which must be outside of them."""

    name = "snapshots"

    def __init__(
        self,
        folders: Mapping[str, str | os.PathLike[str]] | str | os.PathLike[str],
        *,
        store_dir: str | os.PathLike[str],
    ) -> None:
        roots = folders if isinstance(folders, Mapping) else {DEFAULT_ROOT: folders}
        for root in roots:
            if not _ROOTS.fullmatch(root):
                raise ConfigError(f"{root!r} cannot be the name of a folder: use up to 64 letters, digits, - and _")
        self.folders = {root: FolderSnapshots(folder, Path(store_dir) / root) for root, folder in roots.items()}

    async def on_turn_start(self, ctx: TurnContext) -> Cleanup:
        """Lock the folders against reverts while this turn is driven."""
        releases: list[Callable[[], None]] = []

        def leave() -> None:
            while releases:
                releases.pop()()

        try:
            for shadow in self.folders.values():
                releases.append(await shadow.users.enter())
        except BaseException:
            leave()
            raise
        return leave

    async def on_before_request(self, ctx: RequestContext) -> None:
        """Record the changes of the previous step or, before the first step, the present trees."""
        run = _run_of(ctx)
        if run.state.compaction is not None:  # the request for a summary belongs to no step
            return
        for root in self.folders:
            if root in run.state.trees:
                await self._compare(run, root, ctx.step - 1)
            else:
                tree = await self.folders[root].record()
                await _write(run, root, ctx.step - 1, tree, tree)

    async def on_turn_end(self, ctx: TurnContext) -> None:
        """Record the changes of the last step."""
        await self._end(ctx)

    async def on_error(self, ctx: TurnContext, error: Problem) -> None:
        """Record the changes until the failure."""
        await self._end(ctx)

    async def on_revert(self, ctx: RevertContext) -> None:
        """Record the present tree of a folder; in the second call, restore the old one."""
        shadow = self.folders.get(ctx.root)
        if shadow is None:
            return
        if not ctx.before:
            await shadow.check_unused()  # before anything is recorded
            ctx.before = await shadow.record_before(ctx.tree)
        else:
            await shadow.restore(ctx.tree)
            ctx.is_done = True

    async def _end(self, ctx: TurnContext) -> None:
        run = _run_of(ctx)
        step = run.state.step.number if run.state.step is not None else 0
        for root in self.folders:
            if root in run.state.trees:  # otherwise no call has run
                await self._compare(run, root, step)

    async def _compare(self, run: ActiveTurn, root: str, step: int) -> None:
        shadow, before = self.folders[root], run.state.trees[root]
        # With the ignore rules of the turn's start: a `.gitignore` written during the turn hides nothing.
        if (after := await shadow.record(_first_tree(run, root))) != before:
            await _write(run, root, step, before, after, await shadow.changes(before, after))


async def _write(
    run: ActiveTurn, root: str, step: int, before: str, after: str, changes: tuple[FileChange, ...] = ()
) -> None:
    turn, at = run.turn, run.now()
    event = FilesChanged(turn=turn, at=at, step=step, root=root, before=before, after=after, changes=changes)
    await run.commit([event])


def _first_tree(run: ActiveTurn, root: str) -> str:
    """The tree of a root at the start of the turn."""
    parts = (part for message in run.state.messages.values() for part in message.parts)
    befores = (part.before for part in parts if isinstance(part, FilesPart) and part.root == root)
    return next(befores, run.state.trees[root])


def _run_of(ctx: TurnContext) -> ActiveTurn:
    assert isinstance(ctx, HookContext), "call this with the context the hook was given"
    return ctx.run
