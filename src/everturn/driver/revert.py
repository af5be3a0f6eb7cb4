"""Revert: restores files to a recorded tree, and records the present tree first, so that the revert can be undone.

The session's own files are a tree in the log. Folders are handled by a plugin through `on_revert`, which first records
and then restores. If the process dies in between, the log has the recorded tree, and the next driver only restores.
"""

from __future__ import annotations

import logging

from everturn import failpoints
from everturn.core.commands import Revert
from everturn.core.events import Event, FilesChanged, FilesReverted, RevertStarted, TurnStarted
from everturn.errors import CommandRefused
from everturn.running.drive_setup import DriveSetup
from everturn.running.ledger import Ledger
from everturn.running.plugin_table import invoke_hook

log = logging.getLogger(__name__)


class RevertHookContext:
    """The context of `on_revert`; see `core.hooks.RevertContext`."""

    def __init__(self, session: str, root: str, tree: str, before: str) -> None:
        self.session, self.root, self.tree = session, root, tree
        self.before = before
        self.is_done = False


async def revert_files(setup: DriveSetup, ledger: Ledger, command: Revert) -> None:
    """Restore files to a recorded tree.

    Raises:
        CommandRefused: the tree was not recorded here, no plugin handles these files, or the restore failed.
    """
    entries = await setup.store.indexed_events(ledger.session, "files", command.root)
    trees, started = _recorded_trees([entry.event for entry in entries], command)
    if command.tree not in trees:
        raise CommandRefused(f"no tree {command.tree[:16]!r} was recorded here for the files of {command.root!r}")
    setup = await _setup_of_files(setup, ledger.session, [entry.event for entry in entries], command.root)
    before = started.before if started is not None else await _present_tree(setup, ledger, command)
    if started is None:
        at = setup.clock.now()
        await ledger.commit(
            [RevertStarted(at=at, root=command.root, before=before, after=command.tree, key=command.key)]
        )
    failpoints.hit_failpoint("files.reverting")
    if command.root:
        await _run_hook(setup, ledger, command, before)
    at, root = setup.clock.now(), command.root
    await ledger.commit(
        [FilesReverted(at=at, root=root, before=before, after=command.tree, by=command.by, command=command.key)]
    )
    ledger.trees[root] = command.tree


async def _setup_of_files(setup: DriveSetup, session: str, events: list[Event], root: str) -> DriveSetup:
    """The setup of the agent whose turn changed the files last: its own plugins keep them, beside those of the app."""
    turns = [event.turn for event in events if isinstance(event, FilesChanged) and event.root == root]
    for entry in await setup.store.events(session, turn=turns[-1]) if turns else ():
        if isinstance(entry.event, TurnStarted):
            return setup.for_turn(entry.event.options)
    return setup


async def _present_tree(setup: DriveSetup, ledger: Ledger, command: Revert) -> str:
    if not command.root:
        return (await setup.store.recorded_trees(ledger.session)).get("", "")
    return (await _run_hook(setup, ledger, command, "")).before


async def _run_hook(setup: DriveSetup, ledger: Ledger, command: Revert, before: str) -> RevertHookContext:
    """Run `on_revert`: it records the folder while `before` is empty, and restores it afterwards."""
    ctx = RevertHookContext(ledger.session, command.root, command.tree, before)
    for plugin, method in setup.hooks["on_revert"]:
        try:
            await invoke_hook(method, ctx)
        except CommandRefused as error:  # its text is meant for people
            raise CommandRefused(f"{plugin} could not revert the files: {error}") from error
        except Exception as error:
            # Other errors may name paths of this machine, and every reader of the session sees the reason.
            log.warning("session %s: %s could not revert %r", ledger.session, plugin, command.root, exc_info=True)
            raise CommandRefused(
                f"{plugin} could not revert the files ({type(error).__name__}); see the process log"
            ) from error
    if not ctx.before or (before and not ctx.is_done):
        raise CommandRefused(f"this process records no snapshots of {command.root!r}")
    return ctx


def _recorded_trees(events: list[Event], command: Revert) -> tuple[set[str], RevertStarted | None]:
    """The recorded trees of a root, and the start event of this command if an earlier drive wrote it."""
    trees: set[str] = set()
    started: RevertStarted | None = None
    for event in events:
        if isinstance(event, FilesChanged | FilesReverted | RevertStarted) and event.root == command.root:
            trees |= {event.before, event.after}
            if isinstance(event, RevertStarted) and event.key == command.key:
                started = event
    if command.root:
        trees.discard("")  # from an imported log; only the session's own files can start without a tree
    return trees, started
