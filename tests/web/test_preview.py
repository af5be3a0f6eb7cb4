"""Previews of code blocks: diagrams, HTML and SVG are drawn in the opaque frame, and what they try comes to nothing.

Each way out is tried three times: in the frame as it is served; in one that removes nothing from the text, so that the
policy alone holds; and, to see that the probe would notice, in one with a lax policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Error, FrameLocator, Page, Playwright, Route, expect

from everturn.server.routes.js_sandbox import preview_csp
from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import axe
from tests.web.sandbox_page import LAX, Bench, Canary, a_browser

FLOW: Final = (
    "```mermaid\nflowchart LR\n  A[Ask] --> B{Allowed?}\n  B -->|yes| C[Run the tool]\n  B -->|no| D[Say why]\n```\n"
)
PAGE: Final = "```html\n<style>h1 { color: rgb(1, 2, 3) }</style>\n<h1>Hello</h1>\n<p>A preview.</p>\n<script>document.title = 'pwned'</script>\n```\n"
DRAWING: Final = (
    '```svg\n<svg xmlns="http://www.w3.org/2000/svg" width="200" height="80">'
    '<rect width="200" height="80" fill="teal"/><text x="20" y="45" fill="white">A drawing</text></svg>\n```\n'
)


def drawn(screen: Screen, number: int = 0) -> FrameLocator:
    """The inside of a preview."""
    return screen.log.locator("iframe.sandboxed").nth(number).content_frame


@pytest.mark.parametrize("look", [{}, {**PHONE, "locale": "zh-CN", "color_scheme": "dark"}])
def test_a_diagram_is_drawn_by_itself_and_html_and_svg_when_asked(visit: Visit, look: dict[str, Any]) -> None:
    screen = visit(**look).open()
    screen.say(f"echo:{FLOW}\n{PAGE}\n{DRAWING}\nthe end")
    screen.sees("the end")
    figures = screen.answer().locator("figure.code")
    expect(drawn(screen).locator("svg")).to_contain_text("Run the tool")
    expect(screen.log.locator("iframe.sandboxed")).to_have_count(1)
    for number, inside in ((1, "h1"), (2, "svg rect")):
        figures.nth(number).locator("[aria-pressed=false]").first.click()
        expect(drawn(screen, number).locator(inside)).to_be_visible()
    assert drawn(screen, 1).locator("h1").evaluate("(one) => getComputedStyle(one).color") == "rgb(1, 2, 3)"
    expect(figures.nth(1).locator(".preview-note")).to_be_visible()  # it says that scripts were left out
    expect(figures.nth(2).locator(".preview-note")).to_have_count(0)
    box = figures.nth(0).locator("iframe").bounding_box()
    assert box is not None
    assert box["height"] > 60
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    figures.nth(0).locator("[aria-pressed=true]").first.click()  # back to the code
    expect(figures.nth(0).locator("pre")).to_contain_text("flowchart LR")
    expect(figures.nth(0).locator("iframe")).to_have_count(0)


def test_what_cannot_be_drawn_says_so_and_stays_code(visit: Visit) -> None:
    screen = visit().open()
    edges = " --> ".join(" & ".join(f"{side}{n}" for n in range(20)) for side in "ab")  # 400 of them
    broken = "flowchart LR\n  A[Ask --> B"
    screen.say(
        f'echo:```mermaid\n{broken}\n```\n\n```mermaid\npie\n  "a" : 1\n```\n\n```mermaid\nflowchart LR\n{edges}\n```\n\nthe end'
    )
    screen.sees("the end")
    figures = screen.answer().locator("figure.code")
    for number, words in ((0, "Parse error"), (1, "not drawn here"), (2, "edges")):
        expect(figures.nth(number).locator(".preview-problem")).to_contain_text(words)
        expect(figures.nth(number).locator("pre")).to_be_visible()


# What a preview may not do ----------------------------------------------------------------------------------------------

HOSTILE: Final = {
    "script": "<script>parent.postMessage('out', '*'); new Image().src = '{there}/script'; window.pwned = 1</script>",
    "handler": "<img src=x onerror=\"new Image().src = '{there}/handler'; window.pwned = 1\">",
    "scripting link": "<a href=\"javascript:location='{there}/js'\">press</a>",
    "image": "<img src='{there}/image'>",
    "image set": "<img srcset='{there}/set 1x' src='data:,'>",
    "style": "<style>@import url({there}/import); body { background: url({there}/background) }</style>",
    "style of an element": "<p style='background-image: url({there}/inline)'>x</p>",
    "font": "<style>@font-face { font-family: x; src: url({there}/font) } p { font-family: x }</style><p>x</p>",
    "stylesheet": "<link rel=stylesheet href='{there}/sheet'>",
    "video": "<video autoplay src='{there}/video' poster='{there}/poster'></video>",
    "frame": "<iframe src='{there}/frame'></iframe>",
    "frame of text": "<iframe srcdoc=\"<img src='{there}/srcdoc'>\"></iframe>",
    "object": "<object data='{there}/object'></object><embed src='{there}/embed'>",
    "refresh": "<meta http-equiv=refresh content='0;url={there}/refresh'>",
    "our server": "<img src='{here}/canary.png'><link rel=stylesheet href='{here}/canary.css'>",
    "top": "<a target=_top href='{there}/top'>press</a>",
    "popup": "<a target=_blank href='{there}/popup'>press</a>",
    "form": "<form action='{there}/form' target=_top><button>press</button></form>",
    "base": "<base href='{there}/'><img src='based'>",
    "svg image": "<svg><image href='{there}/svg'/><use href='{there}/use#a'/></svg>",
    "svg animation": "<svg><a><set attributeName='href' to='{there}/set'/><text y=20>press</text></a></svg>",
    "filter": "<svg><filter id=f><feImage href='{there}/filter'/></filter><rect filter='url(#f)' width=9 height=9 /></svg>",
    "mermaid image": 'mermaid:flowchart LR\n  A@{ img: "{there}/mermaid.png", label: "x" }\n  B["<img src=\'{there}/label.png\' onerror=alert(1)>"]',
    "mermaid click": 'mermaid:flowchart LR\n  A[press]\n  click A "{there}/click" _top',
    "mermaid init": 'mermaid:%%{init: {"securityLevel": "loose", "themeCSS": "@import url({there}/theme);"}}%%\nflowchart LR\n  A["<script>window.pwned=1</script>press"]',
}
HINTS: Final = (
    "refresh",
    "frame",
    "frame of text",
    "top",
    "popup",
    "form",
    "base",
    "svg animation",
    "mermaid click",
)  # held by what is taken out as well
DRAW: Final = """
async ([module, kind, text]) => {
  const { drawPreview } = await import(module);
  document.querySelectorAll('iframe.probe').forEach((one) => one.remove());
  const frame = document.createElement('iframe');
  frame.className = 'probe';
  frame.width = 400; frame.height = 300;
  frame.setAttribute('sandbox', 'allow-scripts');
  document.body.prepend(frame);
  return await new Promise((resolve) => {
    const end = drawPreview(frame, kind, text, false, {
      onDrawn: (drawn) => resolve({ ...drawn, end: String(end).length }),
      onFailed: (reason) => resolve({ failed: reason }),
    });
  });
}
"""

PRESS: Final = """() => {
  for (const one of document.querySelectorAll('a, button, text, .node')) one.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
}"""


class Drawing:
    """Draws in a tab of the real page, as a code block does."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.page = bench, bench.page
        self.module = bench.chunk("src/preview/drawPreview.ts")

    def draw(self, kind: str, text: str) -> dict[str, Any]:
        """Draw it, press what can be pressed, and wait a little."""
        result: dict[str, Any] = self.page.evaluate(DRAW, [self.module, kind, text])
        with suppress(Error):  # a frame that was left
            self.inside(PRESS)
        self.page.wait_for_timeout(150)
        return result

    def inside(self, script: str) -> Any:
        """What the document in the frame is."""
        return self.page.main_frame.child_frames[0].evaluate(script)


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with a_browser(playwright) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    listener = Canary()
    yield listener
    listener.close()


def _serve(page: Page, frame: str, policy: str) -> None:
    def answer(route: Route) -> None:
        route.fulfill(body=frame, content_type="text/html", headers={"content-security-policy": policy})

    page.route("**/sandbox/preview.html", answer)


def _uncleaned(frame: str) -> str:
    assert "function clean(root) {\n" in frame
    return frame.replace("function clean(root) {\n", "function clean(root) {\n  return false;\n")


@pytest.fixture(params=["whole", "bare", "lax"])
def drawing(rig: Rig, browser: Browser, request: pytest.FixtureRequest) -> Iterator[tuple[str, Drawing]]:
    context = browser.new_context()
    bench = Bench(rig, context.new_page())
    bench.page.evaluate("localStorage.secret = 'secret'; document.cookie = 'secret=yes'")
    uncleaned = _uncleaned(bench.read("preview.html"))
    if request.param != "whole":
        _serve(
            bench.page,
            uncleaned,
            preview_csp(uncleaned.encode()) if request.param == "bare" else f"{LAX}; style-src * 'unsafe-inline'",
        )
    yield request.param, Drawing(bench)
    context.close()


def test_nothing_leaves_a_preview(drawing: tuple[str, Drawing], rig: Rig, canary: Canary) -> None:
    kind, place = drawing
    struck: list[str] = []
    for way, text in HOSTILE.items():
        if kind == "bare" and way in HINTS:
            continue
        canary.hits.clear()
        before, tabs = place.bench.unknown(), len(place.page.context.pages)
        language, _, rest = text.partition(":") if text.startswith("mermaid:") else ("html", "", text)
        filled = rest.replace("{there}", f"http://127.0.0.1:{canary.port}").replace("{here}", rig.url)
        place.draw(language, filled)
        is_out = bool(canary.hits) or place.bench.unknown() != before or len(place.page.context.pages) != tabs
        if is_out or (kind == "whole" and place.inside("() => window.pwned ?? null") is not None):
            struck.append(way)
        assert place.page.url == f"{rig.url}/"
    if kind == "lax":  # the probes are worth something; a script that was parsed as text runs nowhere
        assert {"handler", "image", "style", "font", "stylesheet", "frame", "svg image"} <= set(struck)
    else:
        assert struck == []
    if kind == "whole":
        assert place.inside("() => self.origin") == "null"
        script = "() => { try { return localStorage.secret } catch { return null } }"
        assert place.inside(script) is None
        assert "20000 elements" in place.draw("html", "<i></i>" * 21_000)["failed"]
        assert "200000 characters" in place.draw("html", "x" * 200_001)["failed"]


def test_a_preview_that_never_ends_is_given_up_and_the_page_goes_on(rig: Rig, browser: Browser) -> None:
    context = browser.new_context()
    place = Drawing(Bench(rig, context.new_page()))
    frame = place.bench.read("preview.html").replace(
        "async function draw(port,", "async function draw(port, never = (() => { for (;;); })(),"
    )
    _serve(place.page, frame, preview_csp(frame.encode()))
    place.page.clock.install()
    place.page.evaluate(
        """([module]) => import(module).then(({ drawPreview }) => {
          const frame = document.createElement('iframe');
          frame.setAttribute('sandbox', 'allow-scripts');
          document.body.prepend(frame);
          drawPreview(frame, 'html', '<p>x</p>', false, { onDrawn: () => (window.told = 'drawn'), onFailed: (why) => (window.told = `failed ${why}`) });
        })""",
        [place.module],
    )
    place.page.wait_for_timeout(300)
    place.page.clock.fast_forward(13_000)
    assert place.page.evaluate("told") == "failed "
    place.page.evaluate("document.querySelector('iframe').remove()")
    context.close()
