"""File tools in a conversation: rules speak of paths, a person is shown the diff, a session keeps its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everturn import Chat, Gate, Turn, TurnOptions
from everturn.core.parts import FilesPart, ToolPart
from everturn.core.rules.policy import Rule
from everturn.events import GateOpened
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.files import files, virtual_files


async def gate_of(turn: Turn) -> Gate:
    async for event in turn:
        if isinstance(event, GateOpened):
            return event.gate
    raise AssertionError("nobody was asked")


def outputs(parts: tuple[Any, ...]) -> list[str]:
    return [part.output.text for part in parts if isinstance(part, ToolPart) and part.output is not None]


async def output_texts(turn: Turn) -> list[str]:
    result = await turn
    assert result.message is not None
    return outputs(result.message.parts)


async def test_a_person_is_shown_the_diff_and_what_changed_since_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    edit = call("edit_file", path="a.txt", old_text="one", new_text="two")
    for meanwhile, expected in (("", "was changed: 1 line added, 1 removed"), ("one more\n", "has changed since")):
        async with Chat(ScriptedModel(calls(edit), say("Done.")), tools=[files(tmp_path).enabled()]) as chat:
            turn = await chat.send("please")
            gate = await gate_of(turn)
            assert gate.preview == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two"
            if meanwhile:
                (tmp_path / "a.txt").write_text(meanwhile, encoding="utf-8")
            await turn.answer(gate, allow="once")
            [text] = await output_texts(turn)
            assert expected in text
        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == (meanwhile or "two\n")
        (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")


async def test_an_edit_that_cannot_be_made_is_not_asked_about(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    edits = [
        call("edit_file", path="a.txt", old_text="three", new_text="two"),
        call("edit_file", path=".git/hooks/x", old_text="a", new_text="b"),
    ]
    async with Chat(ScriptedModel(calls(*edits), say("Done.")), tools=[files(tmp_path).enabled()]) as chat:
        first, second = await output_texts(await chat.send("please"))
    assert "old_text does not stand in the file" in first
    assert "is protected (**/.git)" in second


async def test_rules_hold_for_paths_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    for name in ("private/a.txt", "b.txt"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    paths = ["private/a.txt", "./private//a.txt", "PRIVATE/a.txt", "private/../private/a.txt", "b.txt"]
    model = ScriptedModel(calls(*(call("read_file", path=path) for path in paths)), say("Done."))
    rules = [Rule("read_file", "deny", {"path": "private/**"})]
    async with Chat(model, tools=[files(tmp_path).enabled()], rules=rules) as chat:
        texts = await output_texts(await chat.send("please"))
    assert [text.endswith("text") for text in texts] == [False, False, False, False, True]


async def test_a_session_keeps_its_files_from_turn_to_turn() -> None:
    model = ScriptedModel(
        calls(call("write_file", path="notes/a.md", content="one\n")),
        say("Written."),
        calls(call("edit_file", path="notes/a.md", old_text="one", new_text="two")),
        calls(call("read_file", path="notes/a.md")),
        say("Read."),
    )
    async with Chat(model, tools=[virtual_files().enabled()], options=TurnOptions(max_steps=5)) as chat:
        first = await (await chat.send("write"))
        assert first.message is not None
        [part] = [part for part in first.message.parts if isinstance(part, FilesPart)]
        assert [(change.path, change.kind) for change in part.changes] == [("notes/a.md", "added")]
        assert (await output_texts(await chat.send("go on")))[-1] == "[lines 1-1 of 1]\ntwo"


async def test_what_a_rule_denies_is_not_found_by_a_search_that_begins_above_it(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.txt").write_text("needle in private", encoding="utf-8")
    (tmp_path / "open.txt").write_text("needle in the open", encoding="utf-8")
    model = ScriptedModel(calls(call("search_files", text="needle")), say("Found."))
    rules = [Rule("read_file", "deny", {"path": "private/**"})]
    async with Chat(model, tools=[files(tmp_path).enabled()], rules=rules) as chat:
        [text] = await output_texts(await chat.send("go"))
    assert "in the open" in text
    assert "private" not in text
    assert "1 protected ones left out" in text
