"""The guides on embedding and on moving over: their examples, run as a reader would."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from docs_src.guides.fastapi_first import app
from docs_src.guides.migrate_after import refund
from docs_src.guides.migrate_before import TOOLS

from everturn.testing.provider import Call, Item, Provider, Say
from tools.servers.process import free_port

GUIDES = Path(__file__).parents[2] / "docs_src" / "guides"


class Served:
    """The app of the guide behind real HTTP, for as long as the block runs."""

    def __init__(self) -> None:
        self.port = free_port()
        config = uvicorn.Config(app, port=self.port, log_level="error", lifespan="on")
        self._server = uvicorn.Server(config)

    async def __aenter__(self) -> Served:
        self._task = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.02)
        self.http = aiohttp.ClientSession(f"http://127.0.0.1:{self.port}")
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.close()
        self._server.should_exit = True
        await self._task

    async def say(self, text: str, key: str) -> str:
        async with self.http.post("/talks/one", json={"text": text}, headers={"idempotency-key": key}) as answer:
            assert answer.status == 200, await answer.text()
            return (await answer.json())["turn"]

    async def follow(self, turn: str, after: str = "", until: str = "") -> list[tuple[str, Any]]:
        """What is shown: cursor and event; until the turn is over, or an event of a kind has come."""
        seen: list[tuple[str, Any]] = []
        async with self.http.get(f"/talks/one/{turn}", headers={"last-event-id": after}) as answer:
            cursor = ""
            async for line in answer.content:
                if line.startswith(b"id: "):
                    cursor = line[4:].decode().strip()
                elif line.startswith(b"data: "):
                    seen.append((cursor, json.loads(line[6:])))
                    if seen[-1][1]["type"] == until:
                        break
        return seen

    async def gates(self) -> list[dict[str, Any]]:
        async with self.http.get("/talks/one/gates/open") as answer:
            return await answer.json()

    async def answer(self, gate: dict[str, Any], **fields: Any) -> int:
        body = {"hash": gate["hash"], "allow": True, **fields}
        async with self.http.post(f"/talks/one/gates/{gate['id']}", json=body) as answer:
            return answer.status


async def test_a_service_of_ones_own_keeps_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALKS", str(tmp_path / "talks.db"))
    monkeypatch.delenv("EVERTURN_MODEL", raising=False)
    async with Served() as first:
        turn = await first.say("Ask Ann to lunch", "k1")
        assert await first.say("Ask Ann to lunch", "k1") == turn
        other, headers = {"text": "Ask Bob to lunch"}, {"idempotency-key": "k1"}
        async with first.http.post("/talks/one", json=other, headers=headers) as refused:
            assert (refused.status, "was used before" in await refused.text()) == (409, True)
        for path in ("/talks/one/none", "/talks/none/none"):
            async with first.http.get(path) as missing:
                assert (missing.status, "there is no" in await missing.text()) == (404, True), path
        seen = await first.follow(turn, until="TurnSuspended")
        assert seen[0][1]["type"] == "TurnStarted"
        assert "discounts" not in json.dumps([event for _, event in seen])  # the system prompt stays here
        (gate,) = await first.gates()
        assert (gate["tool"], json.loads(gate["arguments"])) == ("send_mail", {"to": "Ann", "text": "Lunch?"})
        assert await first.answer(gate, hash="f" * 64) == 409
    async with Served() as second:  # another process, as far as the service can tell
        (pending,) = await second.gates()
        assert pending == gate
        assert await second.answer(pending) == 200
        rest = await second.follow(turn, after=seen[-1][0])
        assert await second.answer(pending) == 409
        kinds = [event["type"] for _, event in seen + rest]
        assert kinds.count("CallStarted") == kinds.count("TurnCompleted") == kinds.count("TurnStarted") == 1
        whole = await second.follow(turn)
        assert "".join(event["text"] for _, event in whole if event["type"] == "TextDelta") == "Ann knows."


# Moving over -----------------------------------------------------------------------------------------------------------


def test_both_offer_the_same_tool() -> None:
    (written,) = TOOLS
    properties = refund.spec.schema["properties"]
    assert written["function"]["name"] == refund.spec.name
    assert {name: schema["type"] for name, schema in properties.items()} == {
        name: schema["type"] for name, schema in written["function"]["parameters"]["properties"].items()
    }


def script() -> list[list[Item]]:
    return [[Call("refund", '{"order": "7", "cents": 900}')], [Say("Order 7 has its money back.")]]


@pytest.mark.parametrize("file", ["migrate_before.py", "migrate_after.py"])
@pytest.mark.live
async def test_the_loop_and_what_takes_its_place_say_the_same(file: str, tmp_path: Path) -> None:
    async with Provider() as provider:
        provider.script("some-model", script())
        known = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{provider.url}/v1", "MODEL": "some-model"}
        output = await run_file(file, tmp_path, known, b"y\n")
    question, _, rest = output.partition("? ")
    assert json.loads(question.removeprefix("refund ")) == {"order": "7", "cents": 900}
    assert rest == "Order 7 has its money back.\n"


@pytest.mark.live
async def test_what_takes_its_place_can_be_killed_while_somebody_is_asked(tmp_path: Path) -> None:
    async with Provider() as provider:
        provider.script("some-model", script())
        known = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{provider.url}/v1", "MODEL": "some-model"}
        await run_file("migrate_after.py", tmp_path, known, None)
        assert len(provider.seen) == 1
        output = await run_file("migrate_after.py", tmp_path, known, b"y\n")
        assert len(provider.seen) == 2  # the first answer was not asked for again
    assert output.endswith("Order 7 has its money back.\n")


async def run_file(file: str, folder: Path, known: dict[str, str], stdin: bytes | None) -> str:
    """Run an example with something typed; without, it is killed once it asks."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(GUIDES / file),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **known},
    )
    assert process.stdout is not None
    if stdin is not None:
        out, _ = await asyncio.wait_for(process.communicate(stdin), 60)
        assert process.returncode == 0
        return out.decode()
    await asyncio.wait_for(process.stdout.readuntil(b"? "), 60)
    process.kill()
    await process.wait()
    return ""


# The first page --------------------------------------------------------------------------------------------------------


@pytest.mark.live
async def test_what_the_first_page_says_of_pipes_works_once_the_demo_was_chosen(tmp_path: Path) -> None:
    known = {name: value for name, value in os.environ.items() if "API_KEY" not in name and "EVERTURN" not in name}
    known |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    known["EVERTURN_MODEL"] = "offline:demo"
    known["PATH"] = f"{Path(sys.executable).parent}:{known['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "sh", str(GUIDES.parent / "start.sh"), stdout=asyncio.subprocess.PIPE, env=known, cwd=tmp_path
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    output = out.decode()
    assert process.returncode == 0
    assert output.startswith("current_time says: ")
    assert "What should I take? It rains. Take a coat." in output
    assert int(output.split()[-1]) > 5
