"""What code in a page's sandbox can reach: no listener, no storage, nothing of the page.

Each way out is tried three times: as it is served; with all the functions that are taken away still there, so that the
policy alone holds; and, to see that the probe would notice, in frames that are walled in badly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Playwright

from everturn.server.routes import js_sandbox
from tests.helpers.scripted_server.server import Rig
from tests.web.sandbox_page import LAX, NO_WORKER, Bench, Canary, a_browser, bare

WAYS: Final = {
    "fetch": "await fetch('{there}/fetch')",
    "fetch without cors": "await fetch('{there}/nocors', {mode: 'no-cors'})",
    "fetch that outlives": "await fetch('{there}/alive', {mode: 'no-cors', keepalive: true, method: 'POST', body: 'x'})",
    "fetch of our server": "await fetch('{here}/canary', {mode: 'no-cors'})",
    "fetch with a target": "await fetch(new Request('{there}/request', {mode: 'no-cors', targetAddressSpace: 'local'}))",
    "fetch later": "fetchLater('{there}/later', {activateAfter: 0})",
    "xhr": "const x = new XMLHttpRequest(); x.open('GET', '{there}/xhr'); x.send()",
    "xhr that blocks": "const x = new XMLHttpRequest(); x.open('GET', '{there}/sync', false); x.send()",
    "web socket": "new WebSocket('ws://{address}/ws')",
    "web socket stream": "await new WebSocketStream('ws://{address}/wss').opened",
    "event source": "new EventSource('{there}/events')",
    "web transport": "await new WebTransport('https://{address}/wt').ready",
    "peer connection": (
        "const p = new RTCPeerConnection({iceServers: [{urls: 'stun:{address}'}]}); p.createDataChannel('x');"
        "await p.setLocalDescription(await p.createOffer())"
    ),
    "beacon": "navigator.sendBeacon('{there}/beacon', 'x')",
    "scripts": "importScripts('{there}/a.js')",
    "scripts of our server": "importScripts('{here}/canary.js')",
    "module": "await import('{there}/b.js')",
    "module of our server": "await import('{here}/canary.mjs')",
    "module of text": 'await import(\'data:text/javascript,export default fetch("{there}/data", {mode: "no-cors"})\')',
    "module of a blob": (
        "const text = `fetch('{there}/blob', {mode: 'no-cors'})`;"
        "await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})))"
    ),
    "worker": "new Worker('{there}/worker.js')",
    "worker of our server": "new Worker('{here}/canary-worker.js')",
    "worker in a worker": (
        "const text = `fetch('{there}/nested', {mode: 'no-cors'})`;"
        "new Worker(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})))"
    ),
    "shared worker": "new SharedWorker('{here}/canary-shared.js')",
    "service worker": "await navigator.serviceWorker.register('{here}/canary-service.js')",
    "cache": "await (await caches.open('x')).add('{there}/cache')",
    "font": "await new FontFace('x', 'url({there}/font)').load()",
    "going away": "location.href = '{there}/location'",
    "opening": "open('{there}/open')",
    "posting a form": "const f = document.createElement('form'); f.action = '{there}/form'; document.body.append(f); f.submit()",
    "preconnecting": (
        "const l = document.createElement('link'); l.rel = 'preconnect'; l.href = '{there}'; document.head.append(l)"
    ),
    "image": "new Image().src = '{there}/image'",
    "style": (
        "const s = document.createElement('style'); s.textContent = '@import url({there}/css)'; document.head.append(s)"
    ),
    "code within code": "await new Function(\"return fetch('{there}/function', {mode: 'no-cors'})\")()",
    "code of a timer": "setTimeout(\"fetch('{there}/timer', {mode: 'no-cors'})\", 0)",
    "streamed wasm": "await WebAssembly.compileStreaming(fetch('{there}/wasm', {mode: 'no-cors'}))",
}

HOLDINGS: Final = {
    "an origin": "if (self.origin !== 'null') return self.origin",
    "local storage": "return localStorage.getItem('secret')",
    "session storage": "return sessionStorage.getItem('secret')",
    "cookies": "return document.cookie",
    "the cookie store": "return (await cookieStore.getAll()).map((one) => one.name).join()",
    "databases": (
        "return await new Promise((resolve, reject) => { const asked = indexedDB.open('secret');"
        "asked.onsuccess = () => resolve('opened'); asked.onerror = () => reject(asked.error) })"
    ),
    "caches": "return String(await caches.keys()) || 'caches'",
    "the file system": "return (await navigator.storage.getDirectory()).name || 'root'",
    "locks": "return (await navigator.locks.query()).held.length + ' locks'",
    "the page": "return parent.document.title || 'page'",
    "the top": "return top.document.title || 'top'",
    "the login": "return JSON.stringify(await (await fetch('{here}/api/me')).json())",
}

AFTER: Final = "\n;await new Promise((go) => setTimeout(go, 250)); return 'after'"


def filled(code: str, rig: Rig, canary: Canary) -> str:
    address = f"127.0.0.1:{canary.port}"
    return code.replace("{there}", f"http://{address}").replace("{address}", address).replace("{here}", rig.url)


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    listener = Canary()
    yield listener
    listener.close()


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with a_browser(playwright) as chromium:
        yield chromium


@pytest.fixture(scope="module", params=["whole", "bare"])
def bench(rig: Rig, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The page with the frame as it is, and with one that leaves everything to the policy."""
    context = browser.new_context()
    tab = Bench(rig, context.new_page())
    tab.page.evaluate("localStorage.secret = sessionStorage.secret = 'secret'; document.cookie = 'secret=yes'")
    if request.param == "bare":
        tab.serve_instead(bare(tab.frame))
    yield tab
    context.close()


@pytest.mark.parametrize("way", WAYS)
def test_nothing_leaves_the_sandbox(bench: Bench, rig: Rig, canary: Canary, way: str) -> None:
    canary.hits.clear()
    before = bench.unknown()
    bench.run(filled(WAYS[way], rig, canary) + AFTER, 1500)
    assert bench.unknown() == before
    assert canary.hits == []
    assert bench.page.url == f"{rig.url}/"


@pytest.mark.parametrize("holding", HOLDINGS)
def test_nothing_is_held_in_the_sandbox(bench: Bench, rig: Rig, canary: Canary, holding: str) -> None:
    ran = bench.run(filled(HOLDINGS[holding], rig, canary))
    assert ran.failed or ran.value is None, ran.text


def test_a_channel_of_the_same_name_is_another_one(bench: Bench) -> None:
    bench.page.evaluate("self.heard = []; new BroadcastChannel('x').onmessage = ({ data }) => heard.push(data); 0")
    bench.run("new BroadcastChannel('x').postMessage('from within')" + AFTER)
    assert bench.page.evaluate("heard") == []


def test_a_page_that_is_not_ours_cannot_have_the_frame_and_ours_cannot_be_framed(rig: Rig, bench: Bench) -> None:
    answer = bench.page.request.get(rig.url + js_sandbox.PATH)
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers


# The probes, where they have to strike ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["lax", "without a worker"])
def weak(rig: Rig, browser: Browser, request: pytest.FixtureRequest) -> Iterator[tuple[str, Bench]]:
    """A frame whose policy forgets what it is for, or that runs code where there is a document."""
    context = browser.new_context()
    # And as if the attribute of the frame had been forgotten too.
    context.add_init_script(
        "const own = Element.prototype.setAttribute;"
        "Element.prototype.setAttribute = function (name, value) { if (name !== 'sandbox') own.call(this, name, value) }"
    )
    tab = Bench(rig, context.new_page())
    tab.page.evaluate("localStorage.secret = sessionStorage.secret = 'secret'; document.cookie = 'secret=yes'")
    frame = bare(tab.frame) if request.param == "lax" else NO_WORKER
    tab.serve_instead(frame, LAX)
    yield request.param, tab
    context.close()


THERE: Final = {
    "lax": (
        *("fetch", "fetch without cors", "fetch of our server", "xhr", "xhr that blocks", "web socket", "event source"),
        *("scripts", "scripts of our server", "module", "module of our server", "worker in a worker"),
        *("code within code", "code of a timer", "module of a blob"),
    ),
    "without a worker": (
        "peer connection",
        "image",
        "beacon",
        "style",
        "posting a form",
        "going away",
    ),
}
HELD: Final = {
    "lax": ("an origin", "databases", "caches", "the file system", "locks"),
    "without a worker": ("local storage", "session storage", "cookies", "the page", "the top"),
}


def test_the_probes_strike_where_the_wall_is_weak(weak: tuple[str, Bench], rig: Rig, canary: Canary) -> None:
    kind, bench = weak
    silent: list[str] = []
    for way in THERE[kind]:
        canary.hits.clear()
        before = bench.unknown()
        bench.run(filled(WAYS[way], rig, canary) + AFTER, 1500)
        if not canary.hits and bench.unknown() == before:
            silent.append(way)
        bench.page.wait_for_url(f"{rig.url}/")
    empty = [holding for holding in HELD[kind] if (ran := bench.run(HOLDINGS[holding])).failed or ran.value is None]
    assert (silent, empty) == ([], [])
