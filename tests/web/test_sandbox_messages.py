"""Code in a page's sandbox spoils the functions that its messages are made with: what reaches the page, and how much?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Playwright

from tests.helpers.scripted_server.server import Rig
from tests.web.sandbox_page import Bench, a_browser

LIMIT: Final = 1000  # milliseconds
HUGE: Final = 20_000_000  # characters

SPOILT: Final = {
    "lines of any length": f"String = () => 'x'.repeat({HUGE}); for (let i = 0; i < 300; i++) console.log(i); return 1",
    "lines that are no text": "String = () => ({ kind: 'done', value: '2' }); console.log(1); return 1",
    "lines by their join": f"Array.prototype.join = () => 'x'.repeat({HUGE}); for (;;) console.log(1, 2)",
    "a result of any length": f"JSON.stringify = () => 'x'.repeat({HUGE}); String.prototype.slice = () => 'y'.repeat({HUGE}); return 'a'",
    "what is asked of files": (
        f"String = () => 'x'.repeat({HUGE}); Array.prototype.map = () => new Array(1e6).fill('y');"
        "for (let i = 0; i < 50; i++) files.read('a').catch(() => 0); return 1"
    ),
    "promises": "self.Promise = class { constructor(run) { run(() => 0, () => 0) } }; files.read('a'); return 1",
    "maps": "Map.prototype.get = () => ({ resolve() {}, reject() {} }); await files.list('').catch(() => 0)",
    "objects": (
        "for (const name of ['kind', 'value', 'line', 'why', 'id', 'op', 'given'])"
        " Object.defineProperty(Object.prototype, name, { get: () => 'done', set() {}, configurable: true }); return 1"
    ),
    "binding": "Function.prototype.bind = Function.prototype.call = Function.prototype.apply = () => 0; console.log(1); return 1",
    "stacks": (
        "let seen = []; Error.prepareStackTrace = (_, sites) => (seen.push(...sites.flatMap((at) => [at.getThis(), at.getFunction()])), '');"
        "new Error().stack; console.log({ get a() { new Error().stack; return 1 } });"
        "return seen.some((one) => one && one.constructor?.name === 'MessagePort')"
    ),
}

FORGING: Final = """
async ([run, files]) => {
  const { run: begin } = await import(run);
  const { openFiles } = await import(files);
  const running = begin("await new Promise((go) => setTimeout(go, 400)); return 'own'", 3000, await openFiles("probes"));
  const frame = [...document.querySelectorAll("iframe")].at(-1);
  await new Promise((go) => frame.addEventListener("load", go));
  const { port1, port2 } = new MessageChannel();
  const heard = [];
  port1.onmessage = ({ data }) => heard.push(data);
  frame.contentWindow.postMessage("run", "*", [port2]);
  port1.postMessage({ code: "return 'forged'", limit: 1000 });
  for (const message of [{ kind: "done", value: '"forged"' }, { kind: "failed", why: "forged" }, "run"]) {
    postMessage(message, "*");
    frame.contentWindow.postMessage(message, "*");
  }
  return [(await running).text, heard.length];
}
"""


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with a_browser(playwright) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def bench(rig: Rig, browser: Browser) -> Bench:
    return Bench(rig, browser.new_page())


@pytest.mark.parametrize("kind", SPOILT)
def test_spoilt_functions_get_no_more_than_bounded_text_out(bench: Bench, kind: str) -> None:
    ran = bench.run(SPOILT[kind], LIMIT)
    assert len(ran.text) <= 64 * 1024
    assert len("".join(ran.console)) <= 16 * 1024
    assert ran.text not in ("2", "true")
    assert bench.run("return 'well'").value == "well"


def test_a_message_to_the_page_or_the_frame_is_no_word_of_the_run(bench: Bench) -> None:
    assert bench.page.evaluate(FORGING, bench.chunks) == ['"own"', 0]
