"""A page that runs code in its sandbox, and listeners that nothing in there must ever reach."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from playwright.sync_api import Browser, Page, Playwright, Route

from everturn.server.routes import js_sandbox
from everturn.server.routes.web_ui import BUILD_DIRECTORY, BUILD_VARIABLE
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import ARGUMENTS, CHROMIUM

RUN: Final = """
async ([run, files, code, limit, session]) => {
  const { run: begin } = await import(run);
  const { openFiles } = await import(files);
  const kept = await openFiles(session);
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 50);
  const began = performance.now();
  const ran = await begin(code, limit, kept);
  clearInterval(ticking);
  return { ...ran, ms: performance.now() - began, ticks };
}
"""

RUN_ALL: Final = """
async ([run, files, codes, limit, session]) => {
  const { run: begin } = await import(run);
  const { openFiles } = await import(files);
  const kept = await openFiles(session);
  return Promise.all(codes.map((code) => begin(code, limit, kept)));
}
"""


@contextmanager
def a_browser(playwright: Playwright, *more: str) -> Generator[Browser]:
    """One that leaves it to us what may be asked of this machine: newer ones ask the person first."""
    arguments = [*ARGUMENTS, "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebRTC", *more]
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
    yield chromium
    chromium.close()


class Ran(Struct):
    """What came of a run, and what the page did meanwhile."""

    failed: bool
    text: str
    console: list[str]
    ms: float = 0.0
    ticks: int = 0  # of a timer of the page, every 50 ms

    @property
    def value(self) -> Any:
        """What was returned."""
        assert not self.failed, self.text
        return json.loads(self.text)


class Canary:
    """A TCP and a UDP socket on one port: whoever sends anything there was not held."""

    def __init__(self) -> None:
        self.hits: list[bytes] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        for listen in (self._accept, self._receive):
            threading.Thread(target=listen, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            self.hits.append(b"tcp")
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(1.0)
        with connection, suppress(OSError):
            if data := connection.recv(2000):  # a browser keeps some that it has not used yet
                self.hits.append(data)
            connection.sendall(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    def _receive(self) -> None:
        while True:
            try:
                self.hits.append(b"udp " + self._udp.recv(200))
            except OSError:
                return

    def close(self) -> None:
        """Listen no more."""
        for endpoint in (self._tcp, self._udp):
            with suppress(OSError):
                endpoint.shutdown(socket.SHUT_RDWR)
            endpoint.close()


class Bench:
    """A tab of the real page, in which code is run as a call would be."""

    def __init__(self, rig: Rig, page: Page) -> None:
        self.rig, self.page = rig, page
        self._root = Path(os.environ.get(BUILD_VARIABLE) or BUILD_DIRECTORY)
        self.chunks = [self.chunk(f"src/sandbox/{name}.ts") for name in ("run", "files")]
        page.goto(rig.url)

    def chunk(self, source: str) -> str:
        """The path of a module, as it was built."""
        manifest = json.loads((self._root / ".vite" / "manifest.json").read_text())
        return f"/{manifest[source]['file']}"

    def read(self, name: str) -> str:
        """A file of the sandbox, as it was built."""
        return (self._root / "sandbox" / name).read_text()

    @property
    def frame(self) -> str:
        """The frame, as it was built."""
        return self.read("frame.html")

    def run(self, code: str, limit: int = 3000, session: str = "probes") -> Ran:
        """Run it."""
        return Ran(**self.page.evaluate(RUN, [*self.chunks, code, limit, session]))

    def run_all(self, codes: Mapping[str, str], limit: int = 10_000, session: str = "probes") -> dict[str, Ran]:
        """Run them side by side, each in a frame of its own; what came of each, by its name."""
        rans = self.page.evaluate(RUN_ALL, [*self.chunks, list(codes.values()), limit, session])
        return dict(zip(codes, [Ran(**ran) for ran in rans], strict=True))

    def serve_instead(self, frame: str, policy: str = "") -> None:
        """Let the page have another frame: with its own policy as we would make it, or with this one."""
        headers = {"content-security-policy": policy or js_sandbox.sandbox_csp(frame.encode())}

        def answer(route: Route) -> None:
            route.fulfill(body=frame, content_type="text/html", headers=headers)

        self.page.route("**/sandbox/frame.html", answer)

    def unknown(self) -> int:
        """How often the server was asked for something that is not there."""
        text = str(self.page.request.get(f"{self.rig.url}/metrics", headers=self._key).text())
        found = re.findall(r'^everturn_http_requests_total\{[^}]*"unknown"[^}]*\} (\S+)', text, re.MULTILINE)
        return int(sum(map(float, found)))

    @property
    def _key(self) -> dict[str, str]:
        return {"authorization": f"Bearer {(self.rig.home / 'token').read_text().strip()}"}


def bare(frame: str) -> str:
    """The same frame, in which nothing is taken away from the code: the policy and the Worker alone have to hold."""
    assert "    strip();\n    ration();\n" in frame
    return frame.replace("    strip();\n    ration();\n", "")


LAX: Final = "script-src 'self' http: blob: data: 'unsafe-eval' 'unsafe-inline'; connect-src *; worker-src * blob:"

NO_WORKER: Final = """<!doctype html><script>
addEventListener("message", ({ ports: [port] }) => {
  port.onmessage = async ({ data }) => {
    port.postMessage({ kind: "started" });
    try {
      const value = await Object.getPrototypeOf(async () => 0).constructor(data.code)();
      port.postMessage({ kind: "done", value: JSON.stringify(value ?? null) });
    } catch (error) {
      port.postMessage({ kind: "failed", why: String(error) });
    }
  };
  port.postMessage({ kind: "ready" });
});
</script>"""
