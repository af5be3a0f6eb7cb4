"""Messages are found by their words, the same ones in every store."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.events import AnswerStarted, Event, MessageAdded, MessageDeleted, StepFinished, StepStarted
from everturn.core.messages import Message
from everturn.core.parts import TextPart
from everturn.core.store_ports import Store
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import send_message, turn_ended_events, turn_started_events


def step_events(turn: str, text: str) -> list[Event]:
    """One step of a turn, in which the model says this."""
    parts = (TextPart(text),)
    return [StepStarted(turn=turn, step=1), StepFinished(turn=turn, step=1, parts=parts, finish="stop")]


async def talk(store: Store, *texts: str, session: str = "s", tenant: str = "local") -> None:
    """Questions, and the answer to each: the question again, shouted."""
    for number, text in enumerate(texts):
        turn = f"{session}{number}"
        await store.admit(replace(send_message(turn, session, turn, text), tenant=tenant))
        parent = (await store.info(session)).leaf
        events = [
            *turn_started_events(turn, parent, text, turn),
            *step_events(turn, f"Answer: {text}"),
            *turn_ended_events(turn),
        ]
        await store.append(session, await store.head(session), events)


async def found(store: Store, text: str, tenant: str | None = None, limit: int = 50) -> list[str]:
    return [message.id for _, message in await store.search(text, tenant, limit)]


async def test_a_message_is_found_by_the_beginnings_of_its_words_the_newest_first(store: Store) -> None:
    await talk(store, "Lunch is at noon", "Dinner is at eight", "明天的午饭在十二点")

    assert await found(store, "lun") == ["s0.out", "s0.in"]
    assert await found(store, "is AT") == ["s1.out", "s1.in", "s0.out", "s0.in"]
    assert await found(store, "午饭") == ["s2.out", "s2.in"]
    assert await found(store, "answer din") == ["s1.out"]
    assert await found(store, "unch") == []
    assert await found(store, "is", limit=3) == ["s1.out", "s1.in", "s0.out"]
    ((session, message), _) = await store.search("noon")
    assert (session, message.text) == ("s", "Answer: Lunch is at noon")


async def test_only_the_messages_of_a_tenant_are_found_for_it(store: Store) -> None:
    await talk(store, "Lunch", session="a", tenant="ada")
    await talk(store, "Lunch", session="b", tenant="bob")

    assert await found(store, "lunch", tenant="ada") == ["a0.out", "a0.in"]
    assert await found(store, "lunch", tenant="eve") == []
    assert len(await found(store, "lunch")) == 4


async def test_what_was_deleted_hidden_or_erased_is_not_found(store: Store) -> None:
    await talk(store, "Lunch one", "Lunch two")
    await talk(store, "Lunch three", session="gone")
    hidden = Message("secret", "s1.out", "assistant", turn="t", hidden=True)
    turn = [
        *turn_started_events("t", "s1.out", "more", ""),
        AnswerStarted(turn="t", message=hidden),
        *step_events("t", "Lunch four"),
        *turn_ended_events("t"),
    ]
    await store.append("s", await store.head("s"), turn)
    await store.append("s", await store.head("s"), [MessageDeleted(message="s1.in")])
    await store.erase("gone")

    assert await found(store, "lunch") == ["s0.out", "s0.in"]


async def test_an_answer_is_found_when_its_turn_is_over_and_a_question_at_once(store: Store) -> None:
    await store.admit(send_message(text="Lunch?"))
    note = MessageAdded(turn="t", message=Message("note", "t.out", "notice", (TextPart("Lunch!"),), turn="t"))
    await store.append("s", 0, [*turn_started_events(text="Lunch?"), *step_events("t", "Lunch is at noon"), note])
    assert await found(store, "lunch") == ["note", "t.in"]

    await store.append("s", 5, turn_ended_events())
    assert sorted(await found(store, "lunch")) == ["note", "t.in", "t.out"]


async def test_what_was_indexed_before_a_restart_is_found_after_it(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "store.db")
    await talk(store, "Lunch is at noon")
    await store.aclose()

    store = SqlStore.sqlite(tmp_path / "store.db")
    assert await found(store, "noon") == ["s0.out", "s0.in"]
    await store.aclose()


HOSTILE = [
    "",
    "   ",
    "\"'*-()",
    "\x00",
    "lunch\x00",
    'lunch" OR "x',
    "lunch' & ' | !",
    "lunch:*",
    "NEAR(lunch noon)",
    "words : lunch",
    "lunch AND",
    "^lunch",
    "\\",
    "'",
    "lunch \ud800",
    "🎉",
    "%",
    "_",
    "; DROP TABLE lookup; --",
    "a " * 10_000,
    "a" * 1_000_000,
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_query_breaks_the_search(store: Store, query: str) -> None:
    await talk(store, "Lunch is at noon")
    await store.search(query)
    await store.search(query, "local")
    assert await found(store, "lunch") == ["s0.out", "s0.in"]


async def test_a_query_without_words_finds_nothing(store: Store) -> None:
    await talk(store, "What?! ...")
    for query in ("", "?!", " . "):
        assert await store.search(query) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.data())
async def test_every_store_finds_the_same(texts: list[str], data: st.DataObject) -> None:
    memory, sqlite = MemoryStore(), SqlStore.sqlite(":memory:")
    try:
        for store in (memory, sqlite):
            await talk(store, *texts)
        pieces = st.sampled_from(texts).flatmap(
            lambda text: st.integers(0, max(len(text) - 1, 0)).map(lambda at: text[at : at + 5])
        )
        for query in data.draw(st.lists(st.one_of(pieces, st.text(max_size=4)), min_size=1, max_size=4)):
            assert await sqlite.search(query) == await memory.search(query)
    finally:
        await sqlite.aclose()
