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


def calls(user: Person, name: str) -> list[ToolPart]:
    parts = [part for message in user.branch() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolPart) and part.name == name]


async def test_reasoning_then_text(rig: Rig) -> None:
    async with person(rig) as user:
        await user.say("reason pace 20")
        await user.sees("Both weigh the same.")
        await user.idle()
        assert rig.stored_text(user.session) == "Both weigh the **same**."


async def test_two_calls_at_once_and_what_came_of_them(rig: Rig) -> None:
    async with person(rig) as user:
        await user.say("parallel")
        await user.sees("It came to this: Lisbon: 18 °C, light rain / Oslo: 18 °C, light rain")
        await user.idle()
        assert [part.state for part in calls(user, "weather")] == ["completed", "completed"]
        assert user.text.count("weather") == 2
        await user.reads("$")  # what it cost


async def test_a_call_is_allowed_with_other_arguments(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("mail")
        screen = await user.gate("send_mail")
        assert "ann@example.org" in user.screen
        await user.press("e")
        await user.until(lambda: screen.panel is not None, "the arguments")
        field = next(field for field in screen.query(Input) if field.value == "ann@example.org")
        field.value = "bob@example.org"
        await user.press("ctrl+s")
        await user.reads("with your changes")
        await user.gate("send_mail")
        await user.press("y")
        await user.closed()
        await user.idle()
        await user.sees("sent to bob@example.org")
        assert rig.deeds("mail")[-1]["to"] == "bob@example.org"
        assert "sent to bob@example.org" in rig.stored_text(session)


async def test_a_call_is_denied_and_the_model_reads_why(rig: Rig) -> None:
    before = len(rig.deeds("mail"))
    async with person(rig) as user:
        await user.say("mail")
        screen = await user.gate("send_mail")
        await user.press("n")
        await user.until(lambda: screen.panel is not None and screen.focused is not None, "why")
        await user.type("not before noon, please")
        await user.press("enter")
        await user.closed()
        await user.idle()
        assert [part.state for part in calls(user, "send_mail")] == ["denied"]
    assert len(rig.deeds("mail")) == before
    tool_messages = [
        row for body in rig.model.bodies("not before noon") for row in body["messages"] if row["role"] == "tool"
    ]
    assert "not before noon, please" in json.dumps(tool_messages)


async def test_a_result_is_reviewed_and_redacted(rig: Rig) -> None:
    async with person(rig) as user:
        await user.say("review")
        screen = await user.gate("lookup")
        assert SECRET in user.screen
        await user.press("e")
        await user.until(lambda: screen.panel is not None and screen.panel.query(TextArea), "the result")
        assert screen.panel is not None
        area = screen.panel.query_one(TextArea)
        area.load_text(area.text.replace(SECRET, "•••"))
        await user.press("ctrl+s")
        await user.until(lambda: screen.panel is None, "the end of the edit")
        await user.gate("lookup")
        await user.press("y")
        await user.closed()
        await user.idle()
    request_text = json.dumps(rig.model.seen[-1].body, ensure_ascii=False)
    assert "account: ann" in request_text
    assert SECRET not in request_text


async def test_the_whole_story_in_chinese(rig: Rig) -> None:
    async with person(rig, language="zh") as user:
        await user.reads("回车发送")
        session = await user.say("story pace 2")
        for tool in ("send_mail", "lookup", "write_file"):
            await user.allow(tool)
        await user.sees("All four are done")
        await user.idle()
        assert (rig.files / "notes.txt").read_text() == "rain in both\n"
        assert "All four are done" in rig.stored_text(session)
        (rig.files / "notes.txt").unlink()


async def test_a_question_does_not_open_while_somebody_types(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async with person(rig) as user:
        monkeypatch.setattr(chat, "IDLE_BEFORE_GATE", 600.0)  # or it might be there before the first letter
        await user.say("mail")
        await user.type("wait")
        monkeypatch.setattr(chat, "IDLE_BEFORE_GATE", 0.0)
        await user.reads("send_mail needs approval")
        await user.pilot.pause(3 * chat.TICK)
        assert user.app.screen is user.app.chat_screen
        assert user.app.chat_screen.composer.text == "wait"
        await user.press("ctrl+g")
        await user.gate("send_mail")
        monkeypatch.setattr(chat, "ESCAPE_GRACE", 600.0)
        await user.press("escape")
        await user.closed()
        await user.press("escape")  # one too many does not stop the turn
        await user.reads("Esc Stop")
        assert not user.app.chat_screen._last_escape
        assert rig.gates(user.session)  # Esc answers nothing


async def test_esc_on_one_of_many_gates_leads_back_and_an_answer_leads_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "IDLE_BEFORE_GATE", 0.0)
    async with person(rig) as user:
        await user.say("mails")
        await user.until(lambda: len(user.app.gates_of_session()) == 3, "all three gates")
        first = (await user.gate("send_mail")).summary.gate.id
        await user.press("escape")
        await user.closed()
        await user.pilot.pause(3 * chat.TICK)
        assert user.app.screen is user.app.chat_screen, "no other gate opened"
        await user.press("ctrl+g")
        assert (await user.gate("send_mail")).summary.gate.id == first
        await user.press("y")
        await user.until(lambda: len(user.app.gates_of_session()) == 2, "the answer")
        assert (await user.gate("send_mail")).summary.gate.id != first, "who answers one goes on with the next"


async def test_the_key_stops_a_turn_and_what_was_said_stays(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("plain 2000 pace 10")
        await user.sees("word5")
        await user.press("escape")
        await user.idle()
        stored = rig.stored_text(session)
        assert stored.startswith("word0")
        assert "word1999" not in stored


async def test_a_result_that_comes_late_is_put_beside_its_call(rig: Rig) -> None:
    async with person(rig) as user:
        await user.say("slow 4")
        await user.until(lambda: any(part.state == "running" for part in calls(user, "slow")), "the call")
        await user.press("escape")
        await user.until(lambda: [part.state for part in calls(user, "slow")] == ["cancelled"], "the end")
        await user.sees("finished after 4 seconds")
        await user.say("hello")
        await user.sees("You said: hello")
        assert any(rig.model.bodies("late_tool_result"))


async def test_a_message_joins_the_turn_that_runs(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("slow 3")
        await user.until(lambda: any(part.state == "running" for part in calls(user, "slow")), "the call")
        user.app.chat_screen.composer.write("hello from the side")
        await user.press("ctrl+s")
        await user.sees("You said: hello from the side")
        await user.idle()
    assert len({row["turn"] for row in rig.messages(session)}) == 1


async def test_a_message_waits_its_turn_and_is_taken_back(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("plain 4000 pace 10")
        await user.sees("word5")
        for text in ("first in the queue", "second in the queue"):
            user.app.chat_screen.composer.write(text)
            await user.press("enter")
        await user.reads("second in the queue")
        await user.press("ctrl+t")
        await user.until(lambda: user.app.chat_screen.composer.text == "second in the queue", "the text")
        await user.press("escape")
        await user.sees("You said: first in the queue")
        await user.idle()
    user_texts = [part["text"] for row in rig.messages(session) for part in row["parts"] if row["role"] == "user"]
    assert user_texts == ["plain 4000 pace 10", "first in the queue"]
