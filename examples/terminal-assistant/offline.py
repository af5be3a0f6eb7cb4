"""A folder with a menu in it, and a model that needs no network and knows one trick with that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everturn.testing import ScriptedModel, call, calls, say

MENU = "# Menu\n\n- bread 3\n- soup 6\n- tart 5\n"
ONE_TRICK = "I am offline, and know one trick: say that the soup should cost 7. --model names a model that knows more."


def lay_out(folder: Path) -> None:
    """Make the folder."""
    folder.mkdir(parents=True)
    (folder / "menu.md").write_text(MENU, encoding="utf-8")


def model() -> ScriptedModel:
    """The model: every answer of it is made by looking at the end of the request."""
    return ScriptedModel(*[_answer] * 1000, name="offline")


def _answer(request: Any) -> list[Any]:
    last = request.messages[-1]
    if last.role == "user":
        return calls(call("read_file", path="menu.md")) if "soup" in last.text.lower() else say(ONE_TRICK)
    result = last.parts[-1]
    if result.name == "read_file":
        edit = call("edit_file", path="menu.md", old_text="- soup 6", new_text="- soup 7")
        return [say("The soup is on the menu for 6. I make it 7."), calls(edit)]
    return say("As you wish." if result.is_error else "The soup costs 7 now. /revert takes it back.")
