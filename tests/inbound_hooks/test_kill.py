"""A process that is killed between a delivery and its turn: the sender sends it again, and there is one turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everturn.core.events import TurnCompleted, TurnStarted
from everturn.stores.sql.store import SqlStore

ROOT = Path(__file__).parents[2]


def deliver(store: Path, plan: dict[str, object] | None = None) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **({"EVERTURN_FAULTS": json.dumps(plan)} if plan else {})}
    command = [sys.executable, "-m", "tests.inbound_hooks.delivery_process", str(store)]
    return subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "is_new"),
    [("hook.verified", True), ("hook.received", False), ("log.TurnStarted.before", False)],
)
async def test_a_kill_between_receipt_and_turn_leaves_one_turn(tmp_path: Path, point: str, is_new: bool) -> None:
    store = tmp_path / "a.db"
    killed = deliver(store, {point: {"do": "kill"}})
    assert killed.returncode == -9, killed.stderr
    answers = [deliver(store) for _ in range(2)]
    assert [answer.returncode for answer in answers] == [0, 0], answers[0].stderr
    turn = answers[0].stdout.split()[0]
    assert [answer.stdout.split() for answer in answers] == [[turn, str(is_new)], [turn, "False"]]
    opened = SqlStore.sqlite(store)
    [session] = await opened.sessions()
    events = [entry.event for entry in await opened.events(session.id)]
    await opened.aclose()
    assert [event.turn for event in events if isinstance(event, TurnStarted)] == [turn]
    assert [event.turn for event in events if isinstance(event, TurnCompleted)] == [turn]
