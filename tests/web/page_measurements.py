"""What a tab costs, as the browser itself counts it; and what a machine can tell of whether everybody can use it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import CDPSession, Page

AXE: Final = Path(__file__).parent.parent.parent / "web" / "node_modules" / "axe-core" / "axe.min.js"
GRAVE: Final = ("serious", "critical")
SHOWN: Final = """
(text) => {
  const look = () => {
    const last = [...document.querySelectorAll('[data-message]')].at(-1);
    if (last?.textContent.includes(text)) requestAnimationFrame(() => { window.shownAt = performance.now(); });
    else requestAnimationFrame(look);
  };
  look();
}
"""


class Meter:
    """Seconds of a tab's main thread: of the processor, and not of the clock, for others may have the processor meanwhile."""

    def __init__(self, page: Page) -> None:
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        return {metric["name"]: metric["value"] for metric in self._cdp.send("Performance.getMetrics")["metrics"]}

    def since(self) -> dict[str, float]:
        """What was used since it was made: `ScriptDuration`, `TaskDuration`, `LayoutDuration`, …"""
        return {name: value - self._before.get(name, 0.0) for name, value in self._read().items()}


class Sizes:
    """Bytes that came over the wire, packed as they came, by the path they were asked for at."""

    def __init__(self, page: Page) -> None:
        self.bytes: dict[str, int] = {}
        paths: dict[str, str] = {}
        cdp = page.context.new_cdp_session(page)
        cdp.send("Network.enable")

        def began(event: dict[str, Any]) -> None:
            paths[event["requestId"]] = event["request"]["url"].partition("//")[2].partition("/")[2]

        def ended(event: dict[str, Any]) -> None:
            self.bytes["/" + paths.get(event["requestId"], "?")] = int(event["encodedDataLength"])

        on: Callable[..., Any] = cdp.on
        on("Network.requestWillBeSent", began)
        on("Network.loadingFinished", ended)


def axe(page: Page, within: str = "") -> list[str]:
    """What axe-core finds that keeps somebody from using the page, one line each."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    found: list[dict[str, Any]] = page.evaluate(
        "(within) => axe.run(within || document, { resultTypes: ['violations'] }).then((result) => result.violations)",
        within,
    )
    return [
        f"{violation['impact']} {violation['id']}: {violation['help']}: {node['html'][:160]} ({'; '.join(_why(node))})"
        for violation in found
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


def _why(node: dict[str, Any]) -> list[str]:
    return [check["message"] for kind in ("any", "all", "none") for check in node[kind]]
