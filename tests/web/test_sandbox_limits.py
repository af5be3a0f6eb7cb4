"""What code in a page's sandbox can use up: its time, its output, its memory, and nothing of the page's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Playwright

from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.sandbox_page import RUN, Bench, Ran, a_browser

LIMIT: Final = 400  # milliseconds
GRACE: Final = 1000

ENDLESS: Final = {
    "a loop": "for (;;);",
    "a loop that says much": "for (;;) console.log('x'.repeat(1e5))",
    "a loop that asks for files": "for (;;) files.list('').catch(() => 0)",
    "microtasks": "const f = () => Promise.resolve().then(f); f(); await new Promise(() => 0)",
    "awaiting for ever": "for (;;) await 0",
    "timers": "const f = () => { setTimeout(f, 0); setTimeout(f, 0) }; f(); await new Promise(() => 0)",
    "a promise that never comes": "await new Promise(() => 0)",
    "a thenable that never comes": "return { then() {} }",
    "a thenable that is its own": "const a = { then(go) { go(a) } }; return a",
    "a getter that never ends": "return { get a() { for (;;); } }",
    "a proxy that never ends": "return new Proxy({}, { ownKeys() { for (;;); } })",
    "a name that never ends": "const e = new Error(); Object.defineProperty(e, 'message', { get() { for (;;); } }); throw e",
    "an iterator that never ends": "return new Set([...(function* () { for (;;) yield 1; })()])",
    "an expression that backtracks": "return /^(a+)+$/.test('a'.repeat(60) + 'b')",
    "a large number": "return String(3n ** 30000000n)",
}

SHOWN: Final[dict[str, tuple[str, Any]]] = {
    "nothing": ("1", None),
    "a tree": ("return { a: [1, 'x', true, null], b: { c: 1.5 } }", {"a": [1, "x", True, None], "b": {"c": 1.5}}),
    "numbers": ("return [NaN, Infinity, -0, 10n ** 20n]", ["NaN", "Infinity", 0, "100000000000000000000n"]),
    "a circle": ("const a = { b: {} }; a.b.a = a; return a", {"b": {"a": "[circular]"}}),
    "the same twice": ("const a = [1]; return [a, a]", [[1], [1]]),
    "a function": ("return [function f() {}, Symbol('s'), undefined]", ["[function f]", "Symbol(s)", None]),
    "a map and a set": ("return [new Map([['a', 1]]), new Set([1, 2])]", [[["a", 1]], [1, 2]]),
    "a date": ("return new Date(0)", "1970-01-01T00:00:00.000Z"),
    "bytes": ("return new Uint8Array([1, 2])", [1, 2]),
    "an error": ("return new TypeError('no')", "TypeError: no"),
    "a proxy that refuses": ("return new Proxy({}, { ownKeys() { throw 1 } })", "[unreadable]"),
    "a getter that throws": ("return [{ get a() { throw 1 } }, 2]", ["[unreadable]", 2]),
    "a name that is special": ("return JSON.parse('{\"__proto__\": 1}')", {"__proto__": 1}),
    "a thenable": ("return { then(go) { go(7) } }", 7),
    "half a character": ("return '\\ud800'", "\ud800"),
    "what was spoilt": ("Object.prototype.kind = 'done'; Array.prototype.toJSON = () => 1; return { a: 2 }", {"a": 2}),
}

FAILING: Final = {
    "null": ("throw null", "it threw null"),
    "an object": ("throw { a: 1 }", 'it threw {"a":1}'),
    "an error, with its line": ("\n\nthrow new RangeError('far')", "RangeError: far (line 3)"),
    "no code at all": ("let = ;", "SyntaxError: Unexpected token ';'"),
    "an error that cannot be shown": ("throw new Proxy(new Error('x'), { get() { throw 1 } })", "it threw something"),
    "promise": ("await Promise.reject(new Error('late'))", "Error: late"),
    "nothing that is there": ("document.title", "ReferenceError: document is not defined (line 1)"),
    "half of a function": ("} , async () => { return 1", "SyntaxError"),
}


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with a_browser(playwright, "--js-flags=--max-old-space-size=512") as chromium:
        yield chromium


@pytest.fixture(scope="module")
def bench(rig: Rig, browser: Browser) -> Bench:
    return Bench(rig, browser.new_page())


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_does_not_end_is_ended_and_the_page_goes_on(bench: Bench, kind: str) -> None:
    usual = min(bench.run("return 1").ms for _ in range(2))

    def is_live(ran: Ran) -> bool:
        return ran.ticks >= 0.8 * (ran.ms / 50 - 1) and ran.ms - usual < LIMIT + GRACE

    ran = bench.run(ENDLESS[kind], LIMIT)
    for _ in range(2):  # whatever else this machine does may hold a page up, and not three times
        ran = ran if is_live(ran) else bench.run(ENDLESS[kind], LIMIT)
    assert ran.failed
    assert f"stopped after {LIMIT} ms" in ran.text
    assert is_live(ran), ran
    assert bench.run("return 'well'").value == "well"


def test_whatever_is_returned_is_shown_as_json(bench: Bench) -> None:
    rans = bench.run_all({kind: code for kind, (code, _) in SHOWN.items()})
    assert {kind: ran.value for kind, ran in rans.items()} == {kind: value for kind, (_, value) in SHOWN.items()}


def test_whatever_is_thrown_is_reported(bench: Bench) -> None:
    rans = bench.run_all({kind: code for kind, (code, _) in FAILING.items()})
    assert [kind for kind, ran in rans.items() if not ran.failed] == []
    assert {kind: ran.text for kind, ran in rans.items() if FAILING[kind][1] not in ran.text} == {}


@pytest.mark.parametrize(
    "code",
    [
        "return 'x'.repeat(5e7)",
        "return new Array(1e6).fill('abc')",
        "return Object.fromEntries(new Array(1e5).fill(0).map((_, at) => ['k' + at, at]))",
        "return '\\u0000'.repeat(1e6)",
        "let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; return a",
        "return new Map(new Array(1e5).fill(0).map((_, at) => [at, at]))",
        "const a = []; for (let i = 0; i < 40; i++) a.push(a.slice()); return a",
    ],
)
def test_a_large_result_is_cut(bench: Bench, code: str) -> None:
    ran = bench.run(code, 10_000)
    assert not ran.failed, ran.text
    assert len(ran.text) <= 64 * 1024
    assert "more" in ran.text or "deeper" in ran.text


def test_the_console_is_kept_up_to_a_length(bench: Bench) -> None:
    ran = bench.run(
        "console.log('a', { b: [1n] }); console.error(new Error('c')); console.assert(false, 'd'); return 1"
    )
    assert ran.console == ['a {"b":["1n"]}', '"Error: c"', "assertion failed d"]
    ran = bench.run("for (let i = 0; i < 1e5; i++) console.log('x'.repeat(500)); return 1")
    assert ran.value == 1
    assert 10 < len(ran.console) <= 200
    assert sum(map(len, ran.console)) <= 16 * 1024
    ran = bench.run("setTimeout(() => { throw new Error('aside') }); await new Promise((go) => setTimeout(go, 50))")
    assert "aside" in ran.console[0]


@pytest.mark.parametrize(
    "code",
    [
        "postMessage({ kind: 'done', value: '\"forged\"' })",
        "self.dispatchEvent(new MessageEvent('message', { data: { code: 'return 1' } }))",
        "MessagePort.prototype.postMessage = function (said) { this.forged = said }",
        "Object.prototype.value = '\"forged\"'; Object.prototype.id = 1; Object.prototype.ok = true",
        "Promise.prototype.then = () => 0; Function.prototype.call = Function.prototype.apply = () => 'forged'",
        "JSON.stringify = () => '\"forged\"'; String = () => 'forged'",
        "Map.prototype.get = () => ({ resolve() {}, reject() {} }); Set.prototype.has = () => true",
    ],
)
def test_a_result_is_not_forged_by_what_is_spoilt(bench: Bench, code: str) -> None:
    assert bench.run(f"try {{ {code} }} catch {{ }}\nreturn 'mine'").value == "mine"


def test_runs_know_nothing_of_each_other(bench: Bench) -> None:
    assert bench.run("globalThis.kept = 1; Object.prototype.kept = 2; return kept").value == 1
    assert bench.run("return typeof kept").value == "undefined"


@pytest.mark.parametrize(
    "code",
    [
        "const a = []; for (;;) a.push(new Uint8Array(1e7).fill(1))",
        "const a = new Uint8Array(1e7), b = []; for (;;) b.push(a.slice())",
        "const a = new Uint8Array(1e7), b = []; for (;;) b.push(a.buffer.slice(0))",
        "const a = new Uint8Array(1), b = []; for (;;) b.push(new a.constructor(1e7))",
        "const a = []; for (;;) a.push(new ArrayBuffer(10, { maxByteLength: 1e9 }))",
        "const a = []; for (;;) a.push(Float64Array.from({ length: 1e6 }))",
        "const a = [], e = new TextEncoder(); for (;;) a.push(e.encode('x'.repeat(1e7)))",
    ],
)
def test_buffers_are_rationed(bench: Bench, code: str) -> None:
    ran = bench.run(code, 60_000)
    assert ran.failed
    assert "bytes of buffers" in ran.text


def test_a_heap_that_is_full_ends_the_call_and_not_the_page(rig: Rig, browser: Browser) -> None:
    """The tab is watched from another one: whoever drives the browser takes a frame's end for that of its page."""
    context = browser.new_context()
    page, watching = context.new_page(), context.new_page()
    bench = Bench(rig, page)
    watching.goto(rig.url)
    # Its process is gone well before the limit, and nobody says so.
    code = "const a = []; for (;;) a.push(new Array(1e6).fill(Math.random()))"
    script = f"(given) => {{ ({RUN})(given).then((ran) => localStorage.setItem('ran', JSON.stringify(ran))) }}"
    page.evaluate(script, [*bench.chunks, code, 6000, "heap"])

    def ran() -> Any:
        return json.loads(watching.evaluate("localStorage.getItem('ran')") or "null")

    wait_until_sync(lambda: ran() is not None, 60.0, "the page did not live to tell")
    assert ran()["failed"]
    assert "stopped after 6000 ms" in ran()["text"]
    assert ran()["ticks"] >= 0.8 * (ran()["ms"] / 50 - 1)
    context.close()
