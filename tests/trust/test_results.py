"""A result that a person reads first is sent outside as they let it, and not one byte of it before: acceptance test 9.

The provider is a real server, as strict as the real ones; each process is a runtime of its own on the same file.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.calls.output import OutputLimits
from everturn.core.events import CallFinished, GateOpened, LateResultReceived, LimitReached
from everturn.core.options import Budget
from everturn.core.phases import Phase
from everturn.errors import AnswerUnfit, GateClosed
from tests.trust.review_server import SECRET, House, calling, house, part_of, reviewing, text_of
from tests.trust.store_processes import count, events_in, happened, rest

ROOT = Path(__file__).parent.parent.parent
LEFT = "the code is [removed]"
WHO = [
    ("fetch", {}),
    ("look", {"review": "always"}),
    ("attempt", {"review": "always"}),
]  # the tool's own choice, or the turn's


async def is_closed(house: House, options: dict[str, Any]) -> None:
    async with house.process(**options) as chat:
        await reviewing(chat)


async def is_killed(house: House, options: dict[str, Any]) -> None:
    program = "import sys; from tests.trust.test_results import child; child(*sys.argv[1:])"
    arguments = (str(house.folder), house.url, options.get("review", "never"))
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    line = await child.stdout.readline()
    child.kill()
    await child.wait()
    assert line == b"ready\n"


def child(folder: str, url: str, review: Any) -> None:
    """The process that is killed."""

    async def work() -> None:
        async with House(Path(folder), url).process(review=review) as chat:
            await reviewing(chat)
            print("ready", flush=True)
            await asyncio.get_running_loop().create_future()

    asyncio.run(work())


@pytest.mark.parametrize("ends", [is_closed, is_killed], ids=lambda ends: ends.__name__)
@pytest.mark.parametrize(("name", "options"), WHO, ids=["the tool says so", "the turn says so", "the stricter counts"])
async def test_no_byte_of_a_result_is_sent_before_a_person_has_read_it_and_then_what_is_left_of_it(
    name: str, options: dict[str, Any], ends: Any, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"works": True} if name == "attempt" else {}
    async with house(tmp_path, calling(name, **arguments)) as harness:
        await ends(harness, options)
        assert (harness.leaked(), len(harness.provider.seen)) == ([], 1)
        async with harness.process(**options) as chat:
            [gate] = await chat.gates()
            assert (gate.kind, gate.tool, text_of(gate.output)) == ("result", name, SECRET)
            await rest(chat, chat.turn(gate.turn))
            assert (harness.leaked(), len(harness.provider.seen)) == ([], 1)
            await chat.answer(gate, allow="once", text=LEFT)
            assert (await chat.turn(gate.turn)).text == "Done."
            assert (await count(chat, GateOpened), await count(chat, CallFinished)) == (1, 1)
        assert (harness.told(), harness.leaked(), len(harness.provider.seen)) == ([LEFT], [], 2)
        async with harness.process(**options) as chat:  # nor in any later turn
            part = await part_of(chat)
            assert (text_of(part.output), part.output and part.output.redacted) == (LEFT, True)
            await (await chat.send("and now?"))
        assert harness.leaked() == []


async def test_a_result_that_is_sent_is_sent_as_it_was_shown(tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness, harness.process() as chat:
        gate = await reviewing(chat)
        await chat.answer(gate, allow="once")
        assert (await chat.turn(gate.turn)).text == "Done."
        assert harness.told() == [text_of(gate.output)] == [SECRET]


async def test_on_error_asks_for_errors_only(tmp_path: Path) -> None:
    async with house(tmp_path, calling("attempt", works=True), calling("attempt", works=False)) as harness:
        harness.found = "it works"
        async with harness.process() as chat:
            gate = await reviewing(chat)
            assert (gate.failed, text_of(gate.output)) == (True, SECRET)
            assert (harness.told(), harness.leaked(), len(harness.provider.seen)) == (["it works"], [], 2)
        async with harness.process() as chat:
            await chat.answer(gate, allow="once", text="it broke")
            await chat.turn(gate.turn)
            states = [event.state for event in await events_in(chat) if isinstance(event, CallFinished)]
        assert (states, harness.told(), harness.leaked()) == (["completed", "failed"], ["it works", "it broke"], [])


async def test_a_withheld_result_is_the_reason_and_nothing_else(tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness:
        async with harness.process() as chat:
            gate = await reviewing(chat)
        async with harness.process() as chat:
            with pytest.raises(AnswerUnfit):
                await chat.answer(gate, deny="it is private", text="x")
            await chat.answer(gate, deny="it is private")
            assert (await chat.turn(gate.turn)).text == "Done."
            part = await part_of(chat)
        assert part.state == "withheld"
        assert harness.told() == ["The person withheld this result and said why: it is private. The call did run."]
        assert (harness.leaked(), harness.ran) == ([], ["fetch"])


async def test_a_late_result_that_nobody_read_never_leaves(tmp_path: Path) -> None:
    async with house(tmp_path, calling("wait")) as harness, harness.process() as chat:
        turn = await chat.send("please")
        await harness.waits.wait()
        await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED
        harness.release.set()
        await happened(chat, LateResultReceived)
        await (await chat.send("what came of it?"))
        await (await chat.send("really?"))
        part = await part_of(chat)
        assert part.late is not None
        assert (part.state, part.late.code) == ("cancelled", "withheld")
        assert (harness.leaked(), len(harness.provider.seen)) == ([], 3)


# Ways around it -------------------------------------------------------------------------------------------------------


def refer(name: str, argument: str, form: str) -> Any:
    """A step in which the model refers to the result of its first call."""

    def step(body: Any) -> list[Any]:
        [first, *_] = [message["tool_calls"][0]["id"] for message in body["messages"] if message.get("tool_calls")]
        return calling(name, **{argument: form.replace("CALL", first)})

    return step


LONG = "⡁" * 3000 + "\n" + "⢂" * 3000
SHORT = OutputLimits(output=600)


@pytest.mark.parametrize("whole", [SECRET, LONG], ids=["short", "cut"])
@pytest.mark.parametrize("resolution", [{"allow": "once", "text": LEFT}, {"deny": "no"}], ids=["redacted", "withheld"])
async def test_what_was_taken_out_cannot_be_read_back(whole: str, resolution: Any, tmp_path: Path) -> None:
    steps = (
        calling("fetch"),
        refer("use", "text", "$ref{CALL}"),
        refer("use", "text", "$ref{CALL:0:5000}"),
        refer("read_back", "call", "CALL"),
        refer("read_back", "call", "$ref{CALL}"),
    )
    async with house(tmp_path, *steps) as harness:
        harness.secret = whole
        async with harness.process(SHORT) as chat:
            gate = await reviewing(chat)
        async with harness.process(SHORT) as chat:
            await chat.answer(gate, **resolution)
            assert (await chat.turn(gate.turn)).text == "Done."
            texts = harness.told()
        assert (harness.leaked(), len(texts)) == ([], 5)
        if "deny" in resolution:
            assert harness.ran == ["fetch"]
            assert all("there is no result" in text for text in texts[1:])
        else:
            assert harness.ran == ["fetch", LEFT, LEFT]
            assert [LEFT in text for text in texts] == [True, False, False, True, True]


async def test_the_gate_shows_what_the_model_would_read(tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness, harness.process(SHORT) as chat:
        harness.secret = LONG
        gate = await reviewing(chat)
        shown = text_of(gate.output)
        assert len(shown) < 1000
        assert re.search(r"\[… \d+ characters left out\.", shown)
        await chat.answer(gate, allow="once")
        await chat.turn(gate.turn)
        assert harness.told() == [shown]


async def test_what_a_person_was_not_shown_of_a_result_is_not_read_by_the_model_either(tmp_path: Path) -> None:
    steps = (calling("fetch"), refer("read_back", "call", "CALL"))
    async with house(tmp_path, *steps) as harness, harness.process(OutputLimits(output=600)) as chat:
        harness.secret = "a" * 3000 + SECRET + "z" * 3000
        gate = await reviewing(chat)
        assert SECRET not in text_of(gate.output)
        await chat.answer(gate, allow="once")
        assert (await chat.turn(gate.turn)).text == "Done."
        [shown, read] = harness.told()
        assert shown == text_of(gate.output)
        assert read.startswith("[characters 0 to ")  # it was read, as far as the person had read it
        assert harness.leaked() == []


# When nobody answers --------------------------------------------------------------------------------------------------


async def test_a_review_that_expires_withholds_the_result(tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness:
        async with harness.process(gate_timeout=3600.0) as chat:
            gate = await reviewing(chat)
            assert gate.expires == harness.clock.now() + 3600.0
        harness.clock.advance(3601.0)
        async with harness.process() as chat:
            assert (await chat.turn(gate.turn)).text == "Done."
            assert (await part_of(chat)).state == "withheld"
            with pytest.raises(GateClosed):
                await chat.answer(gate, allow="once")
        assert harness.told() == ["Nobody read this result in time. The call did run."]
        assert harness.leaked() == []


async def test_a_turn_that_is_cancelled_while_its_result_is_read_sends_nothing_of_it(tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness:
        async with harness.process() as chat:
            gate = await reviewing(chat)
        async with harness.process() as chat:
            await chat.turn(gate.turn).cancel()
            assert (await chat.turn(gate.turn)).phase is Phase.CANCELLED
            with pytest.raises(GateClosed):
                await chat.answer(gate, allow="once")
            assert await chat.gates() == []
            await (await chat.send("and now?"))
            part = await part_of(chat)
            assert (part.state, part.late) == ("cancelled", None)
        assert (harness.leaked(), len(harness.provider.seen)) == ([], 2)
        assert "before a person reviewed the result" in harness.told()[0]


async def test_a_result_that_nobody_has_read_when_the_time_is_over_is_withheld(tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness:
        async with harness.process(budget=Budget(seconds=60.0)) as chat:
            gate = await reviewing(chat)
        harness.clock.advance(61.0)
        async with harness.process() as chat:
            await chat.turn(gate.turn)  # it ends by itself
            assert ((await part_of(chat)).state, await count(chat, LimitReached)) == ("withheld", 1)
            with pytest.raises(GateClosed):
                await chat.answer(gate, allow="once")
        assert (len(harness.told()), harness.leaked(), len(harness.provider.seen)) == (1, [], 2)


@pytest.mark.parametrize("budget", [Budget(calls=1), Budget(steps=1)], ids=["calls", "steps"])
async def test_another_limit_leaves_people_the_time_to_read(budget: Budget, tmp_path: Path) -> None:
    async with house(tmp_path, calling("fetch")) as harness:
        async with harness.process(budget=budget) as chat:
            gate = await reviewing(chat)
        harness.clock.advance(61.0)
        async with harness.process() as chat:
            await chat.answer(gate, allow="once", text=LEFT)  # it is taken, so the gate was open
            await chat.turn(gate.turn)
            assert ((await part_of(chat)).state, await count(chat, LimitReached)) == ("completed", 1)
        assert (harness.told(), harness.leaked(), len(harness.provider.seen)) == ([LEFT], [], 2)
