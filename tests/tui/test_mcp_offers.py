"""Prompts and resources of MCP servers, in front of the real screen: commands, mentions, and what the model reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn import api
from everturn.core.parts import ContextPart
from everturn.terminal.tui.mcp_offers import McpOfferList, parse_values
from tests.helpers.folder_model import FolderModel
from tests.helpers.offering_mcp_server import offering_server
from tests.tui.test_folder import everturn, home, model, project

__all__ = ["home", "model", "project"]  # fixtures


def prompt(*names: str) -> api.McpPromptView:
    arguments = [api.McpPromptArgument(name=name, description="", required=True) for name in names]
    return api.McpPromptView(server="notes", name="review", description="", arguments=arguments)


@pytest.mark.parametrize(
    ("names", "words", "values"),
    [
        (("path",), "", {}),
        (("path",), "a.py", {"path": "a.py"}),
        (("path",), "a long path", {"path": "a long path"}),
        (("path", "focus"), "a.py bugs and style", {"path": "a.py", "focus": "bugs and style"}),
        (("path", "focus"), "focus=bugs 'a b.py'", {"focus": "bugs", "path": "a b.py"}),
        (("path", "focus"), "path=x=y", {"path": "x=y"}),
        (("path",), "it's", {"path": "it's"}),
        ((), "more", {"": "more"}),  # the server refuses it, and says so
    ],
)
def test_the_words_of_a_command_are_the_values_of_its_arguments(
    names: tuple[str, ...], words: str, values: dict[str, str]
) -> None:
    assert parse_values(prompt(*names), words) == values


def contexts(model: FolderModel) -> list[dict[str, Any]]:
    """The contexts that were attached to the last message that the model read."""
    last = [message for message in model.requests[-1]["messages"] if message["role"] == "user"][-1]
    content = last["content"]
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    lines = [line for text in texts for line in text.splitlines() if "attached_context" in line]
    return [json.loads(line[line.index("{") : line.rindex("}") + 1])["attached_context"] for line in lines]


@pytest.mark.timeout(180)
async def test_a_prompt_is_a_command_and_a_resource_is_attached(model: FolderModel, home: Path, project: Path) -> None:
    model.says("Reviewed.", "Milk.")
    async with offering_server() as url:
        model.config(home, f'[mcp.notes]\nurl = "{url}"\n')
        async with everturn() as person:
            offers: McpOfferList = person.app.mcp_offers

            async def is_listed() -> bool:
                await offers.refresh()
                return bool(offers.offers.prompts)

            for _ in range(200):
                if await is_listed():
                    break
                await person.pilot.pause(0.1)
            commands = person.app.commands
            assert commands.completion.slash_commands()["/notes:review"] == "PATH [FOCUS]  Review code with care"
            assert "notes:notes://today" in commands.completion.files("notes:")
            assert "price.py" in commands.completion.files("price")
            await person.says("/notes:review")  # it needs a path: the command comes back
            await person.until(lambda: person.app.chat_screen.composer.text == "/notes:review ")
            person.app.chat_screen.composer.write("")
            await person.says("/notes:review price.py")
            await person.sees("Reviewed.")
            assert [(context["title"], context["text"]) for context in contexts(model)] == [
                ("notes:review", "Review price.py for bugs.")
            ]
            await person.says("what is in @notes:notes://today and @nobody:x://y")
            await person.sees("Milk.")
            assert [(context["source"], context["text"]) for context in contexts(model)] == [
                ("notes://today", "Buy milk.")
            ]
            assert person.app.follower is not None
            parts = [part for message in person.app.follower.state.branch() for part in message.parts]
            assert [part.untrusted for part in parts if isinstance(part, ContextPart)] == [True, True]
            await person.says("and @notes:notes://nowhere")  # nothing is sent; the text comes back
            await person.until(lambda: "nowhere" in person.app.chat_screen.composer.text)
    assert len(model.requests) == 2
