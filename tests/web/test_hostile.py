"""Nothing that anybody writes makes the page run a script, ask for an address, stand still, or draw what it should not."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Request, Route, expect

from tests.helpers.browser import Screen, Visitor
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web import hostile_texts, past_conversation
from tests.web.conftest import Visit
from tests.web.page_measurements import Meter

LOOK: Final = """
() => {
  const bad = [];
  const forbidden = 'script,object,embed,base,meta,link,style,form[action],video,template,portal,foreignObject,use,animate,[srcset],[srcdoc],[role=log] iframe:not(.sandboxed[sandbox="allow-scripts"][src="/sandbox/preview.html"]),[role=log] [data-gate] [data-gate]';
  for (const one of document.body.querySelectorAll(forbidden)) bad.push(one.outerHTML.slice(0, 200));
  for (const one of document.body.querySelectorAll('*')) {
    for (const { name, value } of one.attributes) {
      if (/^on/i.test(name)) bad.push(`${name}=${value}`.slice(0, 200));
      if (/^(href|src|action|xlink:href|data|poster|background)$/i.test(name)) {
        const address = new URL(value, location.href);
        const isOurs = address.origin === location.origin && !/^\\/api\\/(?!sessions\\/[^/]+\\/blobs\\/)/.test(address.pathname);
        const isLink = one.localName === 'a' && /^(https?|mailto):$/.test(address.protocol) && one.target === '_blank'
          && ['noopener', 'noreferrer'].every((word) => one.relList.contains(word));
        if (!isOurs && !isLink && address.protocol !== 'blob:') bad.push(`${one.localName} ${name}=${value}`.slice(0, 200));
      }
    }
  }
  for (const one of document.querySelectorAll('.markdown > .block, .message.user > .user-text > .plain'))
    if (getComputedStyle(one).overflowY === 'visible') bad.push('marks may reach beyond ' + one.className);
  return { bad, pwned: window.pwned ?? null, polluted: {}.polluted ?? null, at: location.hash };
}
"""
WATCH: Final = """
window.longest = 0;
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.longest = Math.max(window.longest, one.duration); })
  .observe({ type: 'longtask', buffered: true });
"""
OWN: Final = re.compile(r"^/$|^/assets/[\w.-]+$|^/sandbox/[\w.-]*$|^/api/(?!logout)")
BLOCKED: Final = 2000  # milliseconds in which a person could do nothing
MOST_DRAWN: Final = 8.0  # seconds of the processor for one message: 3.2 at most on two busy cores, in many small tasks


def come(visit: Visit) -> tuple[Visitor, list[str]]:
    """Somebody, and every request that the page had no reason for."""
    visitor, unexpected = visit(), []

    def note(request: Request) -> None:
        if request.url.startswith("http") and not OWN.search(urlsplit(request.url).path):
            unexpected.append(request.url)

    visitor.context.on("request", note)
    visitor.context.add_init_script(WATCH)
    return visitor, unexpected


def judge(visitor: Visitor, screen: Screen, unexpected: Sequence[str] = ()) -> None:
    """The page is what it was.

    Raises:
        AssertionError: it is not.
    """
    seen: Any = screen.page.evaluate(LOOK)
    assert seen["bad"] == []
    assert seen["pwned"] is None
    assert seen["polluted"] is None
    assert list(unexpected) == []
    visitor.check()


def unfold(screen: Screen) -> None:
    """Look at all of it: what is far away may be drawn only when somebody comes near."""
    screen.page.mouse.move(700, 400)
    for turned in range(2_000):
        screen.page.mouse.wheel(0, -4000)
        screen.page.wait_for_timeout(16)
        if turned >= 50 and not screen.page.locator(".earlier").count():  # everything was loaded and drawn
            break
    screen.page.evaluate("() => document.querySelectorAll('[role=log] summary').forEach((one) => one.click())")
    screen.page.wait_for_timeout(300)


def test_there_is_enough_of_it() -> None:
    assert len(set(hostile_texts.ALL)) == len(hostile_texts.ALL) >= 150


@pytest.mark.timeout(180)
def test_what_is_stored_does_nothing(rig: Rig, visit: Visit) -> None:
    exchanges = [past_conversation.Said(text, text, text, text) for text in hostile_texts.ALL if len(text) < 50_000]
    session = past_conversation.bring(rig, [*exchanges, past_conversation.Said("end", past_conversation.LAST)])
    visitor, unexpected = come(visit)
    screen = visitor.open(session)
    screen.sees(past_conversation.LAST, 30)
    unfold(screen)
    judge(visitor, screen, unexpected)
    assert screen.log.locator("[data-gate]").count() == 0  # whatever an answer looks like
    for place in (screen.said(), screen.log.locator('[data-message][data-role="assistant"] .part.text')):
        whole = "\n".join(place.all_text_contents())
        assert [
            text for text in (*hostile_texts.HTML, *hostile_texts.SPOOFS[1:4]) if text not in whole
        ] == []  # all there, as text


@pytest.mark.timeout(180)
def test_what_streams_does_nothing_and_ends_as_what_is_stored(rig: Rig, visit: Visit) -> None:
    visitor, unexpected = come(visit)
    screen = visitor.open(rig.say("hello")["session"])
    screen.sees("You said")
    rest = (*hostile_texts.CODE, *hostile_texts.TERMINAL, *hostile_texts.BIDI, *hostile_texts.SPOOFS)
    for corpus in (
        hostile_texts.HTML,
        (*hostile_texts.LINKS, *hostile_texts.PRETENDING),
        hostile_texts.MATH[:-3],
        rest,
    ):
        rig.say("echo:" + "\n\n".join(corpus) + "\n\nthe end pace 2", screen.session)
        wait_until_sync(lambda: rig.is_idle(screen.session), 60)
        expect(screen.answer()).to_contain_text("the end pace 2")
        judge(visitor, screen, unexpected)
    screen.page.wait_for_timeout(500)  # until what is fetched with the first formula has drawn the last
    drawn = screen.log.locator(".part.text").all_text_contents()
    screen.reload()
    expect(screen.answer()).to_contain_text("the end pace 2")
    unfold(screen)
    judge(visitor, screen, unexpected)
    assert screen.log.locator(".part.text").all_text_contents() == drawn


def test_a_link_says_where_it_leads(rig: Rig, visit: Visit) -> None:
    visitor, unexpected = come(visit)
    screen = visitor.open(rig.say("echo:" + "\n\n".join((*hostile_texts.PRETENDING, "the end")))["session"])
    expect(screen.answer()).to_contain_text("the end")
    link_texts = screen.answer().locator("p:has(a)").all_text_contents()
    assert len(link_texts) == len(hostile_texts.PRETENDING)
    assert [text for text in link_texts if not text.endswith("(evil.example)")] == []
    judge(visitor, screen, unexpected)


@pytest.mark.timeout(600)  # a message for each shape
def test_deep_and_wide_shapes_do_not_stop_the_page(rig: Rig, visit: Visit) -> None:
    visitor, unexpected = come(visit)
    screen = visitor.open(rig.say("hello")["session"])
    screen.sees("You said")
    slow: list[tuple[str, float]] = []
    for at, shape in enumerate((*hostile_texts.SHAPES, *hostile_texts.MATH[-3:])):
        used = _drawn(rig, screen, shape, f"and on {at}")
        slow += [(shape[:20], used)] if used > MOST_DRAWN else []
    assert slow == []
    judge(visitor, screen, unexpected)


def _drawn(rig: Rig, screen: Screen, shape: str, end: str) -> float:
    """How much of the processor the page took to draw this."""
    meter = Meter(screen.page)
    rig.say(f"echo:{shape}\n\n{end}", screen.session, context="off")  # together they do not fit into the window
    expect(screen.answer()).to_contain_text(end, timeout=60_000)
    return meter.since()["TaskDuration"]


def test_a_million_characters_do_not_stop_the_page(rig: Rig, visit: Visit) -> None:
    exchanges = [past_conversation.Said("a question", text) for text in hostile_texts.HUGE]
    visitor, unexpected = come(visit)
    screen = visitor.open(
        past_conversation.bring(rig, [*exchanges, past_conversation.Said("end", past_conversation.LAST)])
    )
    screen.sees(past_conversation.LAST, 30)
    unfold(screen)
    assert screen.page.evaluate("window.longest") < BLOCKED
    assert len(screen.log.text_content() or "") > sum(map(len, hostile_texts.HUGE))
    judge(visitor, screen, unexpected)


@pytest.mark.timeout(180)
def test_questions_and_results_do_nothing(rig: Rig, visit: Visit) -> None:
    some = [text for text in hostile_texts.ALL if len(text) < 1000]
    mails = [
        {"to": recipient, "subject": two, "body": three}
        for recipient, two, three in zip(*(some[at::3] for at in range(3)), strict=False)
    ]
    calls = [("send_mail", arguments) for arguments in (*mails[::3], *hostile_texts.JSON)] + [
        ("run", {"command": some[0]})
    ]
    calls += [(name, {key: text}) for text in some[::8] for name, key in (("fail", "why"), ("look", "place"))]
    text = " ".join(f"call {name} {json.dumps(arguments)}" for name, arguments in calls)
    session = rig.say(text)["session"]
    wait_until_sync(lambda: len(rig.gates(session)) >= len(mails[::3]), 30)
    visitor, unexpected = come(visit)
    screen = visitor.open(session)
    expect(screen.page.locator("[data-gate-row]").first).to_be_visible(timeout=60_000)
    judge(visitor, screen, unexpected)
    screen.page.get_by_role("button", name="Show in full").click()
    expect(screen.page.locator("[data-gate][data-open]").first).to_be_visible(timeout=60_000)
    unfold(screen)
    judge(visitor, screen, unexpected)
    boxes = visitor.open(path="#/inbox")
    expect(boxes.page.locator("[data-gate][data-open]").first).to_be_visible(timeout=60_000)
    judge(visitor, boxes, unexpected)
    shown = " ".join(boxes.page.locator(".gate .visible-text").all_text_contents())
    assert mails[0]["to"] in shown
    assert "\u202e" not in shown  # what turns text around is written out where somebody decides


@pytest.mark.timeout(300)
def test_names_titles_and_what_was_found_do_nothing(rig: Rig, visit: Visit) -> None:
    some = (*hostile_texts.HTML[:8], *hostile_texts.LINKS[:4], *hostile_texts.BIDI, *hostile_texts.TERMINAL[:2])
    sessions = [rig.say(f"{text} needle")["session"] for text in some]  # each is named after what was said first
    rig.say("echo:" + "\n\n".join(some), sessions[-1])
    visitor, unexpected = come(visit)
    screen = visitor.open(sessions[-1])
    expect(screen.said().first).to_contain_text("needle")
    rows = screen.page.locator("li.session")
    expect(rows.nth(5)).to_be_attached()
    turned = "(rows) => rows.filter((one) => one.querySelector('.title').getBoundingClientRect().right > one.querySelector('.when').getBoundingClientRect().left + 1).length"
    assert rows.evaluate_all(turned) == 0  # what turns a title around turns nothing beside it
    judge(visitor, screen, unexpected)
    screen.page.locator("form.composer input[type=file]").set_input_files(
        {
            "name": "<img src=x onerror=window.pwned=1>\u202egnp.svg",
            "mimeType": "image/svg+xml",
            "buffer": b"<svg onload='window.pwned=1'/>",
        }
    )
    screen.say("see the file")
    expect(screen.said().last).to_contain_text("see the file")
    judge(visitor, screen, unexpected)
    screen.more(screen.said().first, "Raw")
    expect(screen.page.get_by_role("dialog")).to_contain_text("needle")
    judge(visitor, screen, unexpected)
    screen.page.keyboard.press("Escape")
    rig.wait_idle(sessions[-1])
    first, other = (
        message["id"] for message in rig.messages(sessions[-1])[1:4:2]
    )  # two answers, the second with all of it
    beside = visitor.open(path=f"#/s/{sessions[-1]}/compare/{first}/{other}")
    expect(beside.page.get_by_role("main").locator(".side").first).to_be_attached()
    judge(visitor, beside, unexpected)
    assert some[0] in (beside.page.get_by_role("main").text_content() or "")
    screen.page.locator(".sidebar .find input").fill("needle")
    expect(screen.page.locator("ul.search-results li").nth(5)).to_be_attached()
    judge(visitor, screen, unexpected)


BREAKS: Final = (
    "() => { const img = new Image(); img.src = 'https://evil.example/x.png'; document.body.append(img); }",
    "() => { const img = new Image(); img.src = 'canary.png'; document.querySelector('[role=log]').append(img); }",
    "() => { const one = document.createElement('script'); one.src = 'https://evil.example/x.js'; document.body.append(one); }",
    "() => { document.body.innerHTML = '<b>x</b>'; }",
    "() => { document.querySelector('[role=log]').append(Object.assign(document.createElement('a'), { href: 'javascript:1' })); }",
    "() => { Object.prototype.polluted = true; }",
)


@pytest.mark.parametrize("deed", BREAKS)
def test_the_judge_can_tell(rig: Rig, visit: Visit, deed: str) -> None:
    visitor, unexpected = come(visit)
    screen = visitor.open(rig.say("hello")["session"])
    screen.sees("You said")
    judge(visitor, screen, unexpected)
    screen.page.evaluate(f"() => {{ try {{ ({deed})() }} catch {{}} }}")
    screen.page.wait_for_timeout(300)
    with pytest.raises(AssertionError):
        judge(visitor, screen, unexpected)
    visitor.wrong.clear()


def test_the_judge_can_tell_a_page_that_trusts_a_link(rig: Rig, visit: Visit) -> None:
    broken: list[str] = []

    def serve(route: Route) -> None:
        answer = route.fetch()
        text, count = re.subn(r"(\[(.)https?:\2,.https:.,.mailto:.)\]", r"\1,`javascript:`]", answer.text())
        broken.extend([route.request.url] * count)
        route.fulfill(response=answer, body=text)

    visitor, unexpected = come(visit)
    visitor.context.route("**/assets/*.js", serve)
    screen = visitor.open(rig.say(f"echo:{hostile_texts.LINKS[0]} the end")["session"])
    screen.sees("the end")
    assert broken
    with pytest.raises(AssertionError, match="javascript"):
        judge(visitor, screen, unexpected)
    visitor.context.unroute_all(behavior="wait")  # a module may still be on its way when the page closes
