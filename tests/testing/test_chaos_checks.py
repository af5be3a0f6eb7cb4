"""The checkers of the chaos harness: silent on what a real runtime leaves, and loud on a bug that was put there for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.app import App
from everturn.core.commands import Cancel, ResolveGate, Send
from everturn.core.events import (
    CallFinished,
    CallStarted,
    CommandDropped,
    Entry,
    Event,
    GateOpened,
    GateResolution,
    StepFinished,
    StepRestarted,
    StepStarted,
    TurnCompleted,
    TurnEvent,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.parts import Output, TextPart, ToolPart, Usage
from everturn.core.store_ports import Store
from everturn.testing import MemoryStore, MortalStore
from tools.chaos import (
    CHECKS,
    EffectLedger,
    Evidence,
    LedgerLine,
    ScenarioModel,
    acknowledge,
    ask,
    check,
    check_inputs,
    make_tools,
    normalize_log,
    read_ledger,
)
from tools.chaos.scenario import SCENARIOS, effect_hash, pieces_of
from tools.chaos.sets import acked_in, begun_in, ended_in

# A world that outlives its processes: a store and a ledger ----------------------------------------------------------


class World:
    """What outlives every process, and a client that believes what it is told."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore()
        self.path = directory / "ledger"
        self.app: App | None = None

    @asynccontextmanager
    async def process(self, store: Store | None = None, pause: float = 0.0) -> AsyncGenerator[App]:
        ledger = EffectLedger(self.path)
        app = App(ScenarioModel(ledger), tools=make_tools(ledger, pause), store=store or self.store)
        try:
            await app.start()
            yield app
        finally:
            await app.aclose()
            ledger.close()

    async def command(self, app: App, command: Any) -> None:
        ledger = EffectLedger(self.path, worker="client")
        acknowledge(ledger, await app.command(command))
        ledger.close()

    async def send(self, app: App, session: str, number: int, text: str) -> str:
        turn, message = f"turn-{session}-{number}", f"msg-{session}-{number}"
        parts = (TextPart(text),)
        send = Send(key=f"key-{number}", session=session, turn=turn, message=message, parts=parts, at_leaf=True)
        await self.command(app, send)
        return turn

    async def until(self, session: str, holds: Callable[[list[Event]], bool]) -> None:
        while not holds([entry.event for entry in await self.store.events(session)]):  # noqa: ASYNC110 - a store rings no bell
            await asyncio.sleep(0.001)

    async def over(self, session: str, turns: int = 1) -> None:
        await self.until(session, lambda log: sum(type(e).__name__ in ENDS for e in log) == turns)

    async def evidence(self, session: str, **more: Any) -> Evidence:
        return Evidence(session, await self.store.events(session), read_ledger(self.path).lines, **more)


ENDS = ("TurnCompleted", "TurnFailed", "TurnCancelled")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def four_steps(world: World, session: str = "session-a") -> Evidence:
    """Two turns of one session: four steps, and an echo."""
    async with world.process() as app:
        await world.send(app, session, 1, ask("four_steps", session, 1))
        await world.send(app, session, 2, ask("echo", session, 2))
        await world.over(session, 2)
    return await world.evidence(session)


async def cancelled(world: World, session: str = "session-c") -> Evidence:
    """A turn that waits for a person, and is cancelled."""
    async with world.process() as app:
        turn = await world.send(app, session, 1, ask("asks", session))
        await world.until(session, lambda log: any(isinstance(event, GateOpened) for event in log))
        await world.command(app, Cancel(key="stop", session=session, turn=turn))
        await world.over(session)
    return await world.evidence(session)


# Silent ------------------------------------------------------------------------------------------------------------


async def test_a_turn_that_nobody_disturbed_has_no_violations(world: World):
    evidence = await four_steps(world)
    assert check(replace(evidence, uninterrupted=normalize_log(evidence.entries, evidence.session))) == []
    done = [line.name for line in evidence.lines("effect")]
    assert sorted(done) == ["look", "look", "look", "pay", "pay", "put", "put", "put"]
    assert [line.name for line in evidence.lines("request")] == ["1", "2", "3", "4", "1"]
    sizes = [len([p for p in e.parts if isinstance(p, ToolPart)]) for e in of_type(evidence, StepFinished)]
    assert sizes == [5, 2, 1, 0, 0]


async def test_a_cancelled_turn_has_no_violations(world: World):
    evidence = await cancelled(world)
    assert check(evidence) == []
    assert [line.name for line in evidence.lines("ack")] == ["send", "cancel"]


async def test_a_turn_that_asked_a_person_has_no_violations_and_the_answer_counts(world: World):
    session = "session-b"
    async with world.process() as app:
        await world.send(app, session, 1, ask("asks", session))
        await world.until(session, lambda log: any(isinstance(event, GateOpened) for event in log))
        gate = (await world.store.gates(session))[0].gate
        answer = ResolveGate(key="yes", session=session, gate=gate.id, hash=gate.hash, resolution=GateResolution(True))
        await world.command(app, answer)
        await world.command(app, replace(answer, key="yes again"))  # no news, and no trace in the log
        await world.over(session)
    evidence = await world.evidence(session)
    assert check(evidence) == []
    assert [line.name for line in evidence.lines("effect")] == ["mail"]
    assert [line.key for line in evidence.lines("ack")] == ["key-1", "yes"]


async def test_a_turn_killed_after_any_event_has_no_violations(world: World, tmp_path: Path):
    whole = await four_steps(world, "session-whole")
    uninterrupted = normalize_log(whole.entries, whole.session)
    unknown = 0
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    for lives in range(len(whole.entries)):
        session = f"session-{lives}"
        mortal = MortalStore(world.store, lives)
        async with world.process(mortal) as app:
            await world.send(app, session, 1, ask("four_steps", session, 1))
            await world.send(app, session, 2, ask("echo", session, 2))
            await mortal.died.wait()
        async with world.process():
            await world.over(session, 2)
        evidence = await world.evidence(session, kills=1, uninterrupted=uninterrupted)
        assert check(evidence) == [], f"killed after {lives}"
        unknown += sum(event.state == "outcome_unknown" for event in of_type(evidence, CallFinished))
    assert unknown > 0, "no kill has hit the window of a call that must not be repeated"


async def test_any_process_gives_the_same_answers(world: World, tmp_path: Path):
    first = await four_steps(world)
    (tmp_path / "other").mkdir()
    second = await four_steps(World(tmp_path / "other"), "another-session")
    assert normalize_log(first.entries, first.session) == normalize_log(second.entries, second.session)


async def test_a_long_text_is_the_text_its_seed_says_byte_for_byte(world: World):
    async with world.process() as app:
        await world.send(app, "long", 1, ask("long_text", "long", deltas=500, seed=7))
        await world.over("long")
    tree = await world.store.tree("long")
    answer = next(message for message in tree.messages.values() if message.role == "assistant")
    assert answer.text == "".join(pieces_of(500, 7))
    assert pieces_of(500, 7) != pieces_of(500, 8)
    assert {"👩‍👩‍👧‍👦", "\u0301", "🇨"} <= set(pieces_of(500, 7))


async def test_an_echo_says_its_input(world: World):
    await four_steps(world)
    tree = await world.store.tree("session-a")
    texts = [message.text for message in tree.messages.values()]
    assert texts[-1] == texts[-2] == ask("echo", "session-a", 2)


def test_an_unknown_scenario_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="there are: " + ", ".join(SCENARIOS)):
        ask("five_steps", "s")


# Loud --------------------------------------------------------------------------------------------------------------

Doctor = Callable[[Evidence], Evidence]


def of_type(evidence: Evidence, kind: Any, **having: Any) -> list[Any]:
    found = [entry.event for entry in evidence.entries if isinstance(entry.event, kind)]
    return [e for e in found if all(getattr(e, name) == value for name, value in having.items())]


def with_events(evidence: Evidence, events: Sequence[Event]) -> Evidence:
    return replace(evidence, entries=[Entry(at, event) for at, event in enumerate(events, 1)])


def events_of(evidence: Evidence) -> list[Event]:
    return [entry.event for entry in evidence.entries]


def without(kind: Any, which: int = 0) -> Doctor:
    """Take one event of a kind out of the log."""

    def doctor(evidence: Evidence) -> Evidence:
        gone = of_type(evidence, kind)[which]
        return with_events(evidence, [event for event in events_of(evidence) if event is not gone])

    return doctor


def insert(make: Callable[[Evidence], Event], behind: Callable[[Evidence], Event]) -> Doctor:
    """Put an event into the log."""

    def doctor(evidence: Evidence) -> Evidence:
        events = events_of(evidence)
        at = next(at for at, event in enumerate(events) if event is behind(evidence))
        return with_events(evidence, [*events[: at + 1], make(evidence), *events[at + 1 :]])

    return doctor


def again(kind: Any, which: int = 0, **changed: Any) -> Doctor:
    """Repeat an event at once, or a changed copy of it."""

    def found(evidence: Evidence) -> Event:
        return of_type(evidence, kind)[which]

    return insert(lambda evidence: replace(found(evidence), **changed), found)


def changed(kind: Any, which: int = 0, having: dict[str, Any] | None = None, **changes: Any) -> Doctor:
    """Change an event."""

    def doctor(evidence: Evidence) -> Evidence:
        old = of_type(evidence, kind, **(having or {}))[which]
        return with_events(evidence, [replace(e, **changes) if e is old else e for e in events_of(evidence)])

    return doctor


def lines(change: Callable[[list[LedgerLine], Evidence], list[LedgerLine]]) -> Doctor:
    """Change the ledger."""
    return lambda evidence: replace(evidence, ledger=change(list(evidence.ledger), evidence))


def line_of(kind: str, name: str, /, which: int = 0, **changes: Any) -> Doctor:
    """Change a line of the ledger."""

    def change(ledger: list[LedgerLine], evidence: Evidence) -> list[LedgerLine]:
        old = [line for line in ledger if (line.kind, line.name) == (kind, name)][which]
        return [replace(line, **changes) if line is old else line for line in ledger]

    return lines(change)


def line_again(kind: str, name: str, /, times: int = 1, **changes: Any) -> Doctor:
    """Let something have happened more than once."""

    def change(ledger: list[LedgerLine], evidence: Evidence) -> list[LedgerLine]:
        old = next(line for line in ledger if (line.kind, line.name) == (kind, name))
        return [*ledger, *[replace(old, **changes)] * times]

    return lines(change)


def both(*doctors: Doctor) -> Doctor:
    def doctor(evidence: Evidence) -> Evidence:
        for doctor in doctors:
            evidence = doctor(evidence)
        return evidence

    return doctor


def killed(times: int = 1) -> Doctor:
    return lambda evidence: replace(evidence, kills=times)


def lose_the_second_turn(evidence: Evidence) -> Evidence:
    events = [e for e in events_of(evidence) if not (isinstance(e, TurnEvent) and e.turn.endswith("-2"))]
    return with_events(evidence, events)


def drop_the_second_turn(evidence: Evidence) -> Evidence:
    events = [*events_of(lose_the_second_turn(evidence)), CommandDropped(command="key-2", reason="busy")]
    return with_events(evidence, events)


def settle_after_the_next_step(evidence: Evidence) -> Evidence:
    late = of_type(evidence, CallFinished)[4]
    events = [event for event in events_of(evidence) if event is not late]
    at = next(at for at, e in enumerate(events) if isinstance(e, StepStarted) and e.step == 2)
    return with_events(evidence, [*events[: at + 1], late, *events[at + 1 :]])


def same_call_in_two_steps(evidence: Evidence) -> Evidence:
    first, second = of_type(evidence, StepFinished)[:2]
    call = next(part for part in first.parts if isinstance(part, ToolPart))
    return changed(StepFinished, 1, parts=(*second.parts, call))(evidence)


def swapped(evidence: Evidence) -> Evidence:
    entries = list(evidence.entries)
    entries[3], entries[4] = entries[4], entries[3]
    return replace(evidence, entries=entries)


def gap(evidence: Evidence) -> Evidence:
    return replace(evidence, entries=[entry for entry in evidence.entries if entry.seq != 7])


def unknown(name: str) -> Doctor:
    """Let the first call of a tool be of unknown outcome."""

    def doctor(evidence: Evidence) -> Evidence:
        call = of_type(evidence, CallStarted, tool=name)[0].call
        state, output = "outcome_unknown", Output("who knows")
        return changed(CallFinished, having={"call": call}, state=state, output=output)(evidence)

    return doctor


def share_a_key(evidence: Evidence) -> Evidence:
    key = of_type(evidence, CallStarted)[0].key
    return changed(CallStarted, 1, key=key)(evidence)


def orphan(evidence: Evidence) -> Evidence:
    turn = of_type(evidence, TurnStarted)[0].turn
    result = CallFinished(turn=turn, call="nobody", state="completed", output=Output("x"))
    return insert(lambda _: result, lambda e: of_type(e, CallFinished)[0])(evidence)


def undone(name: str) -> Doctor:
    return lines(lambda ledger, _: [line for line in ledger if line.name != name])


def after_the_end(evidence: Evidence) -> Evidence:
    return insert(lambda e: of_type(e, StepStarted)[0], lambda e: of_type(e, TurnCompleted)[0])(evidence)


def ending(evidence: Evidence) -> Event:
    return of_type(evidence, TurnFinishing)[0]


BUGS: list[tuple[str, str, str, Doctor]] = [
    ("I1", "a lost input", "key-2 was acknowledged and is lost", lose_the_second_turn),
    ("I1", "an input dropped for no reason", "key-2 was acknowledged and is lost", drop_the_second_turn),
    ("I1", "a doubled input", "key-1 began 2 turns", again(TurnStarted, turn="another")),
    ("I1", "an input changed on the way", "is not what was acknowledged", line_of("ack", "send", hash="another")),
    (
        "I1",
        "a lost answer",
        "answer yes was acknowledged, and nothing came of it",
        line_again("ack", "send", name="answer", key="yes"),
    ),
    ("I2", "one key, two turns", "as turn turn-session-a-1 and as turn b", line_again("ack", "send", turn="b")),
    ("I2", "another turn than was told", "began as turn-session-a-1", line_of("ack", "send", turn="b")),
    ("I4", "a gap", "position 8 stands where 7 should", gap),
    ("I4", "two events out of order", "position 5 stands where 4 should", swapped),
    ("I6", "a turn without an end", "has no end; its last event is TurnFinishing", without(TurnCompleted)),
    ("I7", "two ends", "ended 2 times", again(TurnCompleted)),
    ("I7", "an event after the end", "went on after its end, with StepStarted", after_the_end),
    ("I8", "a step that ended before it began", "cannot happen", without(StepStarted)),
    ("I8", "a step that ended twice", "turn turn-session-a-1", again(StepFinished)),
    ("I15", "two results", "has 2 results", again(CallFinished)),
    ("I15", "no result", "has 0 results", without(CallFinished)),
    ("I15", "a result of nothing", "a result for nobody", orphan),
    ("I15", "a result that came too late", "step 2 of turn turn-session-a-1 began before", settle_after_the_next_step),
    ("I16", "one id for two calls", "2 calls are called turn-session-a-1-1-1", same_call_in_two_steps),
    ("I23", "done twice", "pay must be done once, and was done 2 times", line_again("effect", "pay")),
    ("I24", "another key for a repeat", "was tried under the keys", line_again("effect", "put", key="new")),
    ("I24", "one key for two calls", "share the key", share_a_key),
    ("I25", "done without a start", "of which the log has no start", without(CallStarted)),
    (
        "I25",
        "other arguments",
        "with other arguments",
        line_of("effect", "pay", hash=effect_hash("pay", {"amount": 1000})),
    ),
    ("I25", "an effect of another turn", "with other arguments", line_of("effect", "pay", turn="another")),
    ("I25", "done before it was written down", "before its start was written down", line_of("effect", "pay", at=1.0)),
    ("I26", "a success that never was", "pay was never done", undone("pay")),
    ("I26", "unknown, though a repeat does no harm", "may be run again", both(unknown("put"), killed())),
    ("I26", "unknown, though nobody died", "nobody was killed", unknown("pay")),
    ("requests", "asked again without a kill", "1 requests were sent again after 0 kills", line_again("request", "2")),
    (
        "requests",
        "asked again twice",
        "2 requests were sent again after 1 kills",
        both(line_again("request", "2", times=2), killed()),
    ),
    ("requests", "asked otherwise", "step 2 was not the same", both(line_again("request", "2", key="x"), killed())),
    ("transcript", "an answer lost", "and would have been", without(StepFinished, 3)),
    ("transcript", "a result changed", "and would have been", changed(CallFinished, output=Output("boo"))),
    ("transcript", "its end is missing", "it ends before", without(TurnCompleted, 1)),
    ("transcript", "it says more", "it goes on with", again(TurnCompleted, 1)),
    ("transcript", "a request paid twice", "and would have been", changed(TurnCompleted, usage=Usage(11, 5))),
    ("transcript", "unknown, though a repeat does no harm", "outcome_unknown", both(unknown("look"), killed())),
]

CANCEL_BUGS: list[tuple[str, str, Doctor]] = [
    (
        "a step after the cancel",
        "and then came StepStarted",
        insert(lambda e: replace(of_type(e, StepStarted)[0], step=2), ending),
    ),
    (
        "a call started after the cancel",
        "and then came CallStarted",
        insert(
            lambda e: CallStarted(
                turn=of_type(e, TurnStarted)[0].turn,
                call=of_type(e, GateOpened)[0].gate.call,
                tool="mail",
                arguments="{}",
                hash="",
                key="k",
            ),
            ending,
        ),
    ),
    (
        "a model asked after the cancel",
        "and then a model was asked for step 1",
        line_again("request", "1", at=4_000_000_000.0),
    ),
]


@pytest.mark.parametrize(("name", "bug", "words", "doctor"), BUGS, ids=[f"{bug[0]}: {bug[1]}" for bug in BUGS])
async def test_a_bug_is_caught_by_the_checker_made_for_it(
    world: World, name: str, bug: str, words: str, doctor: Doctor
):
    evidence = await four_steps(world)
    evidence = replace(evidence, uninterrupted=normalize_log(evidence.entries, evidence.session))
    assert list(CHECKS[name](evidence)) == []
    found = list(CHECKS[name](doctor(evidence)))
    assert any(words in text for text in found), found
    assert name in {violation.invariant for violation in check(doctor(evidence))}


@pytest.mark.parametrize(("bug", "words", "doctor"), CANCEL_BUGS, ids=[bug[0] for bug in CANCEL_BUGS])
async def test_whatever_happens_after_a_cancel_is_caught(world: World, bug: str, words: str, doctor: Doctor):
    evidence = await cancelled(world)
    assert any(words in text for text in CHECKS["I13"](doctor(evidence)))


def test_every_checker_has_caught_a_bug():
    assert {bug[0] for bug in BUGS} | {"I13"} == set(CHECKS)


# Excused -----------------------------------------------------------------------------------------------------------


async def test_an_unknown_outcome_of_what_must_not_be_repeated_is_excused_after_a_kill(world: World):
    evidence = await four_steps(world)
    evidence = replace(evidence, uninterrupted=normalize_log(evidence.entries, evidence.session))
    assert check(both(unknown("pay"), killed())(evidence)) == []


async def test_a_repeat_that_does_no_harm_and_an_announced_restart_are_excused_after_a_kill(world: World):
    evidence = await four_steps(world)
    evidence = replace(evidence, uninterrupted=normalize_log(evidence.entries, evidence.session))
    turn = of_type(evidence, TurnStarted)[0].turn
    restart = insert(lambda _: StepRestarted(turn=turn, step=2), lambda e: of_type(e, StepStarted, step=2)[0])
    repeat = both(line_again("effect", "put", at=4e9), line_again("effect", "look", at=4e9), line_again("request", "2"))
    assert check(both(restart, repeat, killed())(evidence)) == []


async def test_clocks_that_do_not_agree_are_not_believed(world: World):
    evidence = await four_steps(world)
    early = line_of("effect", "pay", at=1.0)(evidence)
    assert check(early) != []
    assert check(replace(early, clocks_agree=False)) == []


async def test_an_input_that_was_cancelled_before_it_began_is_not_lost(world: World):
    evidence = drop_the_second_turn(await four_steps(world))
    ack = LedgerLine("ack", evidence.session, turn="turn-session-a-2", key="stop", name="cancel")
    dropped = CommandDropped(command="stop", reason="the turn is not under way")
    excused = with_events(replace(evidence, ledger=[*evidence.ledger, ack]), [*events_of(evidence), dropped])
    assert list(CHECKS["I1"](excused)) == []


async def test_a_session_is_not_blamed_for_what_another_one_did(world: World):
    evidence = await four_steps(world)
    foreign = replace(evidence.lines("effect")[0], session="another", call="unheard of")
    assert check(replace(evidence, ledger=[*evidence.ledger, foreign])) == []


# Sets --------------------------------------------------------------------------------------------------------------


async def test_no_input_of_a_real_session_is_lost_or_doubled(world: World):
    evidence = await four_steps(world)
    begun, ended = begun_in(evidence.session, evidence.entries), ended_in(evidence.session, evidence.entries)
    report = check_inputs(acked_in(evidence.ledger), begun, ended)
    assert (report.acknowledged, report.begun, report.violations) == (2, 2, [])


ACKED = [("s", "k1", "t1"), ("s", "k2", "t2"), ("s", "k1", "t1"), ("r", "k1", "t1")]
BEGUN = [("s", "k1", "t1"), ("s", "k2", "t2"), ("r", "k1", "t1"), ("r", "k2", "t2")]
ENDED = [("s", "t1"), ("s", "t2"), ("r", "t1"), ("r", "t2")]


def test_a_repeated_acknowledgement_and_an_input_nobody_was_told_of_are_fine():
    assert check_inputs(ACKED, BEGUN, ENDED).violations == []


@pytest.mark.parametrize(
    ("acked", "begun", "ended", "words"),
    [
        (ACKED, BEGUN[1:], ENDED[1:], "input k1 of s was acknowledged and is lost"),
        (ACKED, [*BEGUN, ("s", "k1", "t3")], [*ENDED, ("s", "t3")], "input k1 of s began twice, now as turn t3"),
        (ACKED, [*BEGUN, ("s", "k3", "t1")], ENDED, "input k3 of s began twice, now as turn t1"),
        (ACKED, [*BEGUN, ("r", "k2", "t4")], [*ENDED, ("r", "t4")], "input k2 of r began twice, now as turn t4"),
        (ACKED, BEGUN, ENDED[1:], "turn t1 of s has no end"),
        (ACKED, BEGUN, [*ENDED, ENDED[0]], "turn t1 of s ended twice"),
        (
            ACKED,
            [("s", "k1", "t9"), *BEGUN[1:]],
            [*ENDED, ("s", "t9")],
            "input k1 of s was acknowledged as turn t1, not t9",
        ),
        ([*ACKED, ("s", "k1", "t9")], BEGUN, ENDED, "input k1 of s was acknowledged as turn t1 and as t9"),
    ],
)
def test_an_input_that_is_lost_doubled_renamed_or_unfinished_is_found(acked: Any, begun: Any, ended: Any, words: str):
    assert check_inputs(acked, begun, ended).violations == [words]
