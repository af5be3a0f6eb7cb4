"""The to-do tool: the list is the call itself, so it survives what the log survives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everturn import Chat, TurnOptions
from everturn.core.parts import ToolPart
from everturn.core.todos import Todo, read_todos
from everturn.errors import BadArguments
from everturn.terminal.tui.render.text import line_text
from everturn.terminal.tui.render.todos import draw_todos
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import todos

LIST = [
    {"content": "Find the failing test", "status": "completed"},
    {"content": "Fix it", "status": "in_progress"},
    {"content": "Run all tests", "status": "pending"},
]


async def test_a_list_is_written_without_asking_even_in_plan_mode() -> None:
    model = ScriptedModel(calls(call("write_todos", todos=LIST)), say("On it."))
    async with Chat(model, tools=[todos()], options=TurnOptions(mode="plan")) as chat:
        result = await (await chat.send("Fix the tests"))
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert part.state == "completed"
    assert part.output is not None
    assert part.output.title == "1/3 · Fix it"
    assert [todo.status for todo in read_todos(part.name, part.arguments) or ()] == [item["status"] for item in LIST]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"todos": "a"},
        {"todos": [{"content": "", "status": "pending"}]},
        {"todos": [{"content": "a", "status": "late"}]},
        {"todos": [{"content": "a", "status": "pending", "more": 1}]},
        {"todos": [LIST[0]] * 51},
    ],
)
def test_what_is_no_list_is_refused_and_not_drawn(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadArguments, match="`content` and `status`"):
        todos().validate(arguments)
    assert read_todos("write_todos", json.dumps(arguments)) is None


def test_only_write_todos_is_read() -> None:
    text = json.dumps({"todos": LIST})
    assert read_todos("notes", text) is None
    assert read_todos("write_todos", "{") is None
    assert len(read_todos("write_todos", text) or ()) == 3


def test_each_status_has_a_sign_and_long_steps_wrap() -> None:
    drawn = [line_text(line) for line in draw_todos([*(Todo(**item) for item in LIST)], 20)]  # type: ignore[arg-type]
    assert drawn == ["✓ Find the failing", "  test", "▸ Fix it", "○ Run all tests"]
    [hostile] = draw_todos([Todo("a\x1b[2Jb\nc", "pending")], 40)
    assert "\x1b" not in line_text(hostile)
    assert "\n" not in line_text(hostile)
