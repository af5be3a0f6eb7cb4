"""Saved prompts and instructions, in the terminal: they are written, used, deleted, and sent with the next message."""

from __future__ import annotations

import pytest

from everturn import api
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.prompt_commands import describe_prompts, refuse_unknown_prompt, use_prompt
from everturn.terminal.tui.prompts import PromptEditor, PromptsScreen
from tests.helpers.gate_screen_app import Desk, at
from tests.helpers.scripted_server.server import Rig

live = [pytest.mark.live, pytest.mark.timeout(300)]


class Input:
    """The app, as the commands see it."""

    def __init__(self, *prompts: api.PromptView) -> None:
        self.language = "en"
        self.prompts = list(prompts)
        self.text = ""
        self.told: list[str] = []

    def write_input(self, text: str) -> None:
        self.text = text

    def show_message(self, text: str, severity: str = "information") -> None:
        self.told.append(text)


REVIEW = api.PromptView(
    name="review",
    text="Review {{branch}} against {{base}}.",
    description="Review a branch",
    arguments=[api.PromptArgumentView(name="branch"), api.PromptArgumentView(name="base", default="main")],
    scope="user",
)


def test_a_prompt_is_expanded_into_the_input_and_not_sent() -> None:
    host = Input(REVIEW)
    assert describe_prompts(host) == {"/review": "BRANCH BASE  Review a branch"}  # type: ignore[arg-type]
    assert use_prompt(host, "review", "fix")  # type: ignore[arg-type]
    assert host.text == "Review fix against main."
    assert host.told == ["Read it, then press Enter to send it."]


def test_what_is_missing_is_said_and_the_command_stays_in_the_input() -> None:
    host = Input(REVIEW)
    assert use_prompt(host, "review", "")  # type: ignore[arg-type]
    assert host.text == "/prompt review "
    assert host.told == ["prompt 'review' needs branch; write /review branch=…"]
    assert not use_prompt(host, "revue", "")  # type: ignore[arg-type]
    refuse_unknown_prompt(host, "revue")  # type: ignore[arg-type]
    assert host.told[-1] == "There is no prompt revue. There are: review"


async def shown(desk: Desk, start: str = "", left: list[str | None] | None = None) -> PromptsScreen:
    screen = PromptsScreen(start)
    desk.app.push_screen(screen, left.append if left is not None else None)
    await desk.until(lambda: screen.is_mounted and screen.prompts is not None)
    return screen


class TestScreen:
    pytestmark = live

    async def test_prompts_are_written_used_and_deleted(self, rig: Rig) -> None:
        async with at(rig, (100, 34), user="member") as desk:
            left: list[str | None] = []
            screen = await shown(desk, left=left)
            assert screen.query_one(RowTable).names == ["layer:user", "layer:agent"]
            await desk.press("n")
            await desk.until(lambda: isinstance(desk.app.screen, PromptEditor) and desk.app.screen.is_mounted)
            await desk.type("greet\nGreets somebody\nGreet {{who}}.")
            await desk.press("ctrl+s")
            await desk.until(lambda: "greet was saved" in desk.app.told)
            await desk.until(lambda: "Greet {{who}}." in desk.text and "Arguments: who" in desk.text)
            assert [key for key, _ in screen.query_one(KeyBar).keys] == ["enter", "e", "d", "n", "escape"]
            await desk.press("d")
            await desk.until(lambda: "Delete greet?" in desk.text)
            await desk.press("escape", "enter")
            await desk.until(lambda: left == ["greet"])
            screen = await shown(desk)
            await desk.press("d", "y")
            await desk.until(lambda: "greet was deleted" in desk.app.told)
            await desk.until(lambda: screen.query_one(RowTable).names == ["layer:user", "layer:agent"])

    async def test_instructions_are_written_and_removed(self, rig: Rig) -> None:
        async with at(rig, (100, 34), user="owner", language="zh") as desk:
            screen = await shown(desk, "layer:user")
            assert screen.query_one(RowTable).names == ["layer:shared", "layer:user", "layer:agent"]
            await desk.until(lambda: screen.chosen == "layer:user" and "为空" in desk.text)
            for text in ("Call me Ada.", ""):
                await desk.press("e")
                await desk.until(lambda: isinstance(desk.app.screen, PromptEditor) and desk.app.screen.is_mounted)
                desk.app.screen.query_one(TextView).load_text(text)
                await desk.press("ctrl+s")
                await desk.until(lambda: desk.app.screen is screen)
                await desk.until(lambda text=text: ("Call me Ada." in desk.text) == bool(text))
                layers = {layer.layer: layer.text for layer in (await desk.app.server.instructions()).layers}
                assert layers.get("user", "") == text
