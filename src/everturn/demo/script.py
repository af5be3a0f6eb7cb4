"""Script of the demo: a question, three tools that only pretend, and a scripted model.

The script ends as a model would: it reads the result of its last call, and answers accordingly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from everturn import Progress, tool
from everturn.core.chunks import FinishChunk, UsageChunk
from everturn.core.parts import Usage
from everturn.core.ports import Model, Tool
from everturn.core.requests import ModelRequest, RequestResult
from everturn.models.scripted import Batch, ScriptedModel, call, calls, say, think

QUESTION = "Invite Ada and Grace to lunch on Friday, outside if it is sunny."


def make_tools(moment: float) -> list[Tool]:
    """Return the tools of the demo; `moment` is the number of seconds between two progress reports."""

    @tool(read_only=True)
    async def weather(city: str, day: str) -> AsyncIterator[Progress | str]:
        """Look up the weather of a day."""
        for doing in (f"asking the station in {city}", "looking at the clouds", "waiting for the wind"):
            yield Progress(doing)
            await asyncio.sleep(moment)
        yield "sunny, 22 degrees, hardly any wind"

    @tool(read_only=True)
    async def calendar(day: str, people: list[str]) -> AsyncIterator[Progress | str]:
        """Find out when people are free."""
        for name in people:
            yield Progress(f"reading {name}'s {day}")
            await asyncio.sleep(1.3 * moment)
        yield f"{' and '.join(people)} are free from 12:30 to 14:00"

    @tool(approval="always")
    async def send_invitation(to: list[str], place: str, day: str, time: str) -> AsyncIterator[Progress | str]:
        """Send an invitation; it cannot be taken back."""
        for doing in ("writing the mail", "handing it to the server"):
            yield Progress(doing)
            await asyncio.sleep(moment)
        yield f"sent to {' and '.join(to)}: {day} at {time}, {place}"

    return [weather, calendar, send_invitation]


def make_model(pace: float) -> Model:
    """Return the scripted model, with `pace` seconds between two words."""
    return ScriptedModel(_look_up, _invite, _close, name="scripted", pace=pace)


def _look_up(_: ModelRequest) -> list[Batch]:
    weather = call("weather", city="Lisbon", day="Friday")
    calendar = call("calendar", day="Friday", people=["Ada", "Grace"])
    return [
        *think("Two things to find out, and neither needs the other: the weather, and when both are free."),
        *say("I will look at the weather and at both calendars."),
        [UsageChunk(Usage(input=212, output=61))],
        *calls(weather, calendar),
    ]


def _invite(_: ModelRequest) -> list[Batch]:
    people = ["ada@example.org", "grace@example.org"]
    return [
        *think("Sunny, and free from 12:30. The museum has a garden."),
        *say("Friday will be sunny, and both are free from 12:30. This is the invitation I would send."),
        [UsageChunk(Usage(input=331, output=74))],
        *calls(call("send_invitation", to=people, place="the museum garden", day="Friday", time="12:30")),
    ]


def _close(request: ModelRequest) -> list[Batch]:
    result = next(part for part in request.messages[-1].parts if isinstance(part, RequestResult))
    note, _, output = result.text.partition("\n") if result.text.startswith("[") else ("", "", result.text)
    reason = result.text.partition("said why: ")[2]
    if reason:
        text = f"Nothing was sent. You said: {reason} Tell me what to change, and I will try again."
    elif result.is_error:
        text = "Nothing was sent. Tell me what to change, and I will try again."
    elif note:
        text = f"Done, with your changes: {output}."
    else:
        text = f"Done: {output}. Bring your sunglasses!"
    return [*say(text), [UsageChunk(Usage(input=422, output=29)), FinishChunk("stop")]]
