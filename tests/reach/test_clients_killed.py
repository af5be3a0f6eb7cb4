"""The process of a turn is killed while a client has its call."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from everturn import Chat
from everturn.core.events import CallClaimed, CallStarted, GateOpened
from everturn.errors import ClaimedOtherwise
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel
from tests.helpers import call_records
from tests.reach.killed_client_process import SESSION
from tests.reach.test_clients import bell, ringing

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("repeat", ["read_only", "at_most_once"])
async def test_a_client_answers_though_the_process_that_asked_was_killed(repeat: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    command = [sys.executable, "-m", "tests.reach.killed_client_process", str(path), repeat]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    turn = (await process.stdout.readline()).decode().strip()
    process.kill()
    await process.communicate()
    assert turn
    store = SqlStore.sqlite(path)
    tools = [bell(repeat, lease=600.0)]
    async with Chat(ScriptedModel(*ringing(1)), tools=tools, store=store, session=SESSION) as chat:
        [gate] = await chat.gates()
        with pytest.raises(ClaimedOtherwise):
            await chat.claim(gate, "other")
        await chat.answer(gate, result='{"rung":1}', claim="page", by="page")
        assert (await chat.turn(turn)).text == "It rang."
        log = [entry.event for entry in await store.events(SESSION)]
    for kind in (CallStarted, GateOpened, CallClaimed):
        assert sum(isinstance(event, kind) for event in log) == 1
    assert not list(call_records.check_log(log))
    call_records.forget()  # what another process wrote, they have not seen
    await store.aclose()
