"""The composer and answers: models to choose from, files dropped anywhere, thumbs with a reason."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE
from tests.helpers.document_files import PDF_TYPE, make_pdf, make_xlsx
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import axe


@pytest.mark.parametrize("look", [{}, PHONE, {"locale": "zh-CN", "color_scheme": "dark"}])
def test_a_model_is_found_and_chosen_with_the_keys_alone(rig: Rig, visit: Visit, look: dict[str, object]) -> None:
    screen = visit(**look).open()
    button = screen.page.locator(".composer .model-button")
    expect(button).to_have_text("rig-model")
    button.focus()
    screen.page.keyboard.press("Enter")
    picker = screen.page.get_by_role("dialog")
    own = picker.get_by_role("option").first
    expect(own).to_contain_text("compatible")
    expect(own).to_contain_text("$2")
    expect(own).to_contain_text("$8")
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screen.page.keyboard.type("other")
    expect(picker.get_by_role("option")).to_have_count(1)
    screen.page.keyboard.press("Enter")
    expect(picker).to_have_count(0)
    expect(button).to_have_text("rig-other")
    expect(button).to_be_focused()
    session = screen.say("who are you")
    screen.wait_idle()
    assert rig.messages(session)[-1]["by"] == "rig-other"


DROP = """(target) => {
    const data = new DataTransfer();
    data.items.add(new File(['seven'], 'notes.txt', { type: 'text/plain' }));
    const send = (type) => target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
    send('dragover');
    window.drop = () => send('drop');
}"""


def test_files_are_dropped_anywhere_on_the_page_but_not_beside_a_dialog(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    screen.say("hello")
    screen.wait_idle()
    overlay, files = screen.page.locator(".drop-overlay"), screen.page.locator(".composer .attachment-list > li")
    screen.log.evaluate(DROP)
    expect(overlay).to_be_visible()
    assert not axe(screen.page)
    assert screen.page.evaluate("!drop()")  # the browser does not open the file
    expect(overlay).to_have_count(0)
    expect(files).to_have_text("notes.txt")
    screen.say("what is in it")
    screen.wait_idle()
    assert [part["name"] for part in rig.messages(screen.session)[-2]["parts"] if part["type"] == "file"] == [
        "notes.txt"
    ]
    screen.page.locator(".composer .model-button").click()
    expect(screen.page.get_by_role("dialog")).to_be_visible()
    screen.log.evaluate(DROP)
    expect(overlay).to_have_count(0)
    assert screen.page.evaluate("!drop()")
    expect(files).to_have_count(0)


@pytest.mark.parametrize("look", [{}, PHONE, {"locale": "zh-CN", "color_scheme": "dark"}])
def test_an_answer_is_rated_with_a_reason_and_the_rating_outlives_a_reload(
    rig: Rig, visit: Visit, look: dict[str, object]
) -> None:
    screen = visit(**look).open()
    session = screen.say("hello")
    screen.wait_idle()
    down = screen.answer().locator(".thumb.down")
    down.click()
    dialog = screen.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dialog.get_by_role("button").nth(1).click()  # the first reason; before it is the button that closes
    dialog.get_by_role("textbox").press("End")
    dialog.get_by_role("textbox").type(" <b>at all</b>")
    dialog.locator(".button.primary").click()
    expect(dialog).to_have_count(0)
    screen.page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")
    [rating] = rig.api("GET", f"/api/sessions/{session}/messages")["ratings"]
    assert rating["rating"] == "down"
    assert rating["reason"].endswith(" <b>at all</b>")
    assert len(rating["reason"]) > len(" <b>at all</b>")
    down.click()
    dialog.get_by_role("button").last.click()
    expect(down).to_have_attribute("aria-pressed", "false")
    assert rig.api("GET", f"/api/sessions/{session}/messages")["ratings"] == []


@pytest.mark.parametrize("look", [{}, PHONE, {"locale": "zh-CN", "color_scheme": "dark"}])
def test_a_document_shows_its_pages_and_its_text(rig: Rig, visit: Visit, look: dict[str, object]) -> None:
    screen = visit(**look).open()
    pdf = make_pdf([f"Chapter {n}\nLunch is at noon." for n in range(1, 13)])
    sheet = make_xlsx({"Budget": '<row r="1"><c r="A1"><v>40</v></c></row>'})
    screen.page.locator("form.composer input[type=file]").set_input_files(
        [
            {"name": "report.pdf", "mimeType": PDF_TYPE, "buffer": pdf},
            {"name": "plan.xlsx", "mimeType": "", "buffer": sheet},
            {"name": "locked.pdf", "mimeType": PDF_TYPE, "buffer": b"%PDF-1.7 no"},
        ]
    )
    files = screen.page.locator(".composer .attachment-list > li")
    expect(files.nth(0)).to_contain_text("12")
    expect(files.nth(1)).to_contain_text("1")
    expect(files.nth(2)).to_contain_text("damaged")
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screen.say("what is in it")
    screen.wait_idle()
    expect(screen.page.locator(".file-part").first).to_contain_text("12")
    screen.page.locator(".files button").first.click()
    dialog = screen.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Chapter 12")
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screen.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
