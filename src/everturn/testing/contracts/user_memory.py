"""User memory contract: files by user and tenant, changes that are made once, marks, limits and erasure."""

from __future__ import annotations

import asyncio

import pytest

from everturn.core.memory.user_memory import (
    MAX_MEMORY_BYTES,
    MAX_MEMORY_FILE_BYTES,
    MAX_MEMORY_FILES,
    NO_FILE,
    MemoryCreate,
    MemoryDelete,
    MemoryInsert,
    MemoryMarks,
    MemoryOrigin,
    MemoryPut,
    MemoryRename,
    MemoryReplace,
    UserMemory,
    memory_hash,
)
from everturn.errors import EverturnError, HashMismatch, ToolError
from everturn.testing.contracts.samples import NOON

HOSTILE_OWNERS = ("'; DROP TABLE memory_files; --", 'a"b', "a\\b", "\\' OR 1=1", "ünïcödé 你好 👋", "%_", " ", "")
CALL = MemoryOrigin("session", "call_1")
UNTRUSTED, SENSITIVE = MemoryMarks(untrusted=True), MemoryMarks(sensitive=True)


async def text_at(memory: UserMemory, path: str, tenant: str = "acme", user: str = "ada") -> str | None:
    """The text of a file; None if there is none."""
    file = await memory.file(tenant, user, path)
    return None if file is None else file.text


class UserMemoryContract:
    """The port `UserMemory`. An adapter that several nodes share returns two of them in `make_two`."""

    async def make(self) -> UserMemory:
        """An empty memory."""
        raise NotImplementedError

    async def make_two(self) -> tuple[UserMemory, UserMemory]:
        """The same empty memory on two nodes."""
        memory = await self.make()
        return memory, memory

    async def test_files_are_created_changed_renamed_and_deleted(self) -> None:
        memory = await self.make()
        assert await memory.files("acme", "ada") == []
        assert await memory.file("acme", "ada", "a.md") is None
        made = await memory.change("acme", "ada", MemoryCreate("a.md", "one\ntwo\n"), at=NOON)
        assert (made.before, made.hash) == (NO_FILE, memory_hash("one\ntwo\n"))
        await memory.change("acme", "ada", MemoryReplace("a.md", "two", "2"), at=NOON + 1)
        await memory.change("acme", "ada", MemoryInsert("a.md", 1, "and"), at=NOON + 2)
        assert await text_at(memory, "a.md") == "one\nand\n2\n"
        (info,) = await memory.files("acme", "ada")
        assert (info.path, info.size, info.updated) == ("a.md", 10, NOON + 2)
        await memory.change("acme", "ada", MemoryRename("a.md", "b/c.md"), at=NOON + 3)
        assert await text_at(memory, "a.md") is None
        assert await text_at(memory, "b/c.md") == "one\nand\n2\n"
        await memory.change("acme", "ada", MemoryDelete("b/c.md"), at=NOON + 4)
        assert await memory.files("acme", "ada") == []

    async def test_a_directory_is_renamed_and_deleted_with_its_files(self) -> None:
        memory = await self.make()
        for path in ("a/1", "a/b/2", "ab", "c"):
            await memory.change("acme", "ada", MemoryCreate(path, path), at=NOON)
        assert (await memory.change("acme", "ada", MemoryRename("a", "z"), at=NOON)).count == 2
        assert [info.path for info in await memory.files("acme", "ada")] == ["ab", "c", "z/1", "z/b/2"]
        assert await text_at(memory, "z/b/2") == "a/b/2"
        assert (await memory.change("acme", "ada", MemoryDelete("z"), at=NOON)).count == 2
        assert [info.path for info in await memory.files("acme", "ada")] == ["ab", "c"]

    async def test_a_user_has_files_of_its_own(self) -> None:
        memory = await self.make()
        owners = [
            ("acme", "ada"),
            ("acme", "bob"),
            ("evil", "ada"),
            ("", "acme"),
            *(("acme", o) for o in HOSTILE_OWNERS),
        ]
        for at, (tenant, user) in enumerate(owners):
            await memory.change(tenant, user, MemoryCreate("a", f"{at}"), at=NOON)
        for at, (tenant, user) in enumerate(owners):
            assert await text_at(memory, "a", tenant, user) == f"{at}"
            assert len(await memory.files(tenant, user)) == 1
        await memory.change("acme", "ada", MemoryDelete("a"), at=NOON)
        await memory.change("acme", "bob", MemoryRename("a", "b"), at=NOON)
        assert await text_at(memory, "a", "evil", "ada") == "2"
        assert await memory.erase("evil", "ada") == 1
        assert await memory.files("evil", "ada") == []
        assert await text_at(memory, "b", "acme", "bob") == "1"

    async def test_a_call_that_is_run_again_changes_nothing(self) -> None:
        memory, other = await self.make_two()
        await memory.change("acme", "ada", MemoryCreate("a", "one\n"), at=NOON)
        insert = MemoryInsert("a", 1, "more")
        first = await memory.change("acme", "ada", insert, at=NOON, base=memory_hash("one\n"), origin=CALL)
        again = await other.change("acme", "ada", insert, at=NOON + 9, base=memory_hash("one\n"), origin=CALL)
        assert again == first
        # Also if somebody else has changed the file in between.
        await memory.change("acme", "ada", MemoryReplace("a", "one", "1"), at=NOON)
        assert await memory.change("acme", "ada", insert, at=NOON, origin=CALL) == first
        assert await text_at(other, "a") == "1\nmore"
        await memory.change("acme", "ada", insert, at=NOON, origin=MemoryOrigin("session", "call_2"))
        await memory.change("acme", "ada", insert, at=NOON, origin=MemoryOrigin("another", "call_1"))
        assert await text_at(other, "a") == "1\nmore\nmore\nmore"

    async def test_a_change_for_another_text_is_refused(self) -> None:
        memory = await self.make()
        with pytest.raises(HashMismatch):
            await memory.change("acme", "ada", MemoryPut("a", "new"), at=NOON, base=memory_hash("old"))
        await memory.change("acme", "ada", MemoryPut("a", "one"), at=NOON, base=NO_FILE)
        for change in (MemoryPut("a", "x"), MemoryDelete("a"), MemoryRename("a", "b")):
            for base in (NO_FILE, memory_hash("two")):
                with pytest.raises(HashMismatch):
                    await memory.change("acme", "ada", change, at=NOON, base=base)
        await memory.change("acme", "ada", MemoryPut("a", "two"), at=NOON, base=memory_hash("one"))
        assert await text_at(memory, "a") == "two"

    async def test_of_two_nodes_that_change_one_text_one_is_refused(self) -> None:
        nodes = await self.make_two()
        await nodes[0].change("acme", "ada", MemoryPut("a", "base"), at=NOON)
        for number in range(5):
            base = memory_hash(await text_at(nodes[0], "a"))
            done = await asyncio.gather(
                *(
                    node.change("acme", "ada", MemoryPut("a", f"{number} {at}"), at=NOON, base=base)
                    for at, node in enumerate(nodes)
                ),
                return_exceptions=True,
            )
            assert sorted(isinstance(result, HashMismatch) for result in done) == [False, True]

    async def test_concurrent_inserts_are_all_made(self) -> None:
        nodes = await self.make_two()
        await nodes[0].change("acme", "ada", MemoryPut("a", ""), at=NOON)
        await asyncio.gather(
            *(nodes[n % 2].change("acme", "ada", MemoryInsert("a", 0, f"line {n}\n"), at=NOON) for n in range(12))
        )
        text = await text_at(nodes[1], "a")
        assert text is not None
        assert sorted(text.split()) == sorted(" ".join(f"line {n}" for n in range(12)).split())

    async def test_marks_stay_with_a_file(self) -> None:
        memory = await self.make()

        async def marks(path: str) -> MemoryMarks:
            file = await memory.file("acme", "ada", path)
            assert file is not None
            listed = {info.path: info for info in await memory.files("acme", "ada")}
            assert listed[path] == file.info
            return file.info.marks

        await memory.change("acme", "ada", MemoryCreate("a", "one"), at=NOON, marks=UNTRUSTED)
        assert await marks("a") == UNTRUSTED
        await memory.change("acme", "ada", MemoryReplace("a", "one", "two"), at=NOON, marks=SENSITIVE)
        assert await marks("a") == UNTRUSTED | SENSITIVE
        await memory.change("acme", "ada", MemoryRename("a", "b"), at=NOON)
        assert await marks("b") == UNTRUSTED | SENSITIVE
        await memory.change("acme", "ada", MemoryPut("b", "reviewed"), at=NOON)
        assert await marks("b") == UNTRUSTED | SENSITIVE
        await memory.change("acme", "ada", MemoryPut("b", "reviewed", untrusted=False), at=NOON)
        assert await marks("b") == SENSITIVE
        await memory.change("acme", "ada", MemoryRename("b", "c"), at=NOON, marks=UNTRUSTED)
        assert await marks("c") == UNTRUSTED | SENSITIVE
        await memory.change("acme", "ada", MemoryCreate("d", "plain"), at=NOON)
        assert await marks("d") == MemoryMarks()

    async def test_limits_hold_and_a_refused_change_leaves_everything(self) -> None:
        memory = await self.make()
        big = "x" * MAX_MEMORY_FILE_BYTES
        for number in range(MAX_MEMORY_BYTES // MAX_MEMORY_FILE_BYTES):
            await memory.change("acme", "ada", MemoryCreate(f"{number}", big), at=NOON)
        before = await memory.files("acme", "ada")
        changes = (MemoryCreate("more", "x"), MemoryInsert("0", 0, "x"), MemoryReplace("missing", "a", "b"))
        for change in (*changes, MemoryDelete("missing"), MemoryRename("0", "1"), MemoryCreate("0", "x")):
            with pytest.raises(ToolError):
                await memory.change("acme", "ada", change, at=NOON, origin=CALL)
        assert await memory.files("acme", "ada") == before
        await memory.change("acme", "ada", MemoryDelete("0"), at=NOON, origin=CALL)  # a refused call left no receipt
        assert len(await memory.files("acme", "ada")) == len(before) - 1
        await memory.erase("acme", "ada")
        for number in range(MAX_MEMORY_FILES):
            await memory.change("acme", "ada", MemoryCreate(f"{number}", ""), at=NOON)
        with pytest.raises(EverturnError, match="200 files"):
            await memory.change("acme", "ada", MemoryCreate("more", ""), at=NOON)

    async def test_texts_are_kept_as_they_are(self) -> None:
        memory = await self.make()
        text = "'; DROP TABLE memory_files; --\r\n\t你好 👋 \u202e é e\u0301 $1 ? %s \\ \ufeff\n\n"
        await memory.change("acme", "ada", MemoryCreate("你好/a b-é.md", text), at=NOON)
        assert await text_at(memory, "你好/a b-é.md") == text
