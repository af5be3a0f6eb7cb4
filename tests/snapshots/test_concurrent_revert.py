"""A folder is not reverted while somebody else's turn works in it, here or in another process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.helpers.conversations import Scenes
from tests.helpers.waiting import wait_until

from everturn import App, Chat, Turn, tool
from everturn.core.events import FilesChanged, RevertStarted, TurnCancelled, TurnStarted
from everturn.core.hooks import RevertContext
from everturn.core.options import TurnOptions
from everturn.core.parts import FilesPart
from everturn.errors import CommandRefused
from everturn.plugins.file_snapshots import FileSnapshots
from everturn.testing import MemoryStore, call, calls, say
from everturn.tools.snapshots.store import FolderSnapshots


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_folder_in_which_another_session_works_is_reverted_only_after_that(
    folder: Path, tmp_path: Path, is_cancelled: bool
) -> None:
    go = asyncio.Event()

    @tool(idempotent=True)
    def put(name: str) -> str:
        (folder / name).write_text("x\n", encoding="utf-8")
        return "done"

    @tool(read_only=True)
    async def pause() -> str:
        await go.wait()
        return "done"

    store = MemoryStore()
    model = Scenes(
        one=[calls(call("put", name="one")), say("Done.")],
        two=[calls(call("put", name="two")), calls(call("pause")), say("Done.")],
    )
    plugin = FileSnapshots(folder, store_dir=tmp_path / "store")
    app = App(model, tools=[put, pause], plugins=[plugin], store=store)
    async with Chat(model, app=app, session="a") as chat:
        result = await (await chat.send("one"))
        assert result.message is not None
        [files] = [part for part in result.message.parts if isinstance(part, FilesPart)]
        turn = await Chat(model, app=app, session="b").send("two")
        await wait_until((folder / "two").exists)
        with pytest.raises(CommandRefused, match="is running, maybe in another session: wait until it has ended"):
            await chat.revert(files)
        assert (folder / "one").exists()
        assert (folder / "two").exists()
        assert not any(isinstance(entry.event, RevertStarted) for entry in await store.events("a"))
        if is_cancelled:
            await turn.cancel(hard=True)
        go.set()
        await asyncio.gather(_ended(turn), return_exceptions=True)
        await wait_until(lambda: not plugin.folders["work"].users.count)
        await chat.revert(files)
        assert not (folder / "one").exists()


async def _ended(turn: Turn) -> None:
    await turn


OTHER = """
import asyncio, sys
from everturn.tools.snapshots.store import FolderSnapshots
async def main():
    await FolderSnapshots(sys.argv[1], sys.argv[2]).users.enter()
    print("in", flush=True)
    sys.stdin.read(1)
asyncio.run(main())
"""


async def test_a_process_that_works_in_a_folder_keeps_others_from_restoring_it_until_it_ends_or_dies(
    folder: Path, tmp_path: Path
) -> None:
    shadow = FolderSnapshots(folder, tmp_path / "store")
    tree = await shadow.record()
    (folder / "new").touch()
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER, str(folder), str(tmp_path / "store"), stdin=-1, stdout=-1
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"in\n"
    with pytest.raises(CommandRefused, match="is running"):
        await shadow.restore(tree)
    assert (folder / "new").exists()
    other.kill()
    await other.wait()
    await shadow.restore(tree)
    assert not (folder / "new").exists()


async def test_who_wants_to_work_in_a_folder_waits_until_it_is_restored(folder: Path, tmp_path: Path) -> None:
    shadow = FolderSnapshots(folder, tmp_path / "store")
    with shadow.users.hold_exclusively(folder):
        entering = asyncio.ensure_future(shadow.users.enter())
        for _ in range(20):
            await asyncio.sleep(0.002)
        assert not entering.done()
    leave = await entering
    others = [await shadow.users.enter() for _ in range(3)]
    leave()
    leave()
    for other in others:
        with pytest.raises(CommandRefused), shadow.users.hold_exclusively(folder):
            raise AssertionError
        other()
    with shadow.users.hold_exclusively(folder):
        pass


async def test_a_copy_of_the_lock_in_a_process_that_is_being_started_keeps_nobody_out(
    folder: Path, tmp_path: Path
) -> None:
    users = FolderSnapshots(folder, tmp_path / "store").users
    leave = await users.enter()
    copy = os.dup(users._handle)  # as one has between fork and exec
    leave()
    with users.hold_exclusively(folder):
        pass
    os.close(copy)


class Keeper:
    """A plugin that keeps a folder, and fails in words of its own."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def on_revert(self, ctx: RevertContext) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("cannot open /srv/data/secret-place"), "could not revert the files (OSError)"),
        (CommandRefused("move it away"), "move it away"),
    ],
)
async def test_why_a_folder_was_not_reverted_says_nothing_of_the_machine(error: Exception, message: str) -> None:
    store = MemoryStore()
    tree = "a" * 64
    begun = TurnStarted(turn="t", at=1.0, options=TurnOptions(), input=None)
    changed = FilesChanged(turn="t", at=1.0, step=1, root="work", before=tree, after="b" * 64)
    await store.restore("s", "local", [begun, changed, TurnCancelled(turn="t", at=1.0)])
    async with Chat("", app=App(Scenes(), store=store, plugins=[Keeper(error)]), session="s") as chat:
        with pytest.raises(CommandRefused) as refused:
            await chat.revert(FilesPart(0, before=tree, after="", root="work"))
        assert message in str(refused.value)
        assert "/srv" not in str(refused.value)
        assert all("/srv" not in repr(entry.event) for entry in await store.events("s"))
