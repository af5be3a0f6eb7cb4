"""Folders → trees in the log: what was in them before a turn and after each of its steps, so that it can be taken back.

The first request of a turn is made only when the log says what the folders held; no call has run before that. Then
whatever a step changed is written down before the next request, and when the turn ends. Whoever else changes a folder
meanwhile is taken for the step under way: nobody can tell them apart. While any turn runs, in whatever session or process
with the same `store_dir`, its folders are not reverted. The `.gitignore` files that count are those of the turn's beginning.
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
from everturn.tools.shadow import Shadow
from everturn.turn.contexts import Context
from everturn.turn.run import Run

ROOT: Final = "work"  # the name of the one folder, where there is one
_ROOTS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Snapshots:
    """Takes snapshots of folders, each under a name, and keeps them in `store_dir`, which is in none of them."""

    name = "snapshots"

    def __init__(
        self,
        folders: Mapping[str, str | os.PathLike[str]] | str | os.PathLike[str],
        *,
        store_dir: str | os.PathLike[str],
    ) -> None:
        roots = folders if isinstance(folders, Mapping) else {ROOT: folders}
        for root in roots:
            if not _ROOTS.fullmatch(root):
                raise ConfigError(f"{root!r} cannot name a folder: take up to 64 letters, digits, - and _")
        self.shadows = {root: Shadow(folder, Path(store_dir) / root) for root, folder in roots.items()}

    async def on_turn_start(self, ctx: TurnContext) -> Cleanup:
        """Let nobody revert the folders while this turn is driven."""
        leaving: list[Callable[[], None]] = []

        def leave() -> None:
            while leaving:
                leaving.pop()()

        try:
            for shadow in self.shadows.values():
                leaving.append(await shadow.users.enter())
        except BaseException:
            leave()
            raise
        return leave

    async def on_before_request(self, ctx: RequestContext) -> None:
        """Write down what the step before this one changed; or, at first, what there is."""
        run = _run_of(ctx)
        for root in self.shadows:
            if root in run.state.trees:
                await self._compare(run, root, ctx.step - 1)
            else:
                tree = await self.shadows[root].record()
                await _write(run, root, ctx.step - 1, tree, tree)

    async def on_turn_end(self, ctx: TurnContext) -> None:
        """Write down what the last step changed."""
        await self._end(ctx)

    async def on_error(self, ctx: TurnContext, error: Problem) -> None:
        """Write down what was changed until it failed."""
        await self._end(ctx)

    async def on_revert(self, ctx: RevertContext) -> None:
        """Say what a folder is; and, once that is written down, let it be what it was."""
        shadow = self.shadows.get(ctx.root)
        if shadow is None:
            return
        if not ctx.before:
            await shadow.check_unused()  # before anything is written down
            ctx.before = await shadow.record_before(ctx.tree)
        else:
            await shadow.restore(ctx.tree)
            ctx.is_done = True

    async def _end(self, ctx: TurnContext) -> None:
        run = _run_of(ctx)
        step = run.state.step.number if run.state.step is not None else 0
        for root in self.shadows:
            if root in run.state.trees:  # else no call has run
                await self._compare(run, root, step)

    async def _compare(self, run: Run, root: str, step: int) -> None:
        shadow, before = self.shadows[root], run.state.trees[root]
        # By the rules of the turn's beginning: whoever writes a `.gitignore` hides nothing with it.
        if (after := await shadow.record(_base(run, root))) != before:
            await _write(run, root, step, before, after, await shadow.changes(before, after))


async def _write(run: Run, root: str, step: int, before: str, after: str, changes: tuple[FileChange, ...] = ()) -> None:
    turn, at = run.turn, run.now()
    event = FilesChanged(turn=turn, at=at, step=step, root=root, before=before, after=after, changes=changes)
    await run.commit([event])


def _base(run: Run, root: str) -> str:
    """The tree of a root when the turn began."""
    parts = (part for message in run.state.messages.values() for part in message.parts)
    befores = (part.before for part in parts if isinstance(part, FilesPart) and part.root == root)
    return next(befores, run.state.trees[root])


def _run_of(ctx: TurnContext) -> Run:
    assert isinstance(ctx, Context), "call this with the context the hook was given"
    return ctx.run
