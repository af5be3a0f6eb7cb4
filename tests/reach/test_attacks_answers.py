"""Ways that were found to answer what was not asked, in somebody else's name or without end; each of them is closed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, manual, tool
from everturn.app import App
from everturn.core.events import GateOpened, GateResolved
from everturn.core.gate_rows import MAX_RESULT_LENGTH
from everturn.core.ports import Question, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.store_ports import Store
from everturn.errors import AnswerUnfit, ConfigError
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools import client_tool
from tests.helpers.conversations import Talk

AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}, "required": ["amount"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


@tool(idempotent=True)
async def pay(ctx: ToolContext) -> str:
    """Pay what a person says, at most 10."""
    resolution = await ctx.ask(Question("How much?", schema=AMOUNT))
    return f"paid {json.loads(resolution.result or '')['amount']}" if resolution.allowed else "paid nothing"


async def test_a_form_that_is_answered_as_failed_is_not_taken_for_one_that_is_filled_in(store: Store) -> None:
    talk = Talk(pay, store=store)
    async with talk.process(calls(call("pay")), say("Done.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        for result in ('{"amount": 1000000}', '{"amount": 1}'):
            with pytest.raises(AnswerUnfit, match="fill it in, or deny it"):
                await chat.answer(gate, result=result, failed=True)
        await chat.answer(gate, result='{"amount": 2}')
        await turn
    assert [outcome.output.text for outcome in await talk.settled()] == ["paid 2"]


class Yes:
    """Allows whatever is asked."""

    name = "yes"

    def on_gate(self, ctx: Any) -> None:
        ctx.allow()


@pytest.mark.parametrize("kind", ["client", "form"])
async def test_a_plugin_that_allows_everything_answers_nothing_that_needs_a_result(kind: str) -> None:
    ring = client_tool("ring", "Ring.", NOTHING, answer=AMOUNT)
    model, store = ScriptedModel(calls(call("ring" if kind == "client" else "pay")), say("Done.")), MemoryStore()
    talk = Talk(store=store)
    app = App(model, tools=[ring, pay], plugins=[Yes()], store=store)
    async with Chat(model, app=app, session="s") as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        assert (gate.kind, await talk.events(GateResolved), await talk.settled()) == (kind, [], [])
        if kind == "client":
            await chat.claim(gate, "page")
        await chat.answer(gate, result='{"amount": 3}', claim="page" if kind == "client" else "")
        assert (await turn).text == "Done."
    [came] = await talk.settled()
    assert came.output.text == ('{"amount": 3}' if kind == "client" else "paid 3")


@pytest.mark.parametrize("kind", ["client", "form", "by hand"])
async def test_an_answer_has_an_end_and_a_shorter_one_is_taken_afterwards(kind: str) -> None:
    @tool(idempotent=True)
    async def form(ctx: ToolContext) -> str:
        return (await ctx.ask(Question("Well?"))).result or ""

    @tool
    async def hand() -> str:
        raise AssertionError

    tools: dict[str, Any] = {"client": client_tool("client", "Ring.", NOTHING), "form": form, "by hand": manual(hand)}
    talk = Talk(tools[kind])
    async with talk.process(calls(call(tools[kind].spec.name)), say("Done.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        also: dict[str, Any] = {"claim": "page"} if kind == "client" else {}
        if also:
            await chat.claim(gate, "page")
        with pytest.raises(AnswerUnfit, match="at most 4,000,000 characters"):
            await chat.answer(gate, result="x" * (MAX_RESULT_LENGTH + 1), **also)
        await chat.answer(gate, result="short", **also)
        assert (await turn).text == "Done."
    assert [outcome.output.text for outcome in await talk.settled()] == ["short"]


@pytest.mark.parametrize("by", ["everturn", "plugin:x", "plugin:"])
async def test_nobody_answers_or_claims_in_the_name_of_the_app_or_a_plugin(by: str) -> None:
    talk = Talk(client_tool("ring", "Ring.", NOTHING))
    async with talk.process(calls(call("ring")), say("Done.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        with pytest.raises(ConfigError, match="pass the id of the person who answers"):
            await chat.answer(gate, deny="not known", by=by)
        with pytest.raises(ConfigError, match="pass the id of the person who answers"):
            await chat.claim(gate, by)
        await chat.answer(gate, deny="not known", by="ada")
        await turn
    [came] = await talk.settled()
    assert (came.state, "not known" in came.output.text) == ("failed", True)


class Asker:
    """Asks what it is made for."""

    spec = ToolSpec("asker", "Ask.", NOTHING, idempotent=True)

    def __init__(self, question: Any) -> None:
        self.question = question

    def validate(self, arguments: Any) -> None:
        pass

    async def run(self, arguments: Any, context: ToolContext) -> str:
        return (await context.ask(self.question)).result or ""


WRONG: dict[str, tuple[Any, str]] = {
    "no end": (Question("q", timeout=float("inf")), "timeout=inf: seconds"),
    "no number": (Question("q", timeout=float("nan")), "timeout=nan: seconds"),
    "too long": (Question("q", timeout=1e300), "seconds, at most"),
    "before now": (Question("q", timeout=-1.0), "timeout=-1.0: seconds"),
    "an endless lease": (Question("q", kind="client", lease=float("inf")), "lease=inf: seconds, at most 3600"),
    "another kind": (Question("q", kind="call"), "must be 'form' or 'client'"),  # pyright: ignore[reportArgumentType]
    "bytes": (Question(b"q"), "a question must be a string"),  # pyright: ignore[reportArgumentType]
    "a book": (Question("q" * 100_001), "at most 100,000 characters"),
    "a list": (Question("q", schema=["x"]), "must be an object"),  # pyright: ignore[reportArgumentType]
    "no JSON": (Question("q", schema={"x": object()}), "plain JSON"),
    "no question": ("q", "not a str"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_question_that_could_not_be_answered_or_read_again_is_an_error_in_the_tool_that_asks(
    wrong: str, tmp_path: Path
) -> None:
    question, text = WRONG[wrong]
    store = SqlStore.sqlite(tmp_path / "store.db")
    try:
        talk = Talk(Asker(question), store=store)
        await talk.tell(calls(call("asker")), say("Done."))
        [came] = await talk.settled()
        assert (came.state, await talk.events(GateOpened)) == ("failed", [])
        assert text in came.output.text
    finally:
        await store.aclose()
