"""Lighthouse on the web UI: login, a new conversation, and a conversation with tools. → benchmarks/results/lighthouse.md

    python -m tools.lighthouse --lighthouse node_modules/.bin/lighthouse [--passes 5]

It needs the npm package `lighthouse`, a built web UI and Chromium. The settings are Lighthouse's for a desktop, whose network
and processor are simulated. The median of the passes counts for performance, the worst for accessibility.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import sync_playwright
from tests.helpers.scripted_server.server import Rig, a_rig

from tools.environment import ROOT, describe_load

PAGE: Final = ROOT / "benchmarks" / "results" / "lighthouse.md"
CATEGORIES: Final = "performance,accessibility,best-practices"
ATTEMPTS: Final = 3
TIMES: Final = {"first-contentful-paint": "FCP", "largest-contentful-paint": "LCP", "total-blocking-time": "TBT"}


def audit(command: str, url: str, cookies: str, file: Path) -> dict[str, Any]:
    """One pass of Lighthouse in a browser of its own: its report."""
    words = [command, url, "--output=json", f"--output-path={file}", "--preset=desktop", "--quiet"]
    words += ["--chrome-flags=--headless=new --no-sandbox", f"--only-categories={CATEGORIES}"]
    if cookies:
        words.append(f"--extra-headers={json.dumps({'Cookie': cookies})}")
    for attempt in range(ATTEMPTS):  # now and then it fails to record the load of the page, and asks to be run again
        environment = os.environ | {"CI": "1", "CHROME_PATH": find_browser()}
        if not subprocess.run(words, check=attempt == ATTEMPTS - 1, timeout=120, env=environment).returncode:
            break
    return json.loads(file.read_text("utf-8"))


def find_browser() -> str:
    """The browser that `EVERTURN_CHROMIUM` names, or Chromium."""
    return os.environ.get("EVERTURN_CHROMIUM") or shutil.which("chromium") or "chromium"


def log_in(rig: Rig) -> str:
    """The cookies of a browser that has logged in."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(rig.login_link())
        page.get_by_role("button").click()
        page.wait_for_url(f"{rig.url}/")
        cookies = "; ".join(f"{cookie.get('name')}={cookie.get('value')}" for cookie in page.context.cookies())
        browser.close()
    return cookies


def row(name: str, reports: list[dict[str, Any]]) -> str:
    """The line of a page in the table."""
    scores = [report["categories"] for report in reports]
    performance = statistics.median(round(100 * score["performance"]["score"]) for score in scores)
    worst = [min(round(100 * score[key]["score"]) for score in scores) for key in ("accessibility", "best-practices")]
    times = [statistics.median(report["audits"][audit]["numericValue"] for report in reports) for audit in TIMES]
    shift = max(report["audits"]["cumulative-layout-shift"]["numericValue"] for report in reports)
    cells = [f"{performance:.0f}", *map(str, worst), *(f"{value:,.0f} ms" for value in times), f"{shift:.3f}"]
    return f"| {name} | {' | '.join(cells)} |"


def measure(command: str, passes: int, names: set[str]) -> str:
    """The page of results; a page that is not measured keeps its line."""
    earlier = PAGE.read_text("utf-8") if PAGE.exists() else ""
    rows: list[str] = []
    version = ""
    with a_rig() as rig, tempfile.TemporaryDirectory() as home:
        session = rig.say("parallel pace 0")["session"]
        for text in ("table pace 0", "code pace 0", "files pace 0"):
            rig.wait_idle(session, 30)
            rig.say(text, session)
        cookies = log_in(rig)
        pages = (
            ("login", "/", ""),
            ("new conversation", "/#/", cookies),
            ("conversation with tools", f"/#/s/{session}", cookies),
        )
        for name, path, sent in pages:
            if names and name not in names:
                rows += [line for line in earlier.splitlines() if line.startswith(f"| {name} |")]
                continue
            reports = [audit(command, f"{rig.url}{path}", sent, Path(home) / "report.json") for _ in range(passes)]
            version = reports[0]["lighthouseVersion"]
            rows.append(row(name, reports))
            failed = [key for key, outcome in reports[0]["audits"].items() if outcome.get("score") == 0]
            print(rows[-1], "failed:", ", ".join(failed), flush=True)
    head = f"| page | performance | accessibility | best practices | {' | '.join(TIMES.values())} | CLS |"
    about = (
        "# Lighthouse\n\nWritten by `python -m tools.lighthouse`. The web UI of `everturn serve` on this machine, in headless Chromium.\n\n"
        f"Lighthouse {version}, desktop settings; performance and times are the median of {passes} passes, the other scores the worst. "
        f"{describe_load()}\n\n"
    )
    return about + "\n".join([head, "|---|--:|--:|--:|--:|--:|--:|--:|", *rows]) + "\n"


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.lighthouse", description="Lighthouse on the web UI.")
    parser.add_argument("--lighthouse", default="lighthouse", help="the command")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--pages", default="", help="names with commas between them; all of them unless said")
    chosen = parser.parse_args()
    names = {name for name in chosen.pages.split(",") if name}
    PAGE.write_text(measure(chosen.lighthouse, chosen.passes, names), encoding="utf-8")
    print(PAGE.read_text("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
