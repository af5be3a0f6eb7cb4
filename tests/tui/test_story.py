"""What a person sees and decides in a conversation, in a terminal: the story of the web page, at the real server."""

from __future__ import annotations

import json

import pytest
from textual.widgets import Input, TextArea

from everturn.core.parts import ToolPart
from everturn.terminal.tui import chat
from tests.helpers.scripted_server.server import Rig
from tests.helpers.scripted_server.tools import SECRET
from tests.tui.screen_user import Person, person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


def calls(one: Person, name: str) -> list[ToolPart]:
    parts = [part for message in one.branch() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolPart) and part.name == name]


async def test_reasoning_then_text(rig: Rig) -> None:
    async with person(rig) as one:
        await one.say("reason pace 20")
        await one.sees("Both weigh the same.")
        await one.idle()
        assert rig.stored_text(one.session) == "Both weigh the **same**."


async def test_two_calls_at_once_and_what_came_of_them(rig: Rig) -> None:
    async with person(rig) as one:
        await one.say("parallel")
        await one.sees("It came to this: Lisbon: 18 °C, light rain / Oslo: 18 °C, light rain")
        await one.idle()
        assert [part.state for part in calls(one, "weather")] == ["completed", "completed"]
        assert one.text.count("weather") == 2
        await one.reads("$")  # what it cost


async def test_a_call_is_allowed_with_other_arguments(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("mail")
        screen = await one.gate("send_mail")
        assert "ann@example.org" in one.screen
        await one.press("e")
        await one.until(lambda: screen.panel is not None, "the arguments")
        field = next(field for field in screen.query(Input) if field.value == "ann@example.org")
        field.value = "bob@example.org"
        await one.press("ctrl+s")
        await one.reads("with your changes")
        await one.gate("send_mail")
        await one.press("y")
        await one.closed()
        await one.idle()
        await one.sees("sent to bob@example.org")
        assert rig.deeds("mail")[-1]["to"] == "bob@example.org"
        assert "sent to bob@example.org" in rig.stored_text(session)


async def test_a_call_is_denied_and_the_model_reads_why(rig: Rig) -> None:
    before = len(rig.deeds("mail"))
    async with person(rig) as one:
        await one.say("mail")
        screen = await one.gate("send_mail")
        await one.press("n")
        await one.until(lambda: screen.panel is not None and screen.focused is not None, "why")
        await one.type("not before noon, please")
        await one.press("enter")
        await one.closed()
        await one.idle()
        assert [part.state for part in calls(one, "send_mail")] == ["denied"]
    assert len(rig.deeds("mail")) == before
    told = [row for body in rig.model.bodies("not before noon") for row in body["messages"] if row["role"] == "tool"]
    assert "not before noon, please" in json.dumps(told)


async def test_a_result_is_reviewed_and_redacted(rig: Rig) -> None:
    async with person(rig) as one:
        await one.say("review")
        screen = await one.gate("lookup")
        assert SECRET in one.screen
        await one.press("e")
        await one.until(lambda: screen.panel is not None and screen.panel.query(TextArea), "the result")
        assert screen.panel is not None
        area = screen.panel.query_one(TextArea)
        area.load_text(area.text.replace(SECRET, "•••"))
        await one.press("ctrl+s")
        await one.until(lambda: screen.panel is None, "the end of the edit")
        await one.gate("lookup")
        await one.press("y")
        await one.closed()
        await one.idle()
    asked = json.dumps(rig.model.seen[-1].body, ensure_ascii=False)
    assert "account: ann" in asked
    assert SECRET not in asked


async def test_the_whole_story_in_chinese(rig: Rig) -> None:
    async with person(rig, language="zh") as one:
        await one.reads("回车发送")
        session = await one.say("story pace 2")
        for tool in ("send_mail", "lookup", "write_file"):
            await one.allow(tool)
        await one.sees("All four are done")
        await one.idle()
        assert (rig.files / "notes.txt").read_text() == "rain in both\n"
        assert "All four are done" in rig.stored_text(session)
        (rig.files / "notes.txt").unlink()


async def test_a_question_does_not_open_while_somebody_types(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async with person(rig) as one:
        monkeypatch.setattr(chat, "IDLE_BEFORE_GATE", 600.0)  # or it might be there before the first letter
        await one.say("mail")
        await one.type("wait")
        monkeypatch.setattr(chat, "IDLE_BEFORE_GATE", 0.0)
        await one.reads("send_mail needs approval")
        await one.pilot.pause(3 * chat.TICK)
        assert one.app.screen is one.app.chat_screen
        assert one.app.chat_screen.composer.text == "wait"
        await one.press("ctrl+g")
        await one.gate("send_mail")
        monkeypatch.setattr(chat, "ESCAPE_GRACE", 600.0)
        await one.press("escape")
        await one.closed()
        await one.press("escape")  # one too many does not stop the turn
        await one.reads("Esc Stop")
        assert not one.app.chat_screen._last_escape
        assert rig.gates(one.session)  # Esc answers nothing


async def test_the_key_stops_a_turn_and_what_was_said_stays(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("plain 2000 pace 10")
        await one.sees("word5")
        await one.press("escape")
        await one.idle()
        stored = rig.stored_text(session)
        assert stored.startswith("word0")
        assert "word1999" not in stored


async def test_a_result_that_comes_late_is_put_beside_its_call(rig: Rig) -> None:
    async with person(rig) as one:
        await one.say("slow 4")
        await one.until(lambda: any(part.state == "running" for part in calls(one, "slow")), "the call")
        await one.press("escape")
        await one.until(lambda: [part.state for part in calls(one, "slow")] == ["cancelled"], "the end")
        await one.sees("finished after 4 seconds")
        await one.say("hello")
        await one.sees("You said: hello")
        assert any(rig.model.bodies("late_tool_result"))


async def test_a_message_joins_the_turn_that_runs(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("slow 3")
        await one.until(lambda: any(part.state == "running" for part in calls(one, "slow")), "the call")
        one.app.chat_screen.composer.write("hello from the side")
        await one.press("ctrl+s")
        await one.sees("You said: hello from the side")
        await one.idle()
    assert len({row["turn"] for row in rig.messages(session)}) == 1


async def test_a_message_waits_its_turn_and_is_taken_back(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("plain 4000 pace 10")
        await one.sees("word5")
        for text in ("first in the queue", "second in the queue"):
            one.app.chat_screen.composer.write(text)
            await one.press("enter")
        await one.reads("second in the queue")
        await one.press("ctrl+t")
        await one.until(lambda: one.app.chat_screen.composer.text == "second in the queue", "the text")
        await one.press("escape")
        await one.sees("You said: first in the queue")
        await one.idle()
    said = [part["text"] for row in rig.messages(session) for part in row["parts"] if row["role"] == "user"]
    assert said == ["plain 4000 pace 10", "first in the queue"]
