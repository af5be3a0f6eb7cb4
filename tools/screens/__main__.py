"""Take the screenshots, and make contact sheets of them.

    python -m tools.screens DIR [--looks 1440-light-en,390-dark-zh] [--groups gates,admin] [--only mail,review] [--axe]

Each look is a width, a theme and a language. The picture of a state is DIR/LOOK/STATE.png; DIR/LOOK-GROUP-N.png has
several side by side. A state is reached once for each size; theme and language are changed while it is
open. What could not be reached is listed at the end, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import html
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright
from tests.helpers.browser import visitor
from tests.helpers.scripted_server.server import Rig, a_rig
from tests.web.page_measurements import axe

from tools.screens.many import SECTIONS, broken_states, many_states, prepare_many
from tools.screens.states import MORE_CONFIG, State, prepare, states, users_of

SIZES: Final = {"1440": (1440, 900), "1280": (1280, 720), "390": (390, 844)}
LOOKS: Final = ["-".join(look) for look in product(SIZES, ("light", "dark"), ("en", "zh"))]
PHONES: Final = ("390",)
PER_SHEET: Final = 4
FAKE_MICROPHONE: Final = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
SET_LOOK: Final = """([theme, language]) => {
  const changed = { ...JSON.parse(localStorage.getItem('everturn.settings') ?? '{}'), theme, language };
  localStorage.setItem('everturn.settings', JSON.stringify(changed));
  dispatchEvent(new StorageEvent('storage', { key: 'everturn.settings' }));
}"""
LOADED: Final = "() => !document.querySelector('#main > .spinner, #main .page .spinner, .conversation.loading, .sidebar .more .spinner')"
OVERFLOW: Final = """() => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  for (const one of document.querySelectorAll('button, h1, h2, h3, label, .badge, td, dt, dd')) {
    if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || one.closest('pre, .table, .visually-hidden, .sidebar')) continue;
    const box = one.getBoundingClientRect();
    if (box.width > 1 && box.height > 1 && (box.left < -1 || box.right > innerWidth + 1) && box.top < innerHeight && box.bottom > 0 && !scrolls(one)) found.push(`${one.tagName} "${one.textContent.trim().slice(0, 40)}" reaches out`);
  }
  function scrolls(node) {
    for (let up = node.parentElement; up; up = up.parentElement) if (/auto|scroll/.test(getComputedStyle(up).overflowX) && up.scrollWidth > up.clientWidth) return true;
    return false;
  }
  return found;
}"""


class Photographer:
    """A browser of each look, and the logins of the users."""

    def __init__(self, rig: Rig, browser: Browser, folder: Path, *, has_axe: bool = False) -> None:
        self.rig, self.browser, self.folder, self.has_axe = rig, browser, folder, has_axe
        self.logins: dict[str, Any] = {}
        self.problems: list[str] = []

    def log_in(self, users: set[str]) -> None:
        """Log each user in once."""
        for user in sorted(users):
            first = visitor(self.rig, self.browser)
            first.log_in(user)
            self.logins[user] = first.context.storage_state()
            first.context.close()

    def shoot(self, looks: list[str], group: list[State]) -> dict[str, list[tuple[str, Path]]]:
        """A group of states, in looks of one size."""
        taken: dict[str, list[tuple[str, Path]]] = {look: [] for look in looks}
        for state in group:
            context = new_context(self.browser, looks[0], self.logins.get(state.user))
            try:
                self._reach(page := context.new_page(), looks[0], state)
                for look in looks:
                    if not state.is_app and look != looks[0]:  # that page has no settings
                        context.close()
                        context = new_context(self.browser, look, None)
                        self._reach(page := context.new_page(), look, state)
                    taken[look].append((state.name, self._picture(page, look, state)))
            except Error as error:
                self.problems.append(f"{looks[0]} {state.name}: {error.message.splitlines()[0]}")
            finally:
                context.close()
        return taken

    def _reach(self, page: Page, look: str, state: State) -> None:
        path = self.rig.login_link().removeprefix(f"{self.rig.url}/") if state.path == "LINK" else state.path
        page.goto(f"{self.rig.url}/{path}")
        settle(page, state.wait)
        try:
            if state.act:
                state.act(page)
        except Error as error:
            self.problems.append(f"{look} {state.name}: {error.message.splitlines()[0]}")

    def _picture(self, page: Page, look: str, state: State) -> Path:
        _, theme, language = look.split("-")
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        if state.is_app:
            page.evaluate(SET_LOOK, [theme, language])
        page.wait_for_timeout(150)
        file = self.folder / look / f"{state.name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        self.problems += [f"{look} {state.name}: {problem}" for problem in page.evaluate(OVERFLOW)]
        page.screenshot(path=file)
        if self.has_axe:
            self.problems += [f"{look} {state.name}: axe: {problem}" for problem in axe(page)]
        return file


def new_context(browser: Browser, look: str, login: Any) -> BrowserContext:
    """A browser with its size, theme and language."""
    size, theme, language = look.split("-")
    width, height = SIZES[size]
    phone = {"has_touch": True, "is_mobile": True} if size in PHONES else {}
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": height},
        "color_scheme": theme,
        "reduced_motion": "reduce",
        **phone,
    }
    return browser.new_context(storage_state=login, locale="zh-CN" if language == "zh" else "en-US", **options)


def settle(page: Page, selector: str = "") -> None:
    """Wait until the page has drawn what it is about."""
    page.locator("h1, main").first.wait_for(timeout=10_000)
    if selector:
        page.locator(selector).first.wait_for(timeout=10_000)
    page.wait_for_function(LOADED, timeout=30_000)
    page.wait_for_timeout(700)


def make_sheets(browser: Browser, folder: Path, look: str, group: str, taken: list[tuple[str, Path]]) -> None:
    """Several pictures side by side, each under its name."""
    size = look.split("-")[0]
    width = 390 if size in PHONES else 780
    for at, some in enumerate((taken[start : start + PER_SHEET] for start in range(0, len(taken), PER_SHEET)), 1):
        figures = "".join(
            f"<figure><figcaption>{html.escape(name)}</figcaption><img src='{file.as_uri()}' width={width}></figure>"
            for name, file in some
        )
        style = "body{margin:4px;display:flex;flex-wrap:wrap;gap:4px;font:13px sans-serif;background:#888}figure{margin:0}img{display:block}"
        sheet = folder / f"{look}-{group}-{at}.html"
        sheet.write_text(f"<style>{style}</style>{figures}", encoding="utf-8")
        page = browser.new_page(viewport={"width": 1584, "height": 200})
        page.goto(sheet.as_uri())
        page.screenshot(path=sheet.with_suffix(".png"), full_page=True)
        page.close()
        sheet.unlink()


@contextmanager
def first_run() -> Generator[str]:
    """A server without any configuration; its login link."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-u", "-m", "everturn", "serve", "--port", "0", "--store", f"{home}/first.db"]
        server = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert server.stdout is not None
            yield next(
                word for line in server.stdout if "login" in line for word in line.split() if word.startswith("http")
            )
        finally:
            server.terminate()
            server.wait(30)


def shoot_first_run(browser: Browser, folder: Path, looks: list[str]) -> dict[str, list[tuple[str, Path]]]:
    """The way from an empty installation to the first conversation."""
    with first_run() as link:
        page = browser.new_page()
        page.goto(link)
        page.get_by_role("button").click()
        page.wait_for_url("**/")
        login, url = page.context.storage_state(), page.url
        page.close()
        taken: dict[str, list[tuple[str, Path]]] = {}
        for look in looks:
            for name, path in (
                ("first-run", "#/"),
                *(
                    (f"empty-{page}", f"#/{page}")
                    for page in ("inbox", "permissions", "mcp", "memory", "prompts", "usage")
                ),
                *((f"empty-admin-{section}", f"#/admin/{section}") for section in SECTIONS),
            ):
                context = new_context(browser, look, login)
                page = context.new_page()
                page.goto(f"{url}{path}")
                settle(page)
                file = folder / look / f"{name}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=file)
                context.close()
                taken.setdefault(look, []).append((name, file))
        return taken


def split_names(text: str) -> set[str]:
    """Names with commas between them."""
    return {name for name in text.split(",") if name}


def main() -> int:
    """Every state in every look that is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.screens", description="Screenshots of every page and state of the web UI."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--looks", default=",".join(LOOKS), help="of " + ", ".join(LOOKS))
    parser.add_argument(
        "--groups", default="", help="of entrance, new, conversation, gates, dialogs, pages, admin, broken, first, many"
    )
    parser.add_argument(
        "--web", default="", metavar="DIR", help="where the built page is; that of the server unless said"
    )
    parser.add_argument("--only", default="", help="names of states")
    parser.add_argument("--axe", action="store_true", help="list what axe-core finds in each picture, too")
    chosen = parser.parse_args()
    looks, only = chosen.looks.split(","), split_names(chosen.only)
    folder: Path = chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    executable = os.environ.get("EVERTURN_CHROMIUM") or shutil.which("chromium")
    with a_rig(web=chosen.web, more=MORE_CONFIG) as rig, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-dev-shm-usage", *FAKE_MICROPHONE],
        )
        world = prepare(rig)
        groups = states(world) | {"broken": broken_states()}
        wanted = split_names(chosen.groups) or {*groups, "first", "many"}
        camera = Photographer(rig, browser, folder, has_axe=chosen.axe)
        camera.log_in(users_of(groups))
        by_size = [[look for look in looks if look.startswith(f"{size}-")] for size in SIZES]

        def draw(name: str, group: list[State]) -> None:
            some = [state for state in group if name in wanted and (not only or state.name in only)]
            for alike in filter(None, by_size):
                for look, taken in camera.shoot(alike, some).items():
                    make_sheets(browser, folder, look, name, taken)

        for name, group in groups.items():
            draw(name, group)
        if "many" in wanted:  # last, because it fills every page
            prepare_many(world)
            draw("many", many_states(world))
        if "first" in wanted and not only:
            for look, taken in shoot_first_run(browser, folder, looks).items():
                make_sheets(browser, folder, look, "first", taken)
        browser.close()
    print("\n".join(camera.problems) or "every state was reached, nothing reaches out")
    return 1 if camera.problems else 0


if __name__ == "__main__":
    sys.exit(main())
