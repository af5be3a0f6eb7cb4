"""The command /memory of the line-mode chat."""

from __future__ import annotations

import pytest

from everturn.core.memory.user_memory import MemoryCreate, MemoryMarks
from everturn.errors import ConfigError, HashMismatch, ToolError
from everturn.stores.user_memory import DictUserMemory
from everturn.terminal.lines.memory import run_memory_command
from everturn.testing.contracts.user_memory import text_at


async def run(memory: DictUserMemory, rest: str) -> list[str]:
    lines: list[str] = []
    await run_memory_command(memory, rest, lines.append, 1.0)
    return lines


async def test_files_are_listed_shown_edited_and_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = DictUserMemory()
    assert await run(memory, "") == ["memory is empty"]
    marks = MemoryMarks(untrusted=True)
    await memory.change("local", "", MemoryCreate("a b.md", "one\n\u202etwo"), at=0.0, marks=marks)
    assert await run(memory, "") == ["/memories/a b.md (10 bytes, untrusted)"]
    assert await run(memory, "show a b.md") == ["one", r"\u202etwo"]
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/one/1/")
    assert await run(memory, "edit a b.md") == ["/memories/a b.md was saved"]
    assert await text_at(memory, "a b.md", "local", "") == "1\n\u202etwo"
    monkeypatch.setenv("EDITOR", "sh -c 'echo new >$0'")
    await run(memory, "edit new.md")
    assert await text_at(memory, "new.md", "local", "") == "new\n"
    assert await run(memory, "delete a b.md") == ["/memories/a b.md was deleted"]
    with pytest.raises(ToolError):
        await run(memory, "show a b.md")
    with pytest.raises(ToolError):
        await run(memory, "show ../a")
    for rest in ("show", "burn a"):
        with pytest.raises(ConfigError):
            await run(memory, rest)
    monkeypatch.delenv("EDITOR")
    with pytest.raises(ConfigError, match="EDITOR"):
        await run(memory, "edit new.md")


async def test_an_edit_does_not_overwrite_what_changed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = DictUserMemory()
    read = memory.file

    async def stale(tenant: str, user: str, path: str) -> object:
        file = await read(tenant, user, path)
        if file is None:
            await memory.change("local", "", MemoryCreate("a", "theirs"), at=0.0)
        return file

    monkeypatch.setattr(memory, "file", stale)
    monkeypatch.setenv("VISUAL", "true")
    with pytest.raises(HashMismatch):
        await run(memory, "edit a")
