"""A process is killed while a request waits for a rate limit: another one continues the turn, and sends it once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from everturn import App, get_model
from everturn.core.events import StepRestarted, StepStarted
from everturn.testing.provider import Provider, Say


async def test_a_turn_that_waited_continues_elsewhere_and_is_sent_once(tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    async with Provider() as provider:
        provider.script("m", [[Say("fine")]])
        url = f"{provider.url}/v1"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.turn.waiting_process", store, url, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line.startswith(b"waiting for the provider's rate limit, about")
        process.kill()
        await process.wait()
        assert [seen.body["messages"][-1]["content"] for seen in provider.seen] == ["first"]
        async with App(get_model("m", base_url=url, key="k", window=1000), store=store) as app:
            (turn,) = await app.store.open_turns("b")
            assert (await app.turn(f"b/{turn}")).text == "fine"
            events = [entry.event for entry in await app.store.events("b")]
        assert [seen.body["messages"][-1]["content"] for seen in provider.seen] == ["first", "second"]
    assert sum(isinstance(event, StepStarted) for event in events) == 1
    assert sum(isinstance(event, StepRestarted) for event in events) == 1
