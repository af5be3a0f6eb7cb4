"""A session that was brought in was written by anybody: it changes nothing for those who are here."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.core.events import Event, FilesChanged, StepFinished, TurnStarted
from everturn.core.hooks import Plugin, RevertContext
from everturn.core.options import Budget, Spent
from everturn.core.parts import FileChange, FilesPart, Usage
from everturn.errors import CommandRefused, UnknownFile, UnreadableLog
from everturn.stores.export import LOG, MANIFEST
from everturn.stores.memory import MemoryStore
from everturn.stores.registry import get_store
from everturn.wire import dump_event, load_event
from tests.helpers.tenants import AGENTS, a_house, look, model, over, settle, somebody, start_session

Forge = Callable[[list[Event]], list[Event]]


async def brought(access: Access, folder: Path, forge: Forge) -> api.SessionView:
    """Say something, take it out, change it, and bring it in again."""
    sent = await start_session(access, "look")
    await over(access, sent)
    await access.sessions.export(sent.session, folder / "out.zip")
    with zipfile.ZipFile(folder / "out.zip") as old, zipfile.ZipFile(folder / "in.zip", "w") as new:
        events = forge([load_event(line) for line in old.read(LOG).splitlines()])
        for name in old.namelist():
            data = old.read(name)
            if name == LOG:
                data = b"".join(dump_event(event) + b"\n" for event in events)
            if name == MANIFEST:
                data = json.dumps({**json.loads(data), "head": len(events)}).encode()
            new.writestr(name, data)
    return await access.sessions.import_file(folder / "in.zip")


def using(usage: Usage) -> Forge:
    return lambda log: [replace(event, usage=usage) if isinstance(event, StepFinished) else event for event in log]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_it_says_was_used_is_on_nobodys_account(kind: str, tmp_path: Path) -> None:
    store: Any = MemoryStore() if kind == "memory" else get_store(str(tmp_path / "house.db"))
    limits = TenantLimits(requests=0, budget=Budget(tokens=10**9, cost=100.0))
    async with a_house(store, limits=limits) as house:
        ada = Access(house, somebody("ada"))
        await over(ada, await start_session(ada, "look"))
        once = (await ada.accounts.usage()).total
        await brought(ada, tmp_path, using(Usage(10**15, 10**15, cost=1e9)))
        # The one more that was begun to be forged, and nothing else.
        assert (await ada.accounts.usage()).total == once + once == await house.app.store.spent(tenant="ada")
        await over(ada, await start_session(ada, "nobody is locked out"))
        with pytest.raises(UnreadableLog, match="is negative"):
            await brought(ada, tmp_path, using(Usage(-(10**9), -(10**9), cost=-1e6)))
        assert once != Spent()


class Keeper(Plugin):
    """Keeps a folder, and remembers what it was asked to make of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def on_revert(self, ctx: RevertContext) -> None:
        self.asked.append(ctx.tree)
        ctx.before, ctx.is_done = ctx.before or "now", True


@pytest.mark.parametrize("tree", ["6ef19b41", "", "c" * 64])
async def test_no_folder_is_reverted_to_what_a_file_says_it_was(tree: str, tmp_path: Path) -> None:
    store, keeper = MemoryStore(), Keeper()
    app = App(model(), tools=[look], store=store, plugins=[keeper])
    house = ServerContext(app, store.accounts, Agents(AGENTS, default_limits=TenantLimits(requests=0)))
    await settle(house.accounts)
    await app.start()

    def forge(log: list[Event]) -> list[Event]:
        at = next(n for n, event in enumerate(log) if type(event).__name__ == "CallFinished")
        turn = log[at].__getattribute__("turn")
        gone = (FileChange("a.txt", "deleted"),)
        change = FilesChanged(turn=turn, at=1.0, step=1, before=tree, after="c" * 64, root="work", changes=gone)
        return [*log[: at + 1], change, *log[at + 1 :]]

    try:
        bob = Access(house, somebody("bob", "approver"))
        view = await brought(bob, tmp_path, forge)
        assert any(isinstance(entry.event, FilesChanged) for entry in await store.events(view.id))
        for root in ("work", ""):
            with pytest.raises(UnknownFile):
                await bob.files.revert(view.id, api.RevertFiles(root=root, tree=tree or "c" * 64))
        with pytest.raises(UnknownFile):
            await bob.files.revert(view.id, api.RevertFiles(root="work", tree=""))
        # Nor by whoever asks the runtime itself.
        parts = [part for message in (await bob.sessions.messages(view.id)).messages for part in message.parts]
        part = next(part for part in parts if isinstance(part, FilesPart))
        for named in (part, replace(part, before="c" * 64)):
            with pytest.raises(CommandRefused, match="no tree"):
                await bob.scope.chat(view.id).revert(named, by="eve")
        assert keeper.asked == []
    finally:
        await app.aclose()


async def test_times_to_come_and_names_of_others_are_not_believed(tmp_path: Path) -> None:
    async with a_house() as house:
        ada, now = Access(house, somebody("ada")), house.app.clock.now()

        def forge(log: list[Event]) -> list[Event]:
            later = [replace(event, at=4e12) for event in log]
            return [
                replace(event, options=replace(event.options, by="owner-ada"))
                if isinstance(event, TurnStarted)
                else event
                for event in later
            ]

        view = await brought(ada, tmp_path, forge)
        assert view.by == "member-ada"
        assert now <= view.updated <= house.app.clock.now()
        assert [day.agent for day in (await ada.accounts.usage()).days] == ["helper"]
        sent = await start_session(ada, "look")
        await over(ada, sent)
        assert (await ada.sessions.list()).sessions[0].id == sent.session
