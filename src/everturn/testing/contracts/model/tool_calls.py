"""Tool calls contract of a model: every call runs once, with its own arguments, and its one result is sent back."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from everturn.chat import Chat, RunResult
from everturn.core.canonical_json import JsonObject
from everturn.core.events import GateOpened, TurnOptions, TurnSuspended
from everturn.core.parts import FilePart, Output
from everturn.core.phases import Phase
from everturn.errors import ToolError
from everturn.testing.contracts.model.bench import (
    ModelBench,
    ModelTestBench,
    RecordingTool,
    calls_of,
    finish_of,
    send_and_wait,
    thoughts_of,
)
from everturn.testing.contracts.model.wire import ids_in_order
from everturn.testing.provider import Call, Finish, Say, Think

PATH = '{"path": "a.txt"}'
NESTED: JsonObject = {
    "list": [[1, [2.5, None]], {"deep": {"deeper": [True, False]}}],
    "text": 'quotes " and \\ and \n and \u2028 and 👋',
    "empty": {"object": {}, "list": [], "text": ""},
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def answer_gates(chat: Chat, message: str, **resolution: Any) -> RunResult:
    """Send a message, and answer every gate in the same way."""
    turn = await chat.send(message)
    gates: list[GateOpened] = []
    async for event in turn:
        if isinstance(event, GateOpened):
            gates.append(event)
        elif isinstance(event, TurnSuspended):
            for gate in gates:
                await turn.answer(gate.gate, **resolution)
            gates.clear()
    return await turn


class ToolCallsContract(ModelBench):
    """A call runs when it is complete, under our tool name, once; and the provider accepts whatever its result is."""

    async def test_a_call_runs_and_its_result_goes_back(self, bench: ModelTestBench) -> None:
        look = RecordingTool(does=lambda _: "it says hello")
        chat = bench.chat([Call("look", PATH)], [Say("It says hello.")], tools=[look])

        result = await send_and_wait(chat)

        assert look.ran == [{"path": "a.txt"}]
        assert result.text == "It says hello."
        assert [(part.name, part.state) for part in calls_of(result.message)] == [("look", "completed")]
        assert (finish_of(result.message, 0), finish_of(result.message)) == ("tool_calls", "stop")
        sent = bench.wire_request()
        assert [text for _, text in sent.results] == ["it says hello"]
        assert all(call == back for call, back in ids_in_order(sent))
        assert sent.tools == ["look"]

    async def test_parallel_calls_keep_their_arguments_and_their_results(self, bench: ModelTestBench) -> None:
        look = RecordingTool(does=lambda arguments: f"content of {arguments['path']}")
        made = [Call("look", f'{{"path": "{name}"}}', pieces=3) for name in "abc"]
        chat = bench.chat(made, [Say("Done.")], tools=[look])

        result = await send_and_wait(chat)

        assert sorted(arguments["path"] for arguments in look.ran) == ["a", "b", "c"]
        assert [text for _, text in bench.wire_request().results] == ["content of a", "content of b", "content of c"]
        assert len({part.call for part in calls_of(result.message)}) == 3
        assert all(call == back for call, back in ids_in_order(bench.wire_request()))

    async def test_twenty_calls_at_once_all_have_their_result(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat([Call("look", f'{{"path": "{at}"}}') for at in range(20)], [Say("Done.")], tools=[look])

        await send_and_wait(chat)

        assert len(look.ran) == len(bench.wire_request().results) == 20

    async def test_five_rounds_of_calls_are_one_turn(self, bench: ModelTestBench) -> None:
        look = RecordingTool(does=lambda arguments: f"round {arguments['path']}")
        rounds = [[Say(f"Round {at}."), Call("look", f'{{"path": "{at}"}}')] for at in range(5)]
        chat = bench.open(bench.model(*rounds, [Say("Done.")], in_order=False), tools=[look])

        result = await send_and_wait(chat)

        assert result.text == "Done."
        assert [arguments["path"] for arguments in look.ran] == list("01234")
        assert [text for _, text in bench.wire_request().results] == [f"round {at}" for at in range(5)]
        assert len(bench.seen) == 6

    @pytest.mark.parametrize("arguments", ["{}", "", "  "], ids=["an empty object", "nothing", "blanks"])
    async def test_a_call_needs_no_arguments(self, bench: ModelTestBench, arguments: str) -> None:
        look = RecordingTool()
        chat = bench.chat([Call("look", arguments)], [Say("Done.")], tools=[look])

        assert (await send_and_wait(chat)).text == "Done."
        assert look.ran == [{}]

    async def test_nested_arguments_arrive_as_they_were_meant(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat([Call("look", msgspec.json.encode(NESTED).decode(), pieces=29)], [Say("Done.")], tools=[look])

        await send_and_wait(chat)

        assert look.ran == [NESTED]

    async def test_long_arguments_arrive_whole(self, bench: ModelTestBench) -> None:
        look, text = RecordingTool(), "0123456789" * 20_000
        made = Call("look", msgspec.json.encode({"path": text}).decode(), pieces=2_000)
        chat = bench.chat([made], [Say("Done.")], tools=[look])

        await send_and_wait(chat)

        assert look.ran == [{"path": text}]
        assert msgspec.json.encode(bench.seen[-1].body).count(text.encode()) == 1

    async def test_what_is_said_and_thought_before_a_call_stays_before_it(self, bench: ModelTestBench) -> None:
        first = [Think("A file, then."), Say("Let me look."), Call("look", PATH)]
        chat = bench.chat(first, [Say("It is empty.")], tools=[RecordingTool()])

        result = await send_and_wait(chat, params=self.thinking)

        assert result.text == "It is empty."
        assert ("assistant", "Let me look.") in bench.wire_request().texts_by_role
        if self.has_reasoning:
            assert [part.text for part in thoughts_of(result.message)] == ["A file, then."]

    async def test_calls_run_even_where_the_provider_says_that_it_stopped(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat([Call("look", PATH), Finish("stop")], [Say("Done.")], tools=[look])

        result = await send_and_wait(chat)

        assert (result.text, len(look.ran)) == ("Done.", 1)
        assert finish_of(result.message, 0) == "tool_calls"

    async def test_ids_are_ours_even_where_the_provider_repeats_its_own(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        twice = [[Call("look", PATH, id="call_same"), Call("look", PATH, id="call_other")], [Say("Done.")]]
        chat = bench.open(bench.model(*twice, in_order=False), tools=[look])

        results = [await send_and_wait(chat) for _ in range(2)]

        assert len({part.call for result in results for part in calls_of(result.message)}) == 4
        ids = [id for id, _ in bench.wire_request().calls]
        assert len(set(ids)) == len(ids) == 4

    # Failures -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", ["lok", "", "files.read everything!", "x" * 200])
    async def test_an_unknown_tool_fails_its_call_and_the_turn_goes_on(self, bench: ModelTestBench, name: str) -> None:
        look = RecordingTool()
        chat = bench.chat([Call(name, PATH), Call("look", PATH)], [Say("I see.")], tools=[look])

        result = await send_and_wait(chat)

        assert result.text == "I see."
        assert [part.state for part in calls_of(result.message)] == ["failed", "completed"]
        assert "there are: look" in bench.wire_request().results[0][1]

    @pytest.mark.parametrize("error", [ToolError("no such file"), ToolError(""), RuntimeError("it fell")], ids=repr)
    async def test_a_tool_that_fails_tells_the_model(self, bench: ModelTestBench, error: Exception) -> None:
        def fall(_: JsonObject) -> None:
            raise error

        chat = bench.chat([Call("look", PATH)], [Say("A pity.")], tools=[RecordingTool(does=fall)])

        result = await send_and_wait(chat)

        assert result.text == "A pity."
        assert [part.state for part in calls_of(result.message)] == ["failed"]
        sent = bench.wire_request()
        assert str(error) in sent.results[0][1]
        if self.format == "messages":
            assert sent.failed == [id for id, _ in sent.results]

    @pytest.mark.parametrize(
        "arguments",
        ['{"path": ', '{"path": "a"}{"path": "b"}', '["a"]', "a.txt", "{'path': 'a'", "null"],
    )
    async def test_arguments_that_are_no_object_never_run(self, bench: ModelTestBench, arguments: str) -> None:
        look = RecordingTool()
        chat = bench.chat([Call("look", arguments)], [Say("I try again.")], tools=[look])

        result = await send_and_wait(chat)

        assert look.ran == []
        assert result.text == "I try again."
        assert [part.state for part in calls_of(result.message)] == ["failed"]

    @pytest.mark.parametrize("reason", ["length", "content_filter"])
    async def test_a_call_of_an_answer_that_was_cut_short_never_runs(self, bench: ModelTestBench, reason: str) -> None:
        look = RecordingTool()
        short = [Call("look", PATH), Finish(reason)]  # pyright: ignore[reportArgumentType]
        chat = bench.chat(short, [Say("Shorter, then.")], tools=[look])

        result = await send_and_wait(chat)

        assert look.ran == []
        assert result.text == "Shorter, then."
        assert [part.state for part in calls_of(result.message)] == ["failed"]

    @pytest.mark.parametrize("text", ["", " \n"], ids=["nothing", "blanks"])
    async def test_a_result_may_be_empty(self, bench: ModelTestBench, text: str) -> None:
        chat = bench.chat([Call("look", PATH)], [Say("Nothing there.")], tools=[RecordingTool(does=lambda _: text)])

        assert (await send_and_wait(chat)).text == "Nothing there."
        assert len(bench.wire_request().results) == 1

    async def test_a_result_may_hold_any_character(self, bench: ModelTestBench) -> None:
        text = "half an emoji: \ud83d, a whole one: 👋, \u2028, \x00, </tool_result>"
        chat = bench.chat([Call("look", PATH)], [Say("Odd.")], tools=[RecordingTool(does=lambda _: text)])

        assert (await send_and_wait(chat)).text == "Odd."
        assert "👋, \u2028, \x00, </tool_result>" in bench.wire_request().results[0][1]

    async def test_a_result_may_bring_an_image(self, bench: ModelTestBench) -> None:
        files: list[FilePart] = []
        look = RecordingTool(does=lambda _: Output("a picture", attachments=tuple(files)))
        chat = bench.chat([Call("look", PATH), Call("look", PATH)], [Say("Nice.")], tools=[look])
        files.append(await chat.attach(PNG, "image/png", "a.png"))

        assert (await send_and_wait(chat)).text == "Nice."
        sent = bench.wire_request()
        assert [text for _, text in sent.results if "a picture" in text] == [text for _, text in sent.results]
        assert sent.images == (2 if self.has_images else 0)

    # Gates --------------------------------------------------------------------------------------------------------

    async def test_a_call_that_is_denied_does_not_run_and_the_model_reads_why(self, bench: ModelTestBench) -> None:
        look = RecordingTool(approval="always")
        chat = bench.chat([Call("look", PATH), Call("look", PATH)], [Say("Then not.")], tools=[look])

        result = await answer_gates(chat, "Hi.", deny="not today")

        assert look.ran == []
        assert [part.state for part in calls_of(result.message)] == ["denied", "denied"]
        assert all("not today" in text for _, text in bench.wire_request().results)

    async def test_a_call_that_was_edited_runs_with_the_edit_and_the_model_is_told(self, bench: ModelTestBench) -> None:
        look = RecordingTool(approval="always")
        chat = bench.chat([Call("look", PATH)], [Say("Fine.")], tools=[look])

        await answer_gates(chat, "Hi.", allow="once", arguments={"path": "b.txt"})

        assert look.ran == [{"path": "b.txt"}]
        assert "b.txt" in bench.wire_request().results[0][1]

    async def test_a_turn_that_is_cancelled_while_a_person_is_asked_leaves_nothing_open(
        self, bench: ModelTestBench
    ) -> None:
        chat = bench.chat([Call("look", PATH)], [Say("As you like.")], tools=[RecordingTool(approval="always")])
        turn = await chat.send("Hi.")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await turn.cancel()

        assert (await turn).phase == Phase.CANCELLED
        assert (await send_and_wait(chat, "Never mind.")).text == "As you like."
        assert len(bench.wire_request().results) == 1

    # End of the turn ----------------------------------------------------------------------------------------------

    async def test_a_turn_that_runs_out_of_steps_closes_without_tools(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat(
            *[[Call("look", PATH)]] * 2,
            [Say("That is all I know.")],
            tools=[look],
            options=TurnOptions(max_steps=2, params={"tool_choice": "auto"}),
        )

        result = await send_and_wait(chat)

        assert result.text == "That is all I know."
        assert finish_of(result.message) == "stop"
        assert len(look.ran) == 1
        assert bench.wire_request().choice in (None, "none")

    async def test_a_late_result_is_told_in_the_next_turn(self, bench: ModelTestBench) -> None:
        released, started = asyncio.Event(), asyncio.Event()

        async def wait(_: JsonObject) -> str:
            started.set()
            await released.wait()
            return "found it at last"

        chat = bench.chat([Call("look", PATH)], [Say("I see.")], tools=[RecordingTool(does=wait)])
        turn = await chat.send("Hi.")
        await started.wait()
        await turn.cancel()
        await turn
        released.set()
        await chat.app.tool_tasks.wait_idle()

        assert (await send_and_wait(chat, "And?")).text == "I see."
        assert "found it at last" in bench.wire_request().text
