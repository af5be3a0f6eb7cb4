"""The picture of the web UI in the docs: a real server, a scripted provider, a browser. → docs/assets/page.png

`python -m tools.page_picture` needs `scripts/web --quick` and `scripts/browser`. Run it when the page looks different.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import aiohttp
from playwright.async_api import async_playwright

from everturn.testing.provider import Call, Provider, Say, Think
from tools.servers.process import free_port

PICTURE = Path(__file__).parent.parent / "docs" / "assets" / "page.png"
QUESTION = "What is in the release of Friday, and whom should we tell before?"
EARLIER = (
    "Where do we lose time when we build?",
    "Compare the two offers for the printer",
    "Explain the new limits to support",
)
TOOLS = '''
from everturn import tool

@tool(approval="always")
async def send_mail(to: str, subject: str) -> str:
    """Send a mail."""
    return "sent"
'''
CONFIG = """
[server]
host = "127.0.0.1"
port = {port}
token_file = "{home}/token"
[store]
url = "{home}/talks.db"
[models.large]
model = "compatible:large"
base_url = "{provider}"
window = 128000
price = {{ input = 2.0, output = 8.0, cached = 0.5 }}
[models.small]
model = "compatible:small"
base_url = "{provider}"
[agents.assistant]
model = "large"
models = ["small"]
[tools]
python = ["{home}/mail.py"]
files = "{home}/files:ro"
"""
TABLE = """Two of the three changes matter to people who upgrade:

| Change | Who notices | What they do |
|---|---|---|
| Sessions are kept in a file | everybody | nothing: it is made at the first start |
| `--token` is gone | scripts | `everturn login` instead |

I would tell Ann before it goes out."""


async def take(home: Path, provider: Provider, browser_path: str) -> None:
    """Start the server, have the conversation, and take the picture."""
    read = [Think("Read both files first."), Say("I read the changelog and the list of tasks."),
            Call("read_file", '{"path": "CHANGELOG.md"}'), Call("read_file", '{"path": "TASKS.md"}')]  # fmt: skip
    mail = [Say(TABLE), Call("send_mail", '{"to": "ann@example.org", "subject": "2.4 goes out on Friday"}')]
    provider.script("large", [read, mail])
    provider.script("small", [[Say("Here is what I found.")]])
    port = free_port()
    (home / "files").mkdir()
    (home / "files" / "CHANGELOG.md").write_text("2.4: sessions in a file, `--token` is gone, faster start\n")
    (home / "files" / "TASKS.md").write_text("- tell Ann\n")
    (home / "mail.py").write_text(TOOLS)
    (home / "everturn.toml").write_text(CONFIG.format(port=port, home=home, provider=f"{provider.url}/v1"))
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    options = ("serve", "--config", str(home / "everturn.toml"))
    server = await asyncio.create_subprocess_exec(sys.executable, "-m", "everturn", *options, env=environment)
    try:
        await have_conversation(home, f"http://127.0.0.1:{port}", browser_path)
    finally:
        server.terminate()
        await server.wait()


async def have_conversation(home: Path, url: str, browser_path: str) -> None:
    """Say everything over HTTP, log a browser in, and wait for the approval."""
    session = ""
    async with asyncio.timeout(30), aiohttp.ClientSession() as http:
        while not (home / "token").exists() or not await is_up(http, url):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)
        headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}"}
        for text in (*EARLIER, QUESTION):
            body = {"text": text, "model": "large" if text == QUESTION else "small"}
            async with http.post(f"{url}/api/sessions", json=body, headers=headers) as reply:
                session = (await reply.json())["session"]
    link = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "everturn",
        "login",
        "--config",
        str(home / "everturn.toml"),
        stdout=asyncio.subprocess.PIPE,
    )
    address = next(word for word in (await link.communicate())[0].decode().split() if word.startswith("http"))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1200, "height": 1010}, device_scale_factor=1, locale="en-US")
        await page.goto(address)
        await page.get_by_role("button").click()
        await page.wait_for_url(f"{url}/")
        await page.goto(f"{url}/#/s/{session}")
        await page.get_by_role("button", name="Allow once").wait_for()
        await asyncio.sleep(1)
        await page.screenshot(path=PICTURE)
        await browser.close()


async def is_up(http: aiohttp.ClientSession, url: str) -> bool:
    """Whether the server answers."""
    try:
        async with http.get(f"{url}/healthz") as reply:
            return reply.status < 500
    except aiohttp.ClientError:
        return False


async def main() -> None:
    """Take the picture with the browser at `$EVERTURN_BROWSER`, or Debian's Chromium."""
    with tempfile.TemporaryDirectory() as home:
        async with Provider() as provider:
            await take(Path(home), provider, os.environ.get("EVERTURN_BROWSER", "/usr/bin/chromium"))


if __name__ == "__main__":
    asyncio.run(main())
