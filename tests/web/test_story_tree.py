"""Ways back and beside: versions of messages, branches side by side, and files as they were."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server.server import Rig


def versions(message: Locator) -> Locator:
    """Which version of a message is shown, of how many."""
    return message.locator(".versions .at")


def test_branches(rig: Rig, screen: Screen) -> None:
    session = screen.say("first question")
    screen.sees("You said: first question")
    screen.wait_idle()
    screen.edit("first question", "other question")
    screen.sees("You said: other question")
    screen.wait_idle()
    expect(versions(screen.said().first)).to_have_text("2/2")
    screen.said().first.get_by_role("button", name="Earlier version").click()
    screen.sees("You said: first question")
    assert rig.stored_text(session) == "You said: first question"
    screen.answer().get_by_role("button", name="Regenerate", exact=True).click()
    expect(versions(screen.answer())).to_have_text("2/2")
    screen.wait_idle()
    screen.answer().get_by_role("button", name="Earlier version").click()
    expect(versions(screen.answer())).to_have_text("1/2")
    screen.said().first.get_by_role("button", name="Later version").click()
    screen.sees("You said: other question")
    screen.more(screen.said().first, "Compare with version 1/2")
    main = screen.page.get_by_role("main")
    expect(main).to_contain_text("You said: first question")
    expect(main).to_contain_text("You said: other question")


def test_another_model_answers(rig: Rig, screen: Screen) -> None:
    session = screen.say("who are you")
    screen.wait_idle()
    screen.sees("You said")
    screen.answer().get_by_role("button", name="Regenerate with…").click()
    screen.page.get_by_role("option", name="rig-other").click()
    expect(versions(screen.answer())).to_have_text("2/2")
    screen.wait_idle()
    assert rig.messages(session)[-1]["by"] == "rig-other"


def test_going_on_from_an_earlier_message(rig: Rig, screen: Screen) -> None:
    session = screen.say("one")
    screen.wait_idle()
    screen.say("two")
    screen.sees("You said: two")
    screen.wait_idle()
    screen.more(screen.log.locator('[data-message][data-role="assistant"]').first, "Continue from here")
    expect(screen.log).not_to_contain_text("You said: two")
    screen.say("three")
    screen.sees("You said: three")
    screen.wait_idle()
    texts = [
        part["text"] for message in rig.messages(session) for part in message["parts"] if message["role"] == "user"
    ]
    assert texts == ["one", "three"]


@pytest.mark.timeout(300)
def test_files_become_what_they_were(rig: Rig, screen: Screen) -> None:
    (rig.files / "a.txt").write_text("a before\n")
    screen.say("files 1")
    screen.question("write_file").allow()
    screen.question("write_file").allow()
    question = screen.question("edit_file")
    expect(question.place).to_contain_text("a 1 and more")
    question.allow()
    screen.sees("The files are written.")
    screen.wait_idle()
    assert (rig.files / "a.txt").read_text() == "a 1 and more\n"
    assert (rig.files / "b.txt").read_text() == "b 1\n"
    changed = screen.page.locator(".files-changed").first
    changed.locator("summary").click()
    changed.get_by_role("button", name="Revert to before this step…").click()
    screen.page.get_by_role("dialog").get_by_role("button", name="Revert", exact=True).click()
    expect(screen.page.get_by_role("dialog")).to_have_count(0)
    assert (rig.files / "a.txt").read_text() == "a before\n"
    assert not (rig.files / "b.txt").exists()
    screen.page.locator(".files-changed").first.get_by_role("button", name="Undo…").click()
    screen.page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
    expect(screen.page.get_by_role("dialog")).to_have_count(0)
    assert (rig.files / "a.txt").read_text() == "a 1 and more\n"
