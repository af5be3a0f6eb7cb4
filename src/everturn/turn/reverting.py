"""A recorded tree → files that are it again; what they were before is written down first, so that this can be taken back.

The session's own files are a name in the log. Folders are kept by a plugin: it is asked by `on_revert`, to record and then
to restore. A process that dies in between has written what the files were, and whoever goes on only restores.
"""

from __future__ import annotations

import logging

from everturn import faults
from everturn.core.commands import Revert
from everturn.core.events import Event, FilesChanged, FilesReverted, RevertStarted
from everturn.errors import CommandRefused
from everturn.turn.hookup import call
from everturn.turn.ledger import Ledger
from everturn.turn.run import Setup

log = logging.getLogger(__name__)


class OneRevert:
    """Files that are to be what they were; see `core.hooks.RevertContext`."""

    def __init__(self, session: str, root: str, tree: str, before: str) -> None:
        self.session, self.root, self.tree = session, root, tree
        self.before = before
        self.is_done = False


async def revert(setup: Setup, ledger: Ledger, command: Revert) -> None:
    """Let files be what they were.

    Raises:
        CommandRefused: no such tree was recorded here, nobody keeps these files, or they could not be restored.
    """
    entries = await setup.store.events(ledger.session)
    known, begun = _recorded([entry.event for entry in entries], command)
    if command.tree not in known:
        raise CommandRefused(f"no tree {command.tree[:16]!r} was recorded here for the files of {command.root!r}")
    before = begun.before if begun is not None else await _before(setup, ledger, command)
    if begun is None:
        at = setup.clock.now()
        await ledger.commit(
            [RevertStarted(at=at, root=command.root, before=before, after=command.tree, key=command.key)]
        )
    faults.hit("files.reverting")
    if command.root:
        await _ask(setup, ledger, command, before)
    at, root = setup.clock.now(), command.root
    await ledger.commit(
        [FilesReverted(at=at, root=root, before=before, after=command.tree, by=command.by, command=command.key)]
    )
    ledger.trees[root] = command.tree


async def _before(setup: Setup, ledger: Ledger, command: Revert) -> str:
    if not command.root:
        return (await setup.store.roots(ledger.session)).get("", "")
    return (await _ask(setup, ledger, command, "")).before


async def _ask(setup: Setup, ledger: Ledger, command: Revert, before: str) -> OneRevert:
    """Ask who keeps a folder: to record it while `before` is empty, to restore it once that is known."""
    ctx = OneRevert(ledger.session, command.root, command.tree, before)
    for plugin, method in setup.hooks["on_revert"]:
        try:
            await call(method, ctx)
        except CommandRefused as error:  # that is a text for people
            raise CommandRefused(f"{plugin} could not do it: {error}") from error
        except Exception as error:
            # Others may name what is on this machine, and the reason is read by everybody who follows the session.
            log.warning("session %s: %s could not revert %r", ledger.session, plugin, command.root, exc_info=True)
            raise CommandRefused(f"{plugin} could not do it ({type(error).__name__}); the log says why") from error
    if not ctx.before or (before and not ctx.is_done):
        raise CommandRefused(f"nobody here keeps the files of {command.root!r}")
    return ctx


def _recorded(events: list[Event], command: Revert) -> tuple[set[str], RevertStarted | None]:
    """The trees that were recorded of a root, and whether this very command was begun before."""
    found: set[str] = set()
    begun: RevertStarted | None = None
    for event in events:
        if isinstance(event, FilesChanged | FilesReverted | RevertStarted) and event.root == command.root:
            found |= {event.before, event.after}
            if isinstance(event, RevertStarted) and event.key == command.key:
                begun = event
    if command.root:
        found.discard("")  # of a log that came from elsewhere; only the session's own files begin with no tree
    return found, begun
