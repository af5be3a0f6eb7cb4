"""What servers ask in the middle of a call: a person is shown it, and a call that waits can be gone on with elsewhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from everturn.core.gates import GateResolution
from everturn.core.ports import Question
from everturn.errors import OutcomeUnknown, ToolError
from everturn.mcp.elicitation import (
    ElicitationRequest,
    ElicitationRound,
    make_elicitation_answer,
    make_question,
    make_sampling_request,
    next_round,
)
from tests.helpers.hostile_mcp import Person, hostile, house, noted

both = pytest.mark.parametrize("mode", ["plain", "modern"])


def received_answer(mode: str, text: str) -> Any:
    """What the server was told."""
    came = json.loads(text)
    return came["given"]["who"] if mode == "modern" else came


@both
async def test_an_elicitation_is_a_form_for_a_person(ledger: Path, mode: str):
    person = Person()
    async with house(hostile(ledger, mode)) as home:
        output = await home.call("ask", person)
    [question] = person.questions
    assert question.text == "Server h asks: who?"
    assert question.schema["required"] == ["name"]
    assert received_answer(mode, output.text) == {"action": "accept", "content": {"name": "Ada"}}


@both
async def test_a_person_may_decline(ledger: Path, mode: str):
    person = Person(lambda question: GateResolution(False, reason="not today"))
    async with house(hostile(ledger, mode)) as home:
        output = await home.call("ask", person)
    assert received_answer(mode, output.text) == {"action": "decline", "_meta": {"reason": "not today"}}


@both
async def test_an_address_is_shown_and_not_opened(ledger: Path, mode: str):
    person = Person(lambda question: GateResolution(True))
    async with house(hostile(ledger, mode)) as home:
        output = await home.call("ask_url", person)
    assert "https://example.org/login" in person.questions[0].text
    assert person.questions[0].schema == {}
    assert received_answer(mode, output.text) == {"action": "accept"}


@both
async def test_a_model_is_asked_for_a_server_only_once_a_person_has_seen_the_prompt(ledger: Path, mode: str):
    person = Person(lambda question: GateResolution(True))
    async with house(hostile(ledger, mode)) as home:
        output = await home.call("sample", person)
    assert "say hi" in person.questions[0].text
    [turn] = person.turns
    assert (turn.prompt, turn.tools, turn.max_steps) == ("say hi", (), 1)
    assert received_answer(mode, output.text)["content"] == {"type": "text", "text": "hi"}


@both
async def test_no_model_is_asked_when_a_person_says_no(ledger: Path, mode: str):
    person = Person(lambda question: GateResolution(False, reason="no"))
    async with house(hostile(ledger, mode)) as home:
        if mode == "modern":
            with pytest.raises(ToolError, match="the request was not sent to a model: no"):
                await home.call("sample", person)
        else:
            assert "not sent to a model" in (await home.call("sample", person)).text
    assert person.turns == []


async def test_a_flood_of_questions_is_stopped_after_eight(ledger: Path):
    person = Person()
    async with house(hostile(ledger)) as home:
        came = json.loads((await home.call("ask_often", person, n=100)).text)
    assert len(person.questions) == 8
    assert [answer["action"] for answer in came] == ["accept"] * 8 + ["decline"] * 92


async def test_a_flood_of_rounds_is_stopped_after_eight_questions_and_ten_rounds(ledger: Path):
    person = Person()
    async with house(hostile(ledger, "modern")) as home:
        with pytest.raises(ToolError, match="it asked 10 times over"):
            await home.call("ask_often", person)
    assert len(person.questions) == 8
    assert len(noted(ledger)) == 11


async def test_with_two_calls_under_way_an_older_server_is_declined_for_nobody_knows_who_is_asked(ledger: Path):
    person = Person()
    async with house(hostile(ledger)) as home:
        slow = asyncio.create_task(home.call("slow", seconds=0.5))
        await home.until(lambda: bool(noted(ledger)))
        output = await home.call("ask", person)
        await slow
    assert json.loads(output.text)["action"] == "decline"
    assert person.questions == []


async def test_the_clock_of_a_call_stands_still_while_a_person_thinks(ledger: Path):
    class Slow(Person):
        async def _ask(self, question: Question) -> GateResolution:
            await asyncio.sleep(0.8)
            return await super()._ask(question)

    async with house(hostile(ledger, timeout=0.4)) as home:
        output = await home.call("ask", Slow())
    assert json.loads(output.text)["action"] == "accept"


class Away(Person):
    """Nobody is there: the tool is suspended."""

    async def _ask(self, question: Question) -> GateResolution:
        self.questions.append(question)
        return await asyncio.get_running_loop().create_future()


async def test_a_call_that_waits_is_gone_on_with_by_another_process(ledger: Path):
    away = Away()
    async with house(hostile(ledger, "modern")) as home:
        call = asyncio.create_task(home.call("ask", away))
        await home.until(lambda: bool(away.questions))
        call.cancel()
        await asyncio.wait({call})
    person = Person(kept=away.kept)
    async with house(hostile(ledger, "modern")) as home:
        output = await home.call("ask", person)
    assert [question.name for question in person.questions] == [away.questions[0].name] == ["r1.who"]
    came = json.loads(output.text)
    assert (came["state"], came["given"]["who"]["content"]) == ("sealed", {"name": "Ada"})
    assert noted(ledger) == ["ask", "ask"]  # the first leg, and the one with the answers


async def test_a_call_whose_answers_were_on_their_way_is_not_gone_on_with(ledger: Path):
    person = Person()
    async with house(hostile(ledger, "modern")) as home:
        await home.call("ask", person)
        with pytest.raises(OutcomeUnknown):
            await home.call("ask", Person(kept=person.kept))
    assert len(noted(ledger)) == 2


# Pure -----------------------------------------------------------------------------------------------------------


def elicit(**params: Any) -> ElicitationRequest:
    return ElicitationRequest("r1.a", "elicitation/create", params)


@pytest.mark.parametrize(
    "params",
    [
        {"message": "x", "requestedSchema": {"type": "array"}},
        {"message": "x"},
        {"message": "x", "mode": "url", "url": "javascript:alert(1)"},
        {"message": "x", "mode": "url", "url": "https://a\u202eb"},
        {"message": "x", "mode": "url"},
    ],
)
def test_what_cannot_be_shown_is_not_asked(params: dict[str, Any]):
    assert make_question("h", elicit(**params)) is None


@pytest.mark.parametrize("result", ["[1]", "{", '{"a": {"b": 1}}', '{"a": [1]}'])
def test_a_form_that_is_filled_in_wrongly_is_a_no(result: str):
    assert make_elicitation_answer(elicit(message="x"), GateResolution(True, result=result))["action"] == "decline"


def test_a_prompt_that_is_too_long_to_be_shown_is_no_turn():
    def message(text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    assert make_sampling_request(message("x" * 10_000)) is None
    assert make_sampling_request({"messages": "all"}) is None
    assert make_sampling_request({**message("x"), "systemPrompt": "y" * 1000}) is None


@pytest.mark.parametrize(
    "result",
    [
        {"inputRequests": {"a": {"method": "files/read"}}},
        {"inputRequests": {"a": 7}},
        {},
        {"requestState": 7},
        {"requestState": "x" * 300_000},
        {"inputRequests": {f"k{at}": {"method": "roots/list"} for at in range(100)}},
        {"inputRequests": {f"k{at}": {"method": "sampling/createMessage"} for at in range(9)}},
    ],
)
def test_a_round_that_makes_no_sense_ends_the_call(result: dict[str, Any]):
    assert isinstance(next_round(result, None), str)


def test_rounds_are_counted():
    result = {"requestState": "s"}
    assert isinstance(next_round(result, ElicitationRound(9)), ElicitationRound)
    assert isinstance(next_round(result, ElicitationRound(10)), str)
