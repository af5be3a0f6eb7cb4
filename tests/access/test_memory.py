"""Memory files over the API: everybody's are their own, in every store; a role gives no way to those of another user."""

from __future__ import annotations

import pytest

from everturn import api
from everturn.access import Access
from everturn.core.memory.user_memory import MAX_MEMORY_FILE_BYTES, MemoryCreate, MemoryMarks, memory_hash
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, Forbidden, HashMismatch, UnknownFile
from tests.helpers.stores import store as store
from tests.helpers.tenants import a_house, somebody
from tests.tools_memory.test_paths import HOSTILE


async def test_files_are_listed_read_written_and_deleted(store: Store) -> None:
    async with a_house(store) as house:
        memory = Access(house, somebody()).memory
        view = await memory.write(api.PutMemory(path="/memories/notes/a.md", text="one", base="none"))
        assert (view.text, view.file.path, view.file.untrusted) == ("one", "notes/a.md", False)
        with pytest.raises(HashMismatch):
            await memory.write(api.PutMemory(path="notes/a.md", text="two", base=memory_hash("other")))
        await memory.write(api.PutMemory(path="notes/a.md", text="two", base=view.file.hash))
        assert (await memory.read("notes/a.md")).text == "two"
        listed = await memory.list()
        assert [(file.path, file.size) for file in listed.files] == [("notes/a.md", 3)]
        await memory.delete("notes")
        assert (await memory.list()).files == []
        for path in ("notes/a.md", "notes"):
            with pytest.raises(UnknownFile):
                await memory.read(path)
            with pytest.raises(UnknownFile):
                await memory.delete(path)


async def test_nobody_sees_or_changes_the_files_of_another(store: Store) -> None:
    async with a_house(store) as house:
        ada = Access(house, somebody("ada", "member")).memory
        await ada.write(api.PutMemory(path="a", text="of ada"))
        others = [("ada", "viewer"), ("ada", "owner"), ("bob", "member"), ("bob", "owner"), ("local", "operator")]
        for tenant, role in others:
            other = Access(house, somebody(tenant, role)).memory  # type: ignore[arg-type]
            assert (await other.list()).files == []
            with pytest.raises(UnknownFile):
                await other.read("a")
        # The same user id in another tenant is another user.
        twin = Access(house, somebody("bob", "member", "member-ada")).memory
        assert (await twin.list()).files == []
        with pytest.raises(UnknownFile):
            await twin.delete("a")
        await twin.write(api.PutMemory(path="a", text="of the twin"))
        await Access(house, somebody("bob", "owner")).memory.erase_user("member-ada")
        assert (await twin.list()).files == []
        assert (await ada.read("a")).text == "of ada"
        await Access(house, somebody("ada", "owner")).memory.erase_user("member-ada")
        assert (await ada.list()).files == []


async def test_a_viewer_reads_and_only_an_owner_erases() -> None:
    async with a_house() as house:
        with pytest.raises(Forbidden):
            await Access(house, somebody(role="viewer")).memory.write(api.PutMemory(path="a", text="x"))
        with pytest.raises(Forbidden):
            await Access(house, somebody(role="approver")).memory.erase_user("member-ada")


async def test_a_person_decides_about_the_mark(store: Store) -> None:
    async with a_house(store) as house:
        memory = Access(house, somebody()).memory
        marks = MemoryMarks(untrusted=True)
        await store.user_memory.change("ada", "member-ada", MemoryCreate("a", "x"), at=1.0, marks=marks)
        assert (await memory.write(api.PutMemory(path="a", text="y"))).file.untrusted
        assert not (await memory.write(api.PutMemory(path="a", text="y", untrusted=False))).file.untrusted


async def test_hostile_paths_and_texts_are_refused() -> None:
    async with a_house() as house:
        memory = Access(house, somebody()).memory
        for path in HOSTILE:
            for use in (memory.read(path), memory.delete(path), memory.write(api.PutMemory(path=path, text="x"))):
                with pytest.raises(ConfigError):
                    await use
        for text in ("\0", "\x1b[2J", "x" * (MAX_MEMORY_FILE_BYTES + 1)):
            with pytest.raises(ConfigError):
                await memory.write(api.PutMemory(path="a", text=text))
        with pytest.raises(ConfigError):
            await memory.delete("/memories")
