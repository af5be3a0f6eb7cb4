"""Guardrails and appends at the start of a turn, stopped after every event: what was refused stays refused, and what has
not passed is nowhere.
"""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Chat, input_guardrail, output_guardrail
from everturn.core.events import InputRefused, MessageAdded, StepFinished
from everturn.core.hooks import OUTPUT_BUFFERS, OutputBuffer
from everturn.core.parts import TextPart
from everturn.testing import call, calls, say, think
from tests.helpers.crash_harness import Story, World, check, entries_in, plain, tell, watch
from tests.helpers.crash_scenarios import model, send_message

BAD, CANARY = "my password is hunter2", "078-05-1120"


@input_guardrail
def no_secrets(ctx: Any, message: Any) -> None:
    """Refuse passwords."""
    if "password" in message.text:
        ctx.refuse("I cannot help with that.")


class Retrieval:
    """Appends what it found before the first request."""

    async def on_turn_start(self, ctx: Any) -> None:
        await ctx.append("found: 42", role="notice")
        await ctx.append("found: 43", role="notice")


async def two_messages(chat: Chat, world: World) -> None:
    await watch(await chat.send(BAD, key="1"))
    await watch(await chat.send("hello", key="2"))


def checked(buffer: OutputBuffer, *, refuses: bool) -> Story:
    @output_guardrail(buffer=buffer)
    def no_ssn(ctx: Any, text: str) -> str | None:
        if refuses and CANARY in text:
            ctx.refuse("I may not say that.")
        return text.replace(CANARY, "***")

    answer = [think("Well."), say(f"One. It is {CANARY}. Two."), calls(call("pay", amount=3))]
    name = f"{'refused' if refuses else 'replaced'} output, buffer {buffer}"
    return Story(name, model(answer, say("Done.")), send_message(), plugins=lambda _: [no_ssn])


REFUSED_INPUT = Story(
    "refused input", model(say("Hi."), say("Hi.")), two_messages, plugins=lambda _: [Retrieval(), no_secrets]
)
STORIES = [
    REFUSED_INPUT,
    *(checked(buffer, refuses=refuses) for buffer in OUTPUT_BUFFERS for refuses in (False, True)),
]


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
async def test_stopped_at_any_event_it_ends_as_if_it_had_not_been(story: Story, before_next: bool) -> None:
    whole = await tell(story)
    await check(whole)
    expected, count = plain(await entries_in(whole)), len(await entries_in(whole))
    for stop in range(count):
        world = await tell(story, lives=stop, before_next=before_next)
        await check(world)
        log = await entries_in(world)
        assert CANARY not in str(log)
        assert BAD not in str(world.requests)
        unknown = any(event["type"] == "CallFinished" and event["state"] == "outcome_unknown" for event in plain(log))
        assert unknown or plain(log) == expected, f"stopped at {stop}"


async def test_a_refused_turn_has_its_refusal_once_and_no_request() -> None:
    whole = await tell(REFUSED_INPUT)
    log = [entry.event for entry in await entries_in(whole)]
    [refused] = [event for event in log if isinstance(event, InputRefused)]
    [answer, _] = [event for event in log if isinstance(event, StepFinished)]
    assert (answer.turn, answer.parts) == (refused.turn, (TextPart("I cannot help with that."),))
    assert len(whole.requests) == 1
    added = [event.message.id for event in log if isinstance(event, MessageAdded)]
    assert [name.partition(".")[2] for name in added] == ["Retrieval.start.0", "Retrieval.start.1"]


@pytest.mark.parametrize("buffer", OUTPUT_BUFFERS)
async def test_no_call_of_a_refused_step_runs(buffer: OutputBuffer) -> None:
    assert (await tell(checked(buffer, refuses=True))).done == {}
    assert sum((await tell(checked(buffer, refuses=False))).done.values()) == 1
