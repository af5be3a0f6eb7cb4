"""Three tenants with whatever hypothesis makes them do: what one asks for has nothing of another in it, on every store."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.stores import ALL, opened

from everturn.core.options import Spent, TurnOptions
from everturn.core.parts import Usage
from everturn.core.store_ports import Store
from everturn.testing.contracts.directory import send_to_agent, subagent_session_options
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    gate_opened_events,
    turn_ended_events,
    turn_started_events,
)

TENANTS = ("a", "b", "local")


class Did(NamedTuple):
    """One session, and how far it came."""

    tenant: str
    word: str
    at: float
    agent: str
    tokens: int
    is_below: bool
    ends: str  # sent | asked | over


dids = st.lists(
    st.builds(
        Did,
        st.sampled_from(TENANTS),
        st.sampled_from(("apple", "pear", "plum")),
        st.sampled_from((NOON, NOON + 1, NOON + 90_000)),
        st.sampled_from(("", "w")),
        st.integers(0, 9),
        st.booleans(),
        st.sampled_from(("sent", "asked", "over")),
    ),
    max_size=8,
)


async def do(store: Store, did: Did, n: int) -> None:
    turn, session = f"t{n}", f"s{n}"
    options = replace(subagent_session_options("s0") if did.is_below else TurnOptions(), agent=did.agent)
    await store.admit(send_to_agent(session, turn, did.tenant, did.at, options))
    if did.ends == "sent":
        return
    step = [*call_requested_events(turn, Usage(did.tokens), did.at), *gate_opened_events(turn)[2:]]
    events = [*turn_started_events(turn, text=did.word, command=f"{turn}.k", options=options), *step]
    await store.append(session, 0, [*events, *turn_ended_events(turn)] if did.ends == "over" else events)


async def look(store: Store, tenant: str, all_: list[Did]) -> None:
    """What a tenant is shown is what it did, no more and no less; inside its walls and outside of them."""
    mine = {f"s{n}": did for n, did in enumerate(all_) if did.tenant == tenant}
    began = {name: did for name, did in mine.items() if did.ends != "sent"}

    listed = await store.session_page(tenant)
    assert {info.id for info in listed} == {name for name, did in mine.items() if not did.is_below}
    assert {info.tenant for info in listed} <= {tenant}
    for word in ("apple", "pear", "plum"):
        found = {name for name, _ in await store.search(word, tenant)}
        assert found == {name for name, did in began.items() if did.word == word}
    gates = {row.gate.turn for row in await store.gates(tenant=tenant)}
    assert gates == {f"t{name[1:]}" for name, did in mine.items() if did.ends == "asked"}
    spent = await store.spent(tenant=tenant)
    assert (spent.steps, spent.usage.input) == (len(began), sum(did.tokens for did in began.values()))
    assert sum((row[2] for row in await store.usage_by_day(tenant)), Spent()) == spent
    assert {agent for _, agent, _ in await store.usage_by_day(tenant)} == {did.agent for did in began.values()}


async def live(kind: str, folder: Path, all_: list[Did]) -> None:
    async with opened(kind, folder) as store:
        for n, did in enumerate(all_):
            await do(store, did, n)
        for tenant in (*TENANTS, "nobody"):
            await look(store, tenant, all_)
            with store.restrict_to_tenant(tenant):
                await look(store, tenant, all_)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.long
def test_what_a_tenant_asks_for_is_its_own(kind: str):
    @settings(max_examples=15 if kind == "postgres" else 60, deadline=None, phases=(Phase.generate,), derandomize=True)
    @given(all_=dids)
    def test(all_: list[Did]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(live(kind, Path(folder), all_))

    check: Any = test
    check()
