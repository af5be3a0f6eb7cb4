"""History contract of a model: what is kept between steps, turns, branches and models, and after a plugin
changed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import pytest

from everturn.core.events import TurnSuspended
from everturn.core.hooks import RequestContext, StepContext
from everturn.core.messages import Role
from everturn.core.options import Prompt
from everturn.core.parts import FilePart, NoticePart, ReasoningPart, TextPart
from everturn.core.ports import Model
from everturn.core.requests import RequestCall, RequestMessage, RequestPart, RequestResult
from everturn.models.registry import get_model
from everturn.running.drive_setup import TurnSettings
from everturn.testing.contracts.model.bench import (
    QUICK,
    AwaitedStep,
    ModelBench,
    ModelTestBench,
    RecordingTool,
    calls_of,
    send_and_wait,
)
from everturn.testing.provider import Call, Hang, Item, Pause, Raw, Redacted, Say, Think

PATH = '{"path": "a.txt"}'
CROWD = 64
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
OTHERS = {"compatible": {}, "anthropic": BUDGET, "openai": {}}  # vendors of all formats, and how to make them think

Change = Callable[[list[RequestMessage]], Sequence[RequestMessage]]


def user(*parts: RequestPart) -> RequestMessage:
    """A person's message."""
    return RequestMessage("user", parts)


def assistant(*parts: RequestPart) -> RequestMessage:
    """An answer."""
    return RequestMessage("assistant", parts)


def results(*calls: str) -> RequestMessage:
    """The results of these calls."""
    return RequestMessage("tool", tuple(RequestResult(call, "look", f"result of {call}") for call in calls))


def called(call: str, arguments: str = PATH) -> RequestCall:
    """A call of this id."""
    return RequestCall(call, "look", arguments)


ODD_ID = "ü/ 1" * 30
LOOK = user(TextPart("Look."))
CHANGES: dict[str, Change] = {
    "a result without a call": lambda messages: [LOOK, results("c1"), *messages],
    "a result first of all": lambda messages: [results("c1"), *messages],
    "a call without a result": lambda messages: [LOOK, assistant(called("c1")), *messages],
    "a call at the end": lambda messages: [*messages, assistant(called("c1"))],
    "a call twice": lambda messages: [LOOK, *[assistant(called("c1")), results("c1")] * 2, *messages],
    "a call twice in one message": lambda messages: [
        LOOK,
        assistant(called("c1"), called("c1")),
        results("c1"),
        *messages,
    ],
    "a result twice": lambda messages: [LOOK, assistant(called("c1")), results("c1", "c1"), *messages],
    "a result twice, apart": lambda messages: [LOOK, assistant(called("c1")), results("c1"), results("c1"), *messages],
    "results in another order": lambda messages: [
        LOOK,
        assistant(called("c1"), called("c2")),
        results("c2", "c1"),
        *messages,
    ],
    "one result of two": lambda messages: [LOOK, assistant(called("c1"), called("c2")), results("c2"), *messages],
    "a result far away": lambda messages: [LOOK, assistant(called("c1")), *messages, results("c1"), LOOK],
    "a result before its call": lambda messages: [LOOK, results("c1"), assistant(called("c1")), *messages],
    "a person's call": lambda messages: [user(TextPart("x"), called("c1")), results("c1"), *messages],
    "a person's thought": lambda messages: [user(TextPart("x"), ReasoningPart("hm")), *messages],
    "broken arguments": lambda messages: [LOOK, assistant(called("c1", '{"path": ')), results("c1"), *messages],
    "an id that nobody takes": lambda messages: [LOOK, assistant(called(ODD_ID)), results(ODD_ID), *messages],
    "empty messages": lambda messages: [
        user(),
        assistant(),
        RequestMessage("tool", ()),
        *messages,
        assistant(),
        user(),
    ],
    "blank texts": lambda messages: [user(TextPart(" ")), assistant(TextPart("")), user(TextPart("")), *messages],
    "a thought alone": lambda messages: [*messages, assistant(ReasoningPart("hm")), LOOK],
    "an answer first": lambda messages: [assistant(TextPart("Welcome.")), *messages],
    "an answer last": lambda messages: [*messages, assistant(TextPart("I was about to say "))],
    "two answers in a row": lambda messages: [*messages, *[assistant(TextPart("One."))] * 2, *messages],
    "two people in a row": lambda messages: [*messages, *messages],
    "a notice": lambda messages: [*messages, user(NoticePart("info", "The battery is low."))],
    "a file in an answer": lambda messages: [LOOK, assistant(FilePart("none", "image/png", 1, "a.png")), *messages],
    "nothing": lambda _: [],
}


class HistoryRewriter:
    """A plugin that replaces the conversation."""

    name = "rewrites"

    def __init__(self, change: Change) -> None:
        self._change = change

    def on_before_request(self, ctx: RequestContext) -> None:
        """Replace the messages."""
        ctx.set_request_messages(self._change(ctx.body.messages))


class ExtraStepPlugin:
    """A plugin that requests another step, once."""

    name = "insists"

    def __init__(self, role: Role) -> None:
        self._role: Role = role

    async def on_after_request(self, ctx: StepContext) -> None:
        """Request it."""
        if ctx.step == 1:
            await ctx.append_message("Look again.", role=self._role)
            await ctx.append_and_request("And again.", role=self._role)


class HistoryContract(ModelBench):
    """Whatever has happened, the provider accepts the next request."""

    # Seals --------------------------------------------------------------------------------------------------------

    async def test_sealed_reasoning_goes_back_in_the_next_step_and_in_the_next_turn(
        self, bench: ModelTestBench
    ) -> None:
        if not self.has_seals:
            pytest.skip("it has no sealed reasoning")
        steps = [Think("A file."), Redacted(), Call("look", PATH)], [Think("Empty."), Say("It is empty.")]
        chat = bench.chat(*steps, [Say("Yes.")], tools=[RecordingTool()])

        await send_and_wait(chat, "Look.", params=self.thinking)
        await send_and_wait(chat, "Sure?", params=self.thinking)

        assert [len(bench.wire_request(at).seals) for at in range(3)] == [0, 2, 3]
        assert bench.wire_request(2).seals[:2] == bench.wire_request(1).seals

    async def test_sealed_reasoning_waits_with_its_turn_for_a_person(self, bench: ModelTestBench) -> None:
        if not self.has_seals:
            pytest.skip("it has no sealed reasoning")
        chat = bench.chat(
            [Think("A file."), Call("look", PATH)], [Say("Fine.")], tools=[RecordingTool(approval="always")]
        )
        turn = await chat.send("Look.", params=self.thinking)
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await turn.answer((await chat.gates())[0], allow="once")

        assert (await turn).text == "Fine."
        assert len(bench.wire_request().seals) == 1

    async def test_sealed_reasoning_goes_to_no_other_model_and_back_to_its_own(self, bench: ModelTestBench) -> None:
        if not self.has_seals:
            pytest.skip("it has no sealed reasoning")
        chat = bench.chat([Think("A file."), Call("look", PATH)], [Say("It is empty.")], tools=[RecordingTool()])
        other = bench.model([Say("I am another.")], name="other")

        await send_and_wait(chat, "Look.", params=self.thinking)
        await send_and_wait(chat, "And you?", model=other, params=self.thinking)
        assert bench.wire_request().seals == []
        await send_and_wait(chat, "And you again?", params=self.thinking)
        assert len(bench.wire_request().seals) == 1

    # Branches -----------------------------------------------------------------------------------------------------

    async def test_a_branch_knows_nothing_of_the_others(self, bench: ModelTestBench) -> None:
        chat = bench.open(bench.model([Call("look", PATH)], [Say("Done.")], in_order=False), tools=[RecordingTool()])
        first = await send_and_wait(chat, "The first.")
        await send_and_wait(chat, "The second.")
        assert first.message is not None

        await (await chat.edit(first.messages[0], "The first, edited."))
        assert [text for role, text in bench.wire_request().texts_by_role if role == "user"] == ["The first, edited."]
        await (await chat.rerun(first.message))
        assert [text for role, text in bench.wire_request().texts_by_role if role == "user"] == ["The first."]
        await chat.fork(first.message)
        await send_and_wait(chat, "The third.")
        assert [text for role, text in bench.wire_request().texts_by_role if role == "user"] == [
            "The first.",
            "The third.",
        ]
        assert len(bench.wire_request().results) == 2

    async def test_two_branches_can_be_answered_at_once(self, bench: ModelTestBench) -> None:
        both = asyncio.Barrier(2)
        look = RecordingTool(does=lambda _: both.wait())
        steps = [Call("look", PATH, id="call_same")], [Say("Done.")]
        chat = bench.open(bench.model([Say("Welcome.")], name="first"), tools=[look])
        start = (await send_and_wait(chat)).message
        assert start is not None
        busy = bench.model(*steps, name="busy", in_order=False)

        turns = [await ask_later for ask_later in (chat.send(text, after=start, model=busy) for text in ("A", "B"))]
        ended = await asyncio.gather(*turns)

        assert [result.text for result in ended] == ["Done.", "Done."]
        assert len({part.call for result in ended for part in calls_of(result.message)}) == 2

    async def test_what_is_asked_again_is_asked_in_the_same_bytes(self, bench: ModelTestBench) -> None:
        schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}
        tools = [RecordingTool(), RecordingTool("files.read", schema=schema)]
        chat = bench.open(bench.model([Call("look", PATH)], [Say("Done.")], in_order=False), tools=tools, system="Hi.")
        await send_and_wait(chat, "The first.")
        second = await send_and_wait(chat, "The second.")
        assert second.message is not None

        await (await chat.rerun(second.message))

        bodies = [msgspec.json.encode(seen.body) for seen in bench.seen]
        assert bodies[4] == bodies[2]

    async def test_many_turns_at_once_share_their_connections(self, bench: ModelTestBench) -> None:
        model = bench.model([Call("look", PATH)], [Say("Done.")], in_order=False)
        chats = [bench.open(model, tools=[RecordingTool()]) for _ in range(CROWD)]

        ended = await asyncio.gather(*(send_and_wait(chat, f"Number {at}.") for at, chat in enumerate(chats)))

        assert [result.text for result in ended] == ["Done."] * CROWD
        assert len(bench.seen) == 2 * CROWD
        before = bench.provider.stats()
        assert before["open_max"] <= CROWD
        await asyncio.gather(*(send_and_wait(chat, "Again.") for chat in chats))
        assert bench.provider.stats()["open_max"] <= CROWD
        for at, result in enumerate(ended):
            assert result.messages[0].text == f"Number {at}."

    async def test_a_connection_is_used_again(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("Done.")])

        for _ in range(5):
            await send_and_wait(chat)

        assert bench.provider.stats()["open_max"] == bench.provider.stats()["open"] == 1

    async def test_a_connection_is_used_again_even_where_an_answer_ends_a_moment_after_its_last_word(
        self, bench: ModelTestBench
    ) -> None:
        if not self.uncounted:
            pytest.skip("there is no stream to slow down")
        chat = bench.chat([Raw(self.uncounted), Pause(0.01)])

        await send_and_wait(chat)
        await send_and_wait(chat)

        await bench.provider.wait_idle()
        assert [seen.is_closed_early for seen in bench.seen] == [False, False]

    async def test_another_process_asks_the_very_same(self, bench: ModelTestBench) -> None:
        step = AwaitedStep([Say("As far as"), Hang()])
        model, tools = bench.model([Think("Hm."), Call("look", PATH)], step, [Say("Done.")]), [RecordingTool()]
        chat = bench.open(model, tools=tools, system="Be brief.")
        turn = await chat.send("Hi.", params=self.thinking)
        await step.wait()
        await chat.aclose()

        settings, store = TurnSettings(prompt=Prompt(agent="Be brief.")), chat.app.store
        other = bench.open(model, tools=tools, settings=settings, store=store, session=chat.session)
        async with other:
            assert (await other.turn(turn.id)).text == "Done."

        bodies = [msgspec.json.encode(seen.body) for seen in bench.seen]
        assert bodies[1] == bodies[2]

    # Others -------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("vendor", OTHERS)
    async def test_models_of_all_formats_go_on_with_what_another_began(
        self, bench: ModelTestBench, vendor: str
    ) -> None:
        look = RecordingTool("files.look")
        steps = [[Think("Hm."), Say("I look."), Call("files_look", PATH), Call("lok", "{oops")], [Say("Done.")]]
        chat = bench.open(bench.model(*steps, in_order=False), tools=[look])
        other: Model = get_model(f"{vendor}:model", base_url=f"{bench.provider.url}/v1", key="k", retry=QUICK)

        for _ in range(2):
            assert (await send_and_wait(chat, "Mine.", params=self.thinking)).text == "Done."
            assert (await send_and_wait(chat, "Another's.", model=other, params=OTHERS[vendor])).text == "Done."
        await send_and_wait(chat, "Mine.", params=self.thinking)

        assert len(look.ran) == 5
        assert len(bench.wire_request().results) == 10

    # Plugins ------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
    async def test_whatever_a_plugin_makes_of_a_conversation_is_accepted(
        self, bench: ModelTestBench, change: Change
    ) -> None:
        chat = bench.chat([Say("Fine.")], tools=[RecordingTool()], plugins=[HistoryRewriter(change)])

        assert (await send_and_wait(chat)).text == "Fine."

        sent = bench.wire_request()
        assert sorted(id for id, _ in sent.calls) == sorted(id for id, _ in sent.results)

    @pytest.mark.parametrize("role", ["user", "notice", "assistant"])
    @pytest.mark.parametrize("first", [[Say("First.")], [Call("look", PATH)], []], ids=["text", "a call", "nothing"])
    async def test_what_a_plugin_appends_is_accepted(
        self, bench: ModelTestBench, first: list[Item], role: Role
    ) -> None:
        chat = bench.chat(
            first, [Say("Second.")], [Say("Third.")], tools=[RecordingTool()], plugins=[ExtraStepPlugin(role)]
        )

        assert (await send_and_wait(chat)).text == "Second."
        assert "And again." in bench.wire_request().text
        assert (await send_and_wait(chat)).text == "Third."

    async def test_what_a_plugin_mends_keeps_the_result_it_has(self, bench: ModelTestBench) -> None:
        mixed = HistoryRewriter(CHANGES["results in another order"])
        await send_and_wait(bench.chat([Say("Fine.")], tools=[RecordingTool()], plugins=[mixed]))

        sent = bench.wire_request()
        assert [text for _, text in sent.results] == ["result of c1", "result of c2"]
        assert [id for id, _ in sent.calls] == [id for id, _ in sent.results]
