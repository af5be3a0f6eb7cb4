"""What the page says is what happened: of calls, durations, titles, answers, errors and the connection."""

from __future__ import annotations

import re
import time
from typing import Any

from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

LONG = "Tell me the weather in parallel for the two cities that I am going to visit in spring"
TITLE = "Tell me the weather in parallel for the two cities that I…"


def _opened(card: Locator) -> Locator:
    """A card, opened."""
    card.locator("summary").first.click()
    details = card.locator(".details").first
    expect(details).to_be_visible()
    return details


def _hint(page: Page) -> Locator:
    return page.locator(".gate .too-early")


def test_a_card_says_that_arguments_were_changed_only_where_they_were(screen: Screen) -> None:
    screen.say('call weather {"unit": "celsius", "city": "Lisbon"}')
    screen.wait_idle()
    details = _opened(screen.cards("weather").first)
    expect(details).to_contain_text("Arguments")
    expect(details).not_to_contain_text("changed before it ran")
    screen.page.goto(f"{screen.rig.url}/#/")
    screen.say("mail")
    screen.question("send_mail").allow_with("subject", "Sun")
    screen.wait_idle()
    details = _opened(screen.cards("send_mail").first)
    expect(details).to_contain_text("A person changed the arguments")
    expect(details).to_contain_text("Sun")


def test_a_conversation_has_its_title_in_every_tab_while_it_waits(rig: Rig, visit: Visit) -> None:
    sent = rig.say(f"{LONG}, then mail")
    wait_until_sync(lambda: rig.gates(sent["session"]) or rig.is_idle(sent["session"]), 15, "nothing came of it")
    mailed = rig.say("mail the harbour office that the boat is late again this week, please")
    title = "mail the harbour office that the boat is late again this…"
    wait_until_sync(lambda: rig.gates(mailed["session"]), 15, "nobody is asked")
    screen = visit().open()
    rows = screen.page.locator(".sidebar .session .title")
    expect(rows.filter(has_text=title)).to_have_count(1)
    expect(rows.filter(has_text=TITLE)).to_have_count(1)
    expect(rows.filter(has_text="Untitled")).to_have_count(0)
    screen.page.goto(f"{rig.url}/#/inbox")
    expect(
        screen.page.get_by_role("region", name=title).or_(screen.page.locator(f'section[aria-label="{title}"]')).first
    ).to_be_visible()
    screen.page.locator(".sidebar .find input").fill("harbour")
    expect(screen.page.locator(".search-results .title").first).to_have_text(title)
    assert [gate["title"] for gate in rig.gates(mailed["session"])] == [title]


def test_a_click_that_comes_too_early_is_answered_with_a_sign(rig: Rig, visit: Visit) -> None:
    session = rig.say("mail")["session"]
    wait_until_sync(lambda: rig.gates(session), 15, "nobody is asked")
    screen = visit().open()
    posts: list[str] = []
    screen.page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    # The button is pressed in the very frame in which it is drawn.
    screen.page.evaluate(
        """() => new MutationObserver((_, watch) => {
          const button = [...document.querySelectorAll('.gate .actions button')].find((one) => one.textContent.includes('Allow once'));
          if (button) { watch.disconnect(); button.click(); }
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    screen.page.goto(f"{rig.url}/#/s/{session}")
    expect(_hint(screen.page)).to_contain_text("Press again")
    assert not [url for url in posts if "/gates/" in url]
    question = screen.question("send_mail")
    question.is_steady()
    question.click("once")
    question.is_gone()
    screen.wait_idle()
    assert len([url for url in posts if "/gates/" in url]) == 1


def test_a_key_that_comes_too_early_is_answered_with_a_sign(screen: Screen) -> None:
    screen.say("mail")
    question = screen.question("send_mail")
    question.is_steady()
    screen.box.focus()
    screen.page.evaluate("() => document.querySelector('.gate').focus()")
    screen.page.keyboard.press("y")
    expect(_hint(screen.page)).to_contain_text("Press again")
    question.press("y")
    question.is_gone()
    screen.wait_idle()


def test_an_answer_without_a_word_is_said_to_be_none(screen: Screen) -> None:
    screen.say("call nothing")
    screen.wait_idle()
    expect(screen.answer()).to_contain_text("No answer was written.")
    screen.say("hello")
    screen.wait_idle()
    expect(screen.answer()).not_to_contain_text("No answer was written.")


def test_the_time_that_a_person_took_is_none_of_the_tools(rig: Rig, screen: Screen) -> None:
    session = screen.say("review")
    question = screen.question("lookup")
    opened = time.time()
    screen.page.wait_for_timeout(2500)
    question.send()
    screen.wait_idle()
    waited = time.time() - opened
    [finished] = [
        entry["event"]
        for entry in rig.api("GET", f"/api/sessions/{session}/log")["entries"]
        if entry["event"]["type"] == "CallFinished"
    ]
    [started] = [
        entry["event"]
        for entry in rig.api("GET", f"/api/sessions/{session}/log")["entries"]
        if entry["event"]["type"] == "CallStarted"
    ]
    assert finished["at"] - started["at"] > 2.4, "the log has the person's time in it"
    shown = screen.cards("lookup").locator(".duration").first
    expect(shown).to_have_text(re.compile(r"^<?\d+(\.\d+)? (s|ms)$"))  # on a fast machine "<0.1 s"
    text = shown.inner_text()
    took, unit = text.removeprefix("<").split()
    assert float(took) / (1000 if unit == "ms" else 1) < waited - 2
    screen.reload()
    assert screen.cards("lookup").locator(".duration").first.inner_text() == text


def test_a_tool_that_runs_on_is_not_said_to_be_cancelled(rig: Rig, screen: Screen) -> None:
    session = screen.say("slow 4")
    expect(screen.log.locator(".turn-status")).to_contain_text("1 tool is running")
    screen.stop()
    screen.sees("Stopped.")
    card = screen.log.locator("[data-call]").first
    expect(card).to_have_attribute("aria-label", "slow: Still running")
    expect(card.locator("summary").first).not_to_contain_text("Cancelled")
    wait_until_sync(lambda: rig.is_idle(session), 20, "the tool did not end")
    expect(card).to_have_attribute("aria-label", "slow: Cancelled")
    expect(card).to_contain_text("Late result")


def test_a_request_that_was_refused_is_not_told_as_a_broken_stream(screen: Screen) -> None:
    screen.say("error")
    screen.sees("The model provider rejected the request")
    screen.sees("the rig was told to fail")
    expect(screen.log).not_to_contain_text("broke off")
    expect(screen.log).not_to_contain_text("thinks is wrong")


def test_who_is_logged_out_is_told_so_in_words_for_people(visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("401")
    screen = visitor.open()
    screen.say("hello")
    screen.wait_idle()
    gone: dict[str, Any] = {"status": 401, "content_type": "application/json"}
    body = '{"error": {"code": "not_recognised", "message": "missing or invalid credentials: send Authorization: Bearer <key>, or log in"}}'
    screen.page.route("**/messages", lambda route: route.fulfill(**gone, body=body))
    screen.box.fill("and now?")
    screen.box.press("Enter")
    alert = screen.page.get_by_role("alert").filter(has_text="and now?")
    expect(alert).to_contain_text("You are not logged in any more")
    expect(screen.page.locator("body")).not_to_contain_text("Bearer")


def test_the_count_of_what_the_model_would_read_follows_what_is_taken_out(screen: Screen) -> None:
    screen.say("review")
    question = screen.question("lookup")
    head = question.place.locator(".review > .label")
    before = int(re.findall(r"\((\d+) ", head.inner_text())[0])
    question.redact("yesterday")
    expect(head).to_contain_text(f"({before - len('yesterday') + len('[redacted]')} characters)")
    question.send("redacted")
    screen.wait_idle()


def test_the_picture_of_a_tool_is_seen_without_opening_its_card(screen: Screen) -> None:
    screen.say("picture")
    card = screen.cards("draw").first
    picture = card.locator("img")
    expect(picture).to_have_count(1)
    expect(picture).to_be_visible()
    assert picture.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 64
    _opened(card)
    expect(picture).to_have_count(1)
    expect(card.locator("a[download]")).to_contain_text("picture.png")
    screen.stop()  # the rig takes the note about its file for a wish


def test_a_gate_says_where_its_tool_runs(screen: Screen) -> None:
    screen.say("manual")
    about = screen.question("measure").place.locator(".about")
    expect(about).to_contain_text("Done by: you")
    expect(about).not_to_contain_text("Runs in")
    screen.stop()
    screen.page.goto(f"{screen.rig.url}/#/")
    screen.say("browser")
    expect(screen.question("browser_js_eval").place.locator(".about")).to_contain_text("Runs in: the browser")
    screen.stop()


def test_a_gate_that_expired_says_so_once(rig: Rig, visit: Visit) -> None:
    session = rig.say("mail", agent="timely")["session"]
    screen = visit().open(session)
    expect(screen.log.locator(".gate-closed")).to_contain_text("Nobody answered in time")
    screen.wait_idle()
    text = screen.cards("send_mail").first.inner_text().lower()
    assert text.count("answered in time") == 1, text


def test_a_status_says_that_a_question_of_a_sub_turn_waits(screen: Screen) -> None:
    screen.say("trip")
    screen.question("send_mail")
    status = screen.log.locator(".turn-status")
    expect(status).to_contain_text("1 approval pending")
    expect(status).not_to_contain_text("from outside")
    screen.stop()


def test_the_list_of_conversations_is_read_once_at_the_start(rig: Rig, visit: Visit) -> None:
    rig.say("hello")
    visitor = visit()
    urls: list[str] = []

    def note(request: Request) -> None:
        if "/api/sessions?" in request.url:
            urls.append(request.url)

    visitor.context.on("request", note)
    screen = visitor.open()
    expect(screen.page.locator(".sidebar .session").first).to_be_visible()
    screen.page.wait_for_timeout(2000)
    assert len(urls) == 1, urls


def test_the_api_is_compressed_for_a_browser_and_a_stream_is_not(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    coded: dict[str, str] = {}
    visitor.context.on(
        "response",
        lambda response: coded.update(
            {response.url.removeprefix(rig.url).partition("?")[0]: response.headers.get("content-encoding", "")}
        ),
    )
    screen = visitor.open()
    screen.say("hello")
    screen.wait_idle()
    assert coded["/api/tools"] == "gzip"
    assert coded["/api/me"] == ""
    streams = [value for path, value in coded.items() if path.endswith(("/events", "/inbox"))]
    assert streams
    assert not any(streams)


def test_a_mistyped_address_is_a_page_with_a_way_back(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("404")
    screen = visitor.open(path="nope")
    expect(screen.page.get_by_role("heading", name="Page not found")).to_be_visible()
    screen.page.get_by_role("link").click()
    expect(screen.box).to_be_visible()


def test_a_file_beside_a_picture_keeps_its_own_height(rig: Rig, visit: Visit) -> None:
    picture = rig.api("POST", "/api/files?name=dot.png", _png(), {"Content-Type": "image/png"})["file"]
    notes = rig.api("POST", "/api/files?name=notes.txt", b"some notes", {"Content-Type": "text/plain"})["file"]
    session = rig.say("plain 3", files=[picture, notes])["session"]
    screen = visit().open(session)
    chip, shown = screen.said().locator(".file-part"), screen.said().locator("img")
    expect(shown).to_be_visible()
    shown.evaluate("(one) => one.decode()")
    chip_box, picture_box = chip.bounding_box(), shown.bounding_box()
    assert chip_box is not None
    assert picture_box is not None
    assert chip_box["height"] < 50 < picture_box["height"]


def _png() -> bytes:
    from tests.helpers.scripted_server.tools import drawn

    return drawn(b"a picture")


def test_a_lost_connection_does_not_claim_that_the_server_runs(visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("ERR_|Failed to load")
    screen = visitor.open()
    session = screen.say("slow 6")
    screen.page.goto(f"{screen.rig.url}/#/")

    def refuse(route: Route) -> None:
        route.abort()

    screen.page.route("**/events**", refuse)
    screen.page.goto(f"{screen.rig.url}/#/s/{session}")
    line = screen.page.locator(".connection-line")
    expect(line).to_contain_text("it continues on the server, or when the server is back", timeout=60_000)
    expect(line).not_to_contain_text("goes on meanwhile")


def test_a_thought_reads_the_same_before_and_after_a_reload(screen: Screen) -> None:
    screen.say("reason pace 20")
    screen.wait_idle()
    summary = screen.answer().locator(".reasoning summary").first
    expect(summary).to_have_text("Thought")
    screen.reload()
    expect(summary).to_have_text("Thought")
