"""The tools of a page through whole turns, with a program in the place of the page."""

from __future__ import annotations

from typing import Any

from everturn.chat.tool_client import ToolClient
from everturn.core.store_ports import Store
from everturn.testing import call, calls, say
from everturn.tools.browser import BROWSER_TOOLS
from tests.helpers.conversations import Talk
from tests.reach.test_clients import bell, serving


class Page:
    """Files that never leave it, and a sandbox that knows one sum."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def evaluate(self, code: str, timeout_ms: int = 5000) -> dict[str, Any]:
        assert code == "return 6 * 7"
        return {"value": 42, "console": [f"within {timeout_ms} ms"]}

    def list(self, path: str = "") -> list[dict[str, Any]]:
        return [{"name": name, "kind": "file", "size": len(text)} for name, text in self.files.items()]

    def read(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(f"there is no {path!r}; there are: {', '.join(self.files)}")
        return self.files[path]

    def write(self, path: str, content: str) -> dict[str, int]:
        self.files[path] = content
        return {"written": len(content)}

    @property
    def tools(self) -> dict[str, Any]:
        return {
            "browser_js_eval": self.evaluate,
            "browser_list_directory": self.list,
            "browser_read_file": self.read,
            "browser_write_file": self.write,
        }


async def test_a_model_writes_lists_reads_and_runs_in_a_page(store: Store) -> None:
    page, talk = Page(), Talk(bell(), store=store)
    script = [
        calls(call("browser_write_file", path="a.md", content="héllo"), call("browser_js_eval", code="return 6 * 7")),
        calls(call("browser_list_directory"), call("browser_read_file", path="a.md")),
        calls(call("browser_read_file", path="b.md"), call("browser_read_file", path="")),
        say("Done."),
    ]
    async with talk.process(*script) as chat:
        turn = await chat.send("go", clients=BROWSER_TOOLS)
        async with serving(ToolClient(chat, page.tools, name="page")):
            assert (await turn).text == "Done."
    assert page.files == {"a.md": "héllo"}
    came = {outcome.output.text for outcome in await talk.settled() if outcome.state == "completed"}
    assert came == {
        '{"written":5}',
        '{"console":["within 5000 ms"],"value":42}',
        '[{"kind":"file","name":"a.md","size":5}]',
        '"héllo"',
    }
    failed = [outcome.output.text for outcome in await talk.settled() if outcome.state == "failed"]
    assert len(failed) == 2
    assert any("there is no 'b.md'; there are: a.md" in text for text in failed)
    assert any("the arguments of browser_read_file are wrong" in text for text in failed)
    assert {"bell", *page.tools} == {spec.name for spec in talk.requests[0].tools}
