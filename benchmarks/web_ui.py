"""What the web UI costs a browser: bytes until one can write, a long answer, a long conversation, many approvals.

    python benchmarks/web_ui.py --make /tmp/long.pack               # once: ten thousand messages take minutes
    python benchmarks/web_ui.py [--write] [--short] [--from /tmp/long.pack]

A real server with a scripted model, and headless Chromium with a login. `CPU` is the time of the tab's main thread as Chromium counts
it, `clock` the time since the navigation. `--short` takes 300 pieces, 200 messages and 30 approvals, and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from msgspec import Struct
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # also where it is started as a file

from tests.helpers.browser import Visitor, visitor  # noqa: E402
from tests.helpers.scripted_server.server import Rig, a_rig  # noqa: E402
from tests.helpers.waiting import wait_until_sync  # noqa: E402
from tests.web import past_conversation  # noqa: E402
from tests.web.page_measurements import SHOWN, Meter, Sizes  # noqa: E402
from tests.web.test_many_approvals import FIRST_ROW, ask, open_gates  # noqa: E402

from tools.environment import describe_load  # noqa: E402

PAGE = ROOT / "benchmarks" / "results" / "web-ui.md"
KB = 1024
QUIET = 500  # milliseconds in which a page fetches what it fetches by itself


class Figure(Struct, frozen=True):
    """A line of the table; without a goal it is there to be compared."""

    name: str
    seen: float
    unit: str
    goal: float | None = None

    @property
    def row(self) -> str:
        """As Markdown."""
        digits = 0 if self.unit in ("requests", "actions", "rows", "KB") else 2
        missed = ", **missed**" if self.goal is not None and self.seen > self.goal else ""
        goal = f"{self.goal:,.{digits}f} {self.unit}{missed}" if self.goal is not None else ""
        return f"| {self.name} | {self.seen:,.{digits}f} {self.unit} | {goal} |"


class Counts(Struct, frozen=True):
    """How much of everything."""

    pieces: int = 3_000
    messages: int = 10_000
    gates: int = 100
    inbox: int = 1_000


class Bench:
    """A rig, a browser, and a login that every visitor has."""

    def __init__(self, rig: Rig, browser: Browser, counts: Counts, packed: bytes) -> None:
        self.rig, self.browser, self.counts, self._packed = rig, browser, counts, packed
        first = visitor(rig, browser)
        first.log_in()
        self._login = first.context.storage_state()
        first.context.close()

    def _come(self) -> Visitor:
        return visitor(self.rig, self.browser, self._login)

    def _transfer(self, address: str, ready: str) -> tuple[float, float]:
        """KB with all headers, and requests, from an empty cache until a page is drawn; without those of the API."""
        come = self._come()
        page = come.context.new_page()
        sizes = Sizes(page)
        page.goto(f"{self.rig.url}/{address}")
        page.locator(ready).first.wait_for(timeout=60_000)
        page.wait_for_timeout(QUIET)
        own = [size for path, size in sizes.bytes.items() if not path.startswith("/api/")]
        come.context.close()
        return sum(own) / KB, len(own)

    def _until(self, address: str, script: str) -> tuple[Page, float, float]:
        """A page, the seconds of CPU and those by the clock until the script has set `shownAt`."""
        page = self._come().context.new_page()
        page.add_init_script(script)
        meter = Meter(page)
        page.goto(f"{self.rig.url}/{address}")
        wait_until_sync(lambda: page.evaluate("window.shownAt ?? 0"), 120)
        return page, meter.since()["TaskDuration"], page.evaluate("window.shownAt") / 1000

    def bytes(self) -> list[Figure]:
        """What is fetched."""
        session = self.rig.say("parallel pace 0")["session"]
        self.rig.wait_idle(session, 30)
        first, requests = self._transfer("", "textarea.composer-text")
        talk, _ = self._transfer(f"#/s/{session}", ".tool-card")
        return [
            Figure("first look, with all headers", first, "KB", 60),
            Figure("requests of the first look", requests, "requests"),
            Figure("a conversation with tools, with all headers", talk, "KB", 120),
        ]

    def stream(self) -> list[Figure]:
        """A long answer in pieces."""
        screen = self._come().open()
        screen.say("hello")
        screen.wait_idle()
        meter = Meter(screen.page)
        screen.say(f"long {self.counts.pieces} pace 1")
        screen.wait_idle(120)
        used = meter.since()
        screen.page.context.close()
        name = f"{self.counts.pieces:,} pieces of an answer"
        return [
            Figure(f"{name}: script", used["ScriptDuration"], "s", 1.0),
            Figure(f"{name}: main thread", used["TaskDuration"], "s"),
        ]

    def conversation(self) -> list[Figure]:
        """Many messages."""
        session = past_conversation.bring_packed(self.rig, self._packed)
        page, cpu, clock = self._until(f"#/s/{session}", f"({SHOWN})({past_conversation.LAST!r})")
        page.wait_for_timeout(1500)  # what is drawn in idle time
        scrolling = Meter(page)
        page.mouse.move(700, 400)
        for _ in range(40):
            page.mouse.wheel(0, -900)
            page.wait_for_timeout(25)
        page.wait_for_timeout(300)
        scrolled = scrolling.since()["TaskDuration"]
        typing = Meter(page)
        page.locator("textarea.composer-text").press_sequentially("Twenty characters it")
        typed = typing.since()["TaskDuration"]
        heap = page.evaluate("performance.memory.usedJSHeapSize") / KB / KB
        page.context.close()
        name = f"{self.counts.messages:,} messages"
        return [
            Figure(f"{name}: end painted, CPU", cpu, "s"),
            Figure(f"{name}: end painted, clock", clock, "s"),
            Figure(f"{name}: 40 turns of the wheel, CPU", scrolled, "s"),
            Figure(f"{name}: 20 letters typed, CPU", typed, "s"),
            Figure(f"{name}: heap", heap, "MB"),
        ]

    def approvals(self) -> list[Figure]:
        """Many calls of one step, allowed at once; and an inbox of many."""
        count = self.counts.gates
        before = len(self.rig.deeds("mail"))
        session = ask(self.rig, count)
        wait_until_sync(lambda: len(open_gates(self.rig, session)) == count, 120)
        page = self._come().open(session).page
        expect(page.locator("[data-gate-row]")).to_have_count(count, timeout=60_000)
        actions = 0
        meter = Meter(page)
        started = time.monotonic()
        for label in (f"Allow all {count}", f"Allow {count} calls once"):
            page.get_by_role("button", name=label).click()
            actions += 1
            if actions == 1:
                expect(page.locator(".gate-batch .confirm")).to_have_attribute("data-steady", "true", timeout=60_000)
        wait_until_sync(lambda: len(self.rig.deeds("mail")) == before + count, 120)
        expect(page.get_by_text(f"{count} calls allowed")).to_be_visible(timeout=60_000)
        answered, used = time.monotonic() - started, meter.since()["TaskDuration"]
        page.context.close()
        return [
            Figure(f"{count} parallel approvals: actions until all are answered", actions, "actions", 3),
            Figure(f"{count} parallel approvals: all calls made, clock", answered, "s"),
            Figure(f"{count} parallel approvals: CPU", used, "s"),
        ]

    def inbox(self) -> list[Figure]:
        """An inbox with many approvals: first paint."""
        each = 100
        sessions = [ask(self.rig, each) for _ in range(self.counts.inbox // each)]
        for session in sessions:
            wait_until_sync(lambda session=session: len(open_gates(self.rig, session)) == each, 300)
        page, cpu, clock = self._until("#/inbox", f"({FIRST_ROW})()")
        rows = page.locator("[data-gate-row]").count()
        page.context.close()
        name = f"inbox of {self.counts.inbox:,}"
        return [
            Figure(f"{name}: first paint, clock", clock, "s", 1.0),
            Figure(f"{name}: first paint, CPU", cpu, "s"),
            Figure(f"{name}: rows that are drawn", rows, "rows"),
        ]


def make(counts: Counts) -> bytes:
    """The long conversation, as a file that the server imports."""
    return past_conversation.pack(past_conversation.long(counts.messages))


def measure(counts: Counts, packed: bytes) -> list[Figure]:
    """Everything, on one server."""
    executable = os.environ.get("EVERTURN_CHROMIUM") or shutil.which("chromium")
    with a_rig() as rig, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"],
        )
        bench = Bench(rig, browser, counts, packed)
        figures: list[Figure] = []
        for part in (bench.bytes, bench.stream, bench.conversation, bench.approvals, bench.inbox):
            figures += (found := part())
            print("\n".join(figure.row for figure in found), flush=True)
        browser.close()
    return figures


def render(figures: list[Figure]) -> str:
    """The page of results."""
    rows = ["| what | seen | goal |", "|---|--:|--:|", *(figure.row for figure in figures)]
    return (
        "# The web UI in a browser\n\nWritten by `python benchmarks/web_ui.py --write`.\n\n"
        f"Headless Chromium with an empty cache, the server on the same machine. {describe_load()}\n\n"
        + "\n".join(rows)
        + "\n"
    )


def main() -> None:
    """Print a table, and write it with `--write`."""
    parser = argparse.ArgumentParser(prog="python benchmarks/web_ui.py", description="What the web UI costs a browser.")
    parser.add_argument("--write", action="store_true", help="write the page of results")
    parser.add_argument("--short", action="store_true", help="small numbers; writes nothing")
    parser.add_argument("--make", type=Path, help="make the long conversation, store it there, and measure nothing")
    parser.add_argument("--from", type=Path, dest="source", help="the long conversation that --make stored")
    chosen = parser.parse_args()
    counts = Counts(pieces=300, messages=200, gates=30, inbox=100) if chosen.short else Counts()
    if chosen.make:
        chosen.make.write_bytes(make(counts))
        return
    text = render(measure(counts, chosen.source.read_bytes() if chosen.source else make(counts)))
    print(text)
    if chosen.write and not chosen.short:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
