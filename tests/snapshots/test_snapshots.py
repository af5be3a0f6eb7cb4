"""The plugin: what a turn did to a folder is in its log, step by step, and can be taken back."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.helpers.window_model import WindowModel, last_number
from tests.snapshots.folder_trees import in_tree, on_disk

from everturn import Chat, tool
from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.core.events import CompactionStarted, FilesChanged, StepStarted, TurnStarted
from everturn.core.parts import FileChange, FilesPart
from everturn.core.ports import Tool
from everturn.core.requests import ModelRequest
from everturn.errors import CommandRefused, ConfigError, TurnError
from everturn.plugins.file_snapshots import FileSnapshots
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old").write_text("1\n", encoding="utf-8")
    return folder


def tools(folder: Path) -> list[Tool]:
    @tool(idempotent=True)
    def put(name: str, text: str) -> str:
        (folder / name).write_text(text, encoding="utf-8")
        return "done"

    @tool(read_only=True)
    def look(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    return [put, look]


async def changed(store: MemoryStore, session: str) -> list[FilesChanged]:
    return [entry.event for entry in await store.events(session) if isinstance(entry.event, FilesChanged)]


async def test_the_tree_before_a_turn_and_after_each_step_that_changed_something_is_in_the_log(
    folder: Path, tmp_path: Path
) -> None:
    store, plugin = MemoryStore(), FileSnapshots(folder, store_dir=tmp_path / "store")
    model = ScriptedModel(
        calls(call("put", name="new", text="1\n")),
        calls(call("look", name="old")),
        calls(call("put", name="old", text="2\n"), call("put", name="new", text="1\n2\n")),
        say("Done."),
        say("Nothing to do."),
    )
    async with Chat(model, tools=tools(folder), plugins=[plugin], store=store) as chat:
        result = await (await chat.send("please"))
        await (await chat.send("and now?"))
        base, first, three, next_base = await changed(store, chat.session)
    assert (base.step, base.before, base.changes) == (0, base.after, ())
    assert (first.step, first.before, first.changes) == (1, base.after, (FileChange("new", "added", 1),))
    assert (three.step, three.before) == (3, first.after)
    assert three.changes == (FileChange("new", "modified", 1), FileChange("old", "modified", 1, 1))
    assert (next_base.step, next_base.before, next_base.after) == (0, three.after, three.after)
    assert result.message is not None
    parts = [part for part in result.message.parts if isinstance(part, FilesPart)]
    assert [(part.step, part.root, part.changes) for part in parts] == [
        (1, "work", first.changes),
        (3, "work", three.changes),
    ]
    recorded = in_tree(tmp_path / "store" / "work", base.after)
    assert recorded == {b"old": ("file", b"1\n")}


async def test_before_any_call_runs_the_log_says_what_there_was(folder: Path, tmp_path: Path) -> None:
    store, seen = MemoryStore(), list[list[FilesChanged]]()

    @tool(idempotent=True)
    async def put() -> str:
        seen.append(await changed(store, chat.session))
        return "done"

    model = ScriptedModel(calls(call("put")), say("Done."))
    plugin = FileSnapshots(folder, store_dir=tmp_path / "store")
    async with Chat(model, tools=[put], plugins=[plugin], store=store) as chat:
        await (await chat.send("please"))
    assert [[event.step for event in events] for events in seen] == [[0]]


async def test_a_summary_of_the_conversation_is_no_step_of_a_turn(folder: Path, tmp_path: Path) -> None:
    """Before the first step the folder is not recorded yet, and after a step it is recorded for that step."""
    store, counter = MemoryStore(), itertools.count()

    @tool(idempotent=True)
    def put(name: str) -> str:
        (folder / name).write_text("1\n", encoding="utf-8")
        return "a long result " * 120

    def answer(request: ModelRequest) -> list[Chunk]:
        if (number := next(counter)) % 2:
            return [TextChunk("a long answer " * 120)]
        return [CallChunk(0, f'{{"name": "new{number}"}}', "put", f"c{number}")]

    plugin = FileSnapshots(folder, store_dir=tmp_path / "store")
    async with Chat(WindowModel(answer, window=3_000), tools=[put], plugins=[plugin], store=store) as chat:
        for _ in range(8):
            await (await chat.send("please"))
        events = [entry.event for entry in await store.events(chat.session)]
    step, summarised, recorded = 0, set[int](), dict[str, list[int]]()
    for event in events:
        if isinstance(event, TurnStarted):
            step = 0
        elif isinstance(event, StepStarted):
            step = event.step
        elif isinstance(event, CompactionStarted):
            summarised.add(step)
        elif isinstance(event, FilesChanged):
            recorded.setdefault(event.turn, []).append(event.step)
    assert summarised == {0, 1}  # before the first step of some turn, and between two
    assert list(recorded.values()) == [[0, 1]] * 8


async def test_a_process_that_dies_in_the_middle_of_a_step_takes_nothing_from_what_can_be_taken_back(
    folder: Path, tmp_path: Path
) -> None:
    store, began, tries = MemoryStore(), asyncio.Event(), list[str]()

    @tool(idempotent=True)
    async def put() -> str:
        (folder / f"new{len(tries)}").write_text("1\n", encoding="utf-8")
        tries.append("")
        began.set()
        if len(tries) == 1:
            await asyncio.Event().wait()
        return "done"

    def chat(session: str | None = None) -> Chat:
        model = ScriptedModel(calls(call("put")), say("Done."))
        plugin = FileSnapshots(folder, store_dir=tmp_path / "store")
        return Chat(model, tools=[put], plugins=[plugin], store=store, session=session)

    first = chat()
    turn = await first.send("please")
    await began.wait()
    await first.aclose()
    async with chat(first.session) as second:
        await second.turn(turn.id)
        base, files_changed = await changed(store, second.session)
    assert in_tree(tmp_path / "store" / "work", base.after) == {b"old": ("file", b"1\n")}
    assert (files_changed.step, files_changed.before, [change.path for change in files_changed.changes]) == (
        1,
        base.after,
        ["new0", "new1"],
    )


async def test_what_a_turn_changed_before_it_failed_is_written_down(folder: Path, tmp_path: Path) -> None:
    class Failing:
        name = "failing"

        def on_before_request(self, ctx: Any) -> None:
            if ctx.step == 2:
                (folder / "late").write_text("3\n", encoding="utf-8")
                raise RuntimeError("no")

    store, plugin = MemoryStore(), FileSnapshots({"a": folder}, store_dir=tmp_path / "store")
    model = ScriptedModel(calls(call("put", name="new", text="1\n")), say("Done."))
    async with Chat(model, tools=tools(folder), plugins=[plugin, Failing()], store=store) as chat:
        with pytest.raises(TurnError):
            await (await chat.send("please"))
        events = await changed(store, chat.session)
    assert [(event.root, event.step, [change.path for change in event.changes]) for event in events] == [
        ("a", 0, []),
        ("a", 1, ["new"]),
        ("a", 2, ["late"]),
    ]


async def test_a_turn_is_taken_back_and_the_taking_back_too(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    store, plugin = MemoryStore(), FileSnapshots({"a": folder, "b": other}, store_dir=tmp_path / "store")
    model = ScriptedModel(calls(call("put", name="new", text="1\n")), say("Done."))
    disk = on_disk(folder)
    async with Chat(model, tools=tools(folder), plugins=[plugin], store=store) as chat:
        result = await (await chat.send("please"))
        assert result.message is not None
        [files] = [part for part in result.message.parts if isinstance(part, FilesPart)]
        changed_disk = on_disk(folder)
        undone = await chat.revert(files)
        assert on_disk(folder) == disk
        assert (undone.root, undone.before, undone.after) == ("a", files.after, files.before)
        await chat.unrevert(undone)
        assert on_disk(folder) == changed_disk


async def test_a_folder_that_nobody_keeps_is_not_reverted_and_what_would_be_lost_is_reported(
    folder: Path, tmp_path: Path
) -> None:
    store, plugin = MemoryStore(), FileSnapshots(folder, store_dir=tmp_path / "store")
    model = ScriptedModel(calls(call("put", name="old", text="2\n")), say("Done."))
    async with Chat(model, tools=tools(folder), plugins=[plugin], store=store) as chat:
        result = await (await chat.send("please"))
        assert result.message is not None
        [files] = [part for part in result.message.parts if isinstance(part, FilesPart)]
        (folder / "old").unlink()
        os.mkfifo(folder / "old")
        with pytest.raises(CommandRefused, match="move it away"):
            await chat.revert(files)
        with pytest.raises(CommandRefused, match="recorded here"):
            await chat.revert(msgspec.structs.replace(files, root="strange"))
    assert (folder / "old").is_fifo()


async def test_a_turn_hides_nothing_by_a_rule_it_writes_and_takes_nothing_along_by_one_it_removes(
    folder: Path, tmp_path: Path
) -> None:
    (folder / ".gitignore").write_text("secret\n", encoding="utf-8")
    (folder / "secret").write_text("precious", encoding="utf-8")
    store, plugin = MemoryStore(), FileSnapshots(folder, store_dir=tmp_path / "store")
    model = ScriptedModel(
        calls(call("put", name=".gitignore", text="*\n")),
        calls(call("put", name="evil", text="1\n")),
        calls(call("put", name=".gitignore", text="\n")),
        calls(call("put", name="old", text="x" * 3 * 2**20)),
        say("Done."),
    )
    disk = on_disk(folder)
    async with Chat(model, tools=tools(folder), plugins=[plugin], store=store) as chat:
        result = await (await chat.send("please"))
        assert result.message is not None
        parts = [part for part in result.message.parts if isinstance(part, FilesPart)]
        changes = [(part.step, change.path, change.kind) for part in parts for change in part.changes]
        assert changes == [
            (1, ".gitignore", "modified"),
            (2, "evil", "added"),
            (3, ".gitignore", "modified"),
            (4, "old", "modified"),
        ]
        changed_disk = on_disk(folder)
        undone = await chat.revert(parts[0])
        assert on_disk(folder) == disk
        await chat.unrevert(undone)
        assert on_disk(folder) == changed_disk


async def test_snapshots_of_one_folder_are_not_taken_for_those_of_another(folder: Path, tmp_path: Path) -> None:
    await FileSnapshots(folder, store_dir=tmp_path / "store").folders["work"].record()
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match="choose another store_dir"):
        FileSnapshots(tmp_path / "other", store_dir=tmp_path / "store")


@pytest.mark.parametrize("root", ["", "../up", "a/b", ".hidden"])
def test_a_folder_has_a_name_that_is_one(folder: Path, tmp_path: Path, root: str) -> None:
    with pytest.raises(ConfigError, match="letters"):
        FileSnapshots({root: folder}, store_dir=tmp_path / "store")


async def test_a_compaction_records_nothing_and_changes_stay_with_their_step(folder: Path, tmp_path: Path) -> None:
    store, plugin = MemoryStore(), FileSnapshots(folder, store_dir=tmp_path / "store")

    def answer(request: ModelRequest) -> list[Chunk]:
        number = last_number(request)
        if number >= 6 or not request.tools:
            return [TextChunk("done")]
        text = TextChunk("words " * 200)  # results could be cleared
        return [text, CallChunk(0, f'{{"number": {number + 1}}}', "write", f"id{number}")]

    @tool(idempotent=True)
    def write(number: int) -> str:
        """Write a file."""
        (folder / f"file{number}").write_text("text", encoding="utf-8")
        return f"result {number}"

    model = WindowModel(answer, window=2_500)
    async with Chat(model, tools=[write], plugins=[plugin], store=store) as chat:
        result = await (await chat.send("count to 6"))
        assert result.status == "completed"
        assert model.summaries
        await (await chat.compact()).result()  # a turn that has no step at all
    found = [(event.step, [change.path for change in event.changes]) for event in await changed(store, chat.session)]
    assert found == [(0, []), *((step, [f"file{step}"]) for step in range(1, 7))]
