"""What a person sees and decides in a conversation, from the first word to the last: against the real server."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.scripted_server.tools import SECRET
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit
from tests.web.question_cards import CHINESE


def test_reasoning_is_open_while_it_streams_and_folds_after(screen: Screen) -> None:
    screen.say("reason pace 60")
    thoughts = screen.log.locator("details.reasoning")
    expect(thoughts).to_have_attribute("open", "")
    screen.wait_idle()
    screen.sees("Both weigh the same.")
    expect(thoughts).not_to_have_attribute("open", re.compile(".*"))
    thoughts.locator("summary").click()
    expect(thoughts).to_contain_text("Then I weigh the other.")


def test_two_calls_at_once_have_a_card_each(screen: Screen) -> None:
    screen.say("parallel")
    screen.wait_idle()
    cards = screen.cards("weather")
    expect(cards).to_have_count(2)
    for card in cards.all():
        expect(card).to_have_attribute("data-state", "completed")
    screen.sees("It came to this: Lisbon: 18 °C, light rain / Oslo: 18 °C, light rain")


def test_a_call_is_allowed_with_other_arguments(rig: Rig, screen: Screen) -> None:
    session = screen.say("mail")
    screen.question("send_mail").allow_with("to", "bob@example.org")
    screen.wait_idle()
    screen.sees("sent to bob@example.org")
    assert rig.deeds("mail")[-1]["to"] == "bob@example.org"
    assert "sent to bob@example.org" in rig.stored_text(session)
    card = screen.cards("send_mail")
    expect(card).to_contain_text("A person changed the arguments")
    card.locator("summary").first.click()
    expect(card).to_contain_text("ann@example.org")  # what the model had asked for is still seen


def test_a_call_is_denied_and_the_model_reads_why(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    screen.say("mail")
    screen.question("send_mail").deny("not before noon, please")
    screen.wait_idle()
    expect(screen.cards("send_mail")).to_have_attribute("data-state", "denied")
    assert len(rig.deeds("mail")) == before
    tool_messages = [
        message
        for body in rig.model.bodies("not before noon")
        for message in body["messages"]
        if message["role"] == "tool"
    ]
    assert "not before noon, please" in json.dumps(tool_messages)


def test_a_result_is_redacted_before_the_model_reads_it(rig: Rig, visit: Visit) -> None:
    session = rig.share(rig.say("review")["session"])
    screen = visit("approver").open(session)
    question = screen.question("lookup")
    expect(question.place).to_contain_text(SECRET)
    onlooker = visit("viewer").open(session)
    expect(onlooker.cards("lookup")).to_be_visible()
    question.redact(SECRET)
    assert SECRET not in onlooker.page.content()
    question.send("redacted")
    screen.wait_idle()
    request_body = json.dumps(rig.model.seen[-1].body, ensure_ascii=False)
    assert "account: ann" in request_body
    assert SECRET not in request_body
    onlooker.sees("It came to this: account: ann")
    onlooker.reload()
    onlooker.sees("It came to this: account: ann")
    assert SECRET not in onlooker.page.content()


def test_a_result_is_withheld(rig: Rig, screen: Screen) -> None:
    screen.say("review")
    screen.question("lookup").withhold("too much in it")
    screen.wait_idle()
    request_body = json.dumps(rig.model.seen[-1].body, ensure_ascii=False)
    assert "too much in it" in request_body
    assert SECRET not in request_body
    expect(screen.cards("lookup")).to_have_attribute("data-state", "withheld")


def test_always_is_asked_once(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("run"))
    session = screen.say('call run {"command": "git status"}')
    screen.question("run").always()
    screen.wait_idle()
    screen.say('call run {"command": "git status"}')
    wait_until_sync(lambda: len(rig.deeds("run")) == before + 2)
    screen.wait_idle()
    assert not rig.gates(session)


def test_keys_answer_a_question(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    screen.say("mail")
    screen.question("send_mail").press("y")
    wait_until_sync(lambda: len(rig.deeds("mail")) == before + 1)
    screen.wait_idle()
    screen.say("mail")
    question = screen.question("send_mail")
    question.press("n")
    screen.page.keyboard.type("no, by key")
    question.is_steady()
    screen.page.keyboard.press("Enter")
    wait_until_sync(lambda: any(rig.model.bodies("no, by key")))
    screen.wait_idle()
    assert len(rig.deeds("mail")) == before + 1


def test_a_tool_asks_by_a_form_and_a_person_does_it_manual(screen: Screen) -> None:
    screen.say("form")
    question = screen.question("inquire")
    question.place.get_by_label("name").fill("Ann")
    question.place.get_by_label("size").select_option("M")
    question.send("answer")
    screen.sees('"name":"Ann"')
    screen.wait_idle()
    screen.say("manual")
    screen.question("measure").manual("72 cm")
    screen.sees("It came to this: 72 cm")


def test_a_loop_is_stopped(screen: Screen) -> None:
    screen.say("loop")
    question = screen.question("look")
    question.deny("that is enough of the hall")
    screen.wait_idle()
    screen.sees("Enough of the hall.")


def test_the_inbox_has_all_questions_and_answers_them(rig: Rig, visit: Visit) -> None:
    sessions = [rig.say("mail")["session"] for _ in range(2)]
    for session in sessions:
        wait_until_sync(lambda session=session: rig.gates(session))
    before = len(rig.deeds("mail"))
    screen = visit().open(path="#/inbox")
    for at, session in enumerate(sessions):
        question = screen.question_of(rig.gates(session)[0]["gate"]["id"])
        question.allow()
        expect(question.place).to_have_count(0)
        wait_until_sync(lambda at=at: len(rig.deeds("mail")) == before + at + 1)


def test_a_question_on_a_phone(rig: Rig, visit: Visit) -> None:
    before = len(rig.deeds("mail"))
    screen = visit(**PHONE).open()
    screen.say("mail")
    question = screen.question("send_mail")
    question.allow()
    screen.wait_idle()
    assert len(rig.deeds("mail")) == before + 1
    width = screen.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def test_the_whole_story_in_chinese(rig: Rig, visit: Visit) -> None:
    screen = visit(locale="zh-CN").open()
    expect(screen.page.locator("html")).to_have_attribute("lang", "zh-CN")
    session = screen.say("story pace 3")
    screen.question("send_mail", CHINESE).allow()
    screen.question("lookup", CHINESE).send()
    screen.question("write_file", CHINESE).allow()
    screen.wait_idle()
    screen.sees("All four are done")
    assert (rig.files / "notes.txt").read_text() == "rain in both\n"
    assert "All four are done" in rig.stored_text(session)
