"""What an append changes beside the log: after any log, in any pieces, the SQL store says what the reference says."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.simulate import Dice
from tests.core.test_tree import Session

from everturn.core.commands import Answer, AnyCommand, Delete, Select, Send
from everturn.core.events import (
    CallSettled,
    Event,
    GateAnswered,
    GateOpened,
    LeafSelected,
    MessageDeleted,
    TurnOptions,
    TurnStarted,
)
from everturn.core.ports import Store
from everturn.errors import EverturnError
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore

NOON = 1_700_000_000.0


def seasoned(event: Event, key: str, at: float, dice: Dice) -> tuple[AnyCommand | None, Event]:
    """An event as a real log has it: at a time, asked for by a command, with deadlines and tools that run on."""
    given: dict[str, Any] = {"session": "s", "key": key, "at": at}
    event = replace(event, at=at)
    match event:
        case TurnStarted(turn=turn, input=message):
            options = TurnOptions(timeout=dice.pick(0.0, 60.0))
            command = Send(turn=turn, message="" if message is None else message.id, at_leaf=True, **given)
            return command, replace(event, command=key, options=options)
        case LeafSelected(message=message):
            return Select(message=message, **given), replace(event, command=key)
        case MessageDeleted(message=message):
            return Delete(message=message, **given), replace(event, command=key)
        case GateOpened(gate=gate):
            return None, replace(event, gate=replace(gate, expires=dice.pick(0.0, at + 1, at + 600)))
        case GateAnswered(gate=gate, verdict=verdict):
            return Answer(gate=gate, hash="hash", verdict=verdict, **given), replace(event, command=key)
        case CallSettled(state="cancelled"):
            return None, replace(event, out=dice.pick(True, False))
        case _:
            return None, event


async def tried(what: Any) -> Any:
    """What came of it; an error is its kind and its text."""
    try:
        return await what
    except EverturnError as error:
        return type(error), str(error)


async def seen(store: Store, session: str, messages: list[str], turns: list[str]) -> dict[str, Any]:
    """Everything a store says of a session."""
    gates = await store.gates(session)
    return {
        "head": await store.head(session),
        "events": await store.events(session),
        "turns": {turn: await store.events(session, turn=turn) for turn in turns},
        "since": await store.events(session, 7, turns[-1] if turns else None),
        "open": await store.open_turns(session),
        "tree": await store.tree(session),
        "paths": {leaf: await tried(store.path(session, leaf)) for leaf in [*messages, None, "nobody"]},
        "gates": sorted((row.gate.id, row) for row in gates),
        "inbox": await store.inbox(session),
        "info": await store.info(session),
        "awake": await store.sessions(awake=True),
        "sessions": await store.sessions(),
    }


async def compare(rolls: bytes, pieces: bytes) -> None:
    dice, cut = Dice(rolls), Dice(pieces)
    memory, sql = MemoryStore(), SqlStore.sqlite(":memory:")
    try:
        session, written, waiting, at = Session(dice), list[Event](), list[Event](), NOON
        turns = list[str]()
        await asyncio.gather(*(store.admit(Send(key="0", session="s", turn="0", at=at)) for store in (memory, sql)))
        for number, plain in enumerate(session.events(), 1):
            at += cut.pick(1.0, 0.0, 30.0)
            command, event = seasoned(plain, str(number), at, cut)
            if command is not None:
                receipts = [await tried(store.admit(command)) for store in (memory, sql)]
                assert receipts[0] == receipts[1]
            if isinstance(event, TurnStarted):
                turns.append(event.turn)
            waiting.append(event)
            if cut.pick(False, True, True):
                continue
            await take(memory, sql, len(written), waiting, at, cut)
            written, waiting = [*written, *waiting], []
            there = [*session.tree.messages]
            assert await seen(sql, "s", there, turns) == await seen(memory, "s", there, turns)
        restored: list[Store] = [MemoryStore(), sql]
        for store in restored:
            await store.restore("copy", "local", written)
        expected, found = [await seen(store, "copy", [*session.tree.messages], turns) for store in restored]
        for lists in (expected, found):
            del lists["sessions"], lists["awake"]
        assert found == expected
    finally:
        await sql.aclose()


async def take(memory: Store, sql: SqlStore, after: int, events: list[Event], at: float, cut: Dice) -> None:
    """Append to both, whatever the SQL store remembers of the session, and perhaps as a driver that claimed it."""
    if cut.pick(False, True):
        sql._shadows.clear()
    if cut.pick(False, True, False):
        claims = [await tried(store.claim("s", at)) for store in (memory, sql)]
        assert claims[0] == claims[1]
    await memory.append("s", after, events)
    await sql.append("s", after, events)


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=150, max_size=500), st.binary(min_size=100, max_size=700))
def test_after_any_log_in_any_pieces_it_says_what_the_reference_says(rolls: bytes, pieces: bytes) -> None:
    asyncio.run(compare(rolls, pieces))
