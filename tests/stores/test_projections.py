"""What an append changes beside the log: after any log, in any pieces, the SQL store says what the reference says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.test_tree import Session
from tests.helpers.simulated_driver import Dice

from everturn.core.commands import AnyCommand, ClaimCall, Delete, NotifyCall, ResolveGate, Revert, Revoke, Select, Send
from everturn.core.events import (
    CallClaimed,
    CallFinished,
    CallNotified,
    Event,
    FilesChanged,
    FilesReverted,
    GateOpened,
    GateResolved,
    GrantRevoked,
    LeafSelected,
    LimitReached,
    MessageDeleted,
    NestedCallRequested,
    PermissionDecided,
    StepFinished,
    StepInterrupted,
    TurnStarted,
)
from everturn.core.gates import CallClaim, Grant
from everturn.core.options import Budget, Lineage, TurnOptions
from everturn.core.parts import Usage
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import EverturnError
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore

NOON = 1_700_000_000.0


@pytest.fixture(autouse=True)
def _records() -> None:
    """No driver writes these logs: they are dealt, and may break off between a judgement and its start."""


def seasoned(event: Event, key: str, at: float, dice: Dice) -> tuple[AnyCommand | None, Event]:
    """An event as a real log has it: at a time, asked for by a command, with deadlines and tools that run on."""
    fields: dict[str, Any] = {"session": "s", "key": key, "at": at}
    event = replace(event, at=at)
    match event:
        case TurnStarted(turn=turn, input=message):
            above = dice.pick(None, Lineage("s", "0"), Lineage("elsewhere", "0", until=at + 50))
            options = TurnOptions(
                timeout=dice.pick(0.0, 60.0), budget=Budget(seconds=dice.pick(0.0, 45.0, 90.0)), lineage=above
            )
            command = Send(turn=turn, message="" if message is None else message.id, at_leaf=True, **fields)
            return command, replace(event, command=key, options=options)
        case LeafSelected(message=message):
            return Select(message=message, **fields), replace(event, command=key)
        case MessageDeleted(message=message):
            return Delete(message=message, **fields), replace(event, command=key)
        case GateOpened(gate=gate):
            expires, once = dice.pick(0.0, at + 1, at + 600), dice.pick(True, False)
            kind = dice.pick("client", gate.kind) if gate.kind == "call" else gate.kind
            return None, replace(event, gate=replace(gate, expires=expires, once=once, kind=kind))
        case GateResolved(gate=gate, resolution=resolution):
            holds = dice.pick("s", "", "elsewhere")
            grant = Grant(gate, Rule("*", "allow"), holds, "ada", at, dice.pick(0.0, at + 1))
            answered = replace(event, command=key, grant=dice.pick(grant, None))
            return ResolveGate(gate=gate, hash="hash", resolution=resolution, **fields), answered
        case StepFinished() | StepInterrupted():
            return None, replace(event, usage=Usage(dice.pick(0, 7), dice.pick(1, 20), cost=dice.pick(None, 0.5)))
        case CallFinished(state="cancelled"):
            return None, replace(event, still_running=dice.pick(True, False))
        case _:
            return None, event


async def tried(awaitable: Any) -> Any:
    """What came of it; an error is its kind and its text."""
    try:
        return await awaitable
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
        "roots": await store.recorded_trees(session),
        "grants": [await store.grants(session, now) for now in (NOON, NOON + 60)],
        "spent": [
            replace(found, calls=0)  # which a database may know a little later
            for found in (
                await store.spent(session=session),
                await store.spent(session="elsewhere"),
                await store.spent(top="0"),
                await store.spent(tenant="local", since=NOON + 30),
            )
        ],
        "info": await store.info(session),
        "awake": await store.sessions(awake=True),
        "sessions": await store.sessions(),
    }


async def compare(rolls: bytes, pieces: bytes) -> None:
    dice, cut = Dice(rolls), Dice(pieces)
    memory, sql = MemoryStore(), SqlStore.sqlite(":memory:")
    try:
        session, written, waiting, at = Session(dice), list[Event](), list[Event](), NOON
        turns, grants = list[str](), list[str]()
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
            if isinstance(event, GateResolved) and event.grant is not None:
                grants.append(event.grant.id)
            if not isinstance(event, PermissionDecided):  # which its start follows at once
                waiting += await beside(grants, turns, at, f"{number}r", (memory, sql), cut)
                waiting += await reaching_out(turns, at, f"{number}f", (memory, sql), cut)
            if cut.pick(False, True, True):
                continue
            await take(memory, sql, len(written), waiting, at, cut)
            written, waiting = [*written, *waiting], []
            messages = [*session.tree.messages]
            assert await seen(sql, "s", messages, turns) == await seen(memory, "s", messages, turns)
        restored: list[Store] = [MemoryStore(), sql]
        for store in restored:
            await store.restore("copy", "local", written)
        expected, found = [await seen(store, "copy", [*session.tree.messages], turns) for store in restored]
        for lists in (expected, found):
            del lists["sessions"], lists["awake"], lists["grants"], lists["spent"]  # which are not of that one alone
        assert await restored[0].spent(session="copy") == await restored[1].spent(session="copy")
        assert await own(restored[0]) == await own(restored[1])
        assert found == expected
    finally:
        await sql.aclose()


async def own(store: Store) -> list[Grant]:
    return [grant for grant in await store.grants("copy", NOON) if grant.session == "copy"]


async def beside(
    grants: list[str], turns: list[str], at: float, key: str, stores: tuple[Store, ...], cut: Dice
) -> list[Event]:
    """What may happen beside a turn: a grant is revoked, with or without a command, and a limit is reached."""
    found = list[Event]()
    if grants and cut.pick(False, True, False):
        command = Revoke(key=key, session="s", at=at, grant=grants[cut.pick(0, -1)])
        receipts = [await tried(store.admit(command)) for store in stores]
        assert receipts[0] == receipts[1]
        if cut.pick(True, False):
            found.append(GrantRevoked(at=at, grant=command.grant, command=key))
    elif grants and cut.pick(False, False, True):
        found.append(GrantRevoked(at=at, grant=grants.pop()))
    if turns and cut.pick(False, False, True):
        found.append(LimitReached(turn=turns[-1], at=at, limit="seconds", scope="turn", text=""))
    return found


async def reaching_out(turns: list[str], at: float, key: str, stores: tuple[Store, ...], cut: Dice) -> list[Event]:
    """What clients, sub-agent runs and files may bring."""
    fields: dict[str, Any] = {"session": "s", "key": key, "at": at}
    found: list[Event] = []
    rows = await stores[0].gates("s")
    action = cut.pick("", "take", "files", "take", "revert", "stir", "claim", "")
    command: AnyCommand | None = None
    event: Event | None = None
    if action == "take" and rows:
        gate, by, lease = rows[cut.pick(0, -1)].gate, cut.pick("tab", "other"), cut.pick(10.0, 60.0, 0.0)
        command = ClaimCall(gate=gate.id, hash=gate.hash, by=by, lease=lease, **fields)
        claim = CallClaim(by, min(at + lease, gate.expires) if gate.expires else at + lease)
        event = CallClaimed(turn=gate.turn, at=at, gate=gate.id, claim=claim, command=key)
    elif action == "claim" and rows:  # whose command the door had forgotten
        gate = rows[cut.pick(0, -1)].gate
        found.append(
            CallClaimed(turn=gate.turn, at=at, gate=gate.id, claim=CallClaim("third", at + cut.pick(5.0, 50.0)))
        )
    elif action == "files" and turns:
        root, tree = cut.pick("", "/home/ada"), cut.pick("a", "b") * 64
        found.append(FilesChanged(turn=turns[-1], at=at, step=1, before="", after=tree, root=root))
        found.append(NestedCallRequested(turn=turns[-1], at=at, call=key, parent="nobody", name="look", arguments="{}"))
    elif action == "revert":
        command = Revert(root="", tree="c" * 64, **fields)
        event = FilesReverted(at=at, root="", before="", after="c" * 64, command=key)
    elif action == "stir":
        turn = turns[cut.pick(0, -1)] if turns else "nobody"
        command = NotifyCall(turn=turn, call="c", **fields)
        event = CallNotified(turn=turn, at=at, call="c", command=key)
    if command is not None and event is not None:
        receipts = [await tried(store.admit(command)) for store in stores]
        assert receipts[0] == receipts[1]
        if not isinstance(receipts[0], tuple) and cut.pick(True, False):
            found.append(event)
    return found


async def take(memory: Store, sql: SqlStore, after: int, events: list[Event], at: float, cut: Dice) -> None:
    """Append to both, whatever the SQL store remembers of the session, and perhaps as a driver that claimed it."""
    if cut.pick(False, True):
        sql._projections.clear()
    if cut.pick(False, True, False):
        claims = [await tried(store.claim("s", at)) for store in (memory, sql)]
        assert claims[0] == claims[1]
    await memory.append("s", after, events)
    await sql.append("s", after, events)


@settings(
    max_examples=max(settings().max_examples // 4, 1), deadline=None
)  # of long logs: each takes a quarter of a second
@given(st.binary(min_size=150, max_size=500), st.binary(min_size=100, max_size=700))
def test_after_any_log_in_any_pieces_it_says_what_the_reference_says(rolls: bytes, pieces: bytes) -> None:
    asyncio.run(compare(rolls, pieces))
