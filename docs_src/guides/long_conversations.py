import asyncio
from collections.abc import Sequence

from everturn import Agent, App
from everturn.events import SummaryPart
from everturn.models import ModelRequest
from everturn.testing import ScriptedModel, say

NOTES = "There are many trains, and all of them take about three hours. " * 8


def answer(request: ModelRequest) -> Sequence[object]:
    is_summary = request.system.startswith("You write the summary")
    return say("Goal: a trip to Lisbon by train." if is_summary else NOTES)


agent = Agent(ScriptedModel(*[answer] * 5), name="travel", context="auto")


async def main() -> None:
    async with App(agents=[agent]) as app:
        chat = app.chat("trip", agent="travel")
        for question in ("To Lisbon, by train.", "Which train?", "And back?"):
            await chat.run(question)
        print([part.kind for part in (await chat.context()).parts])
        await (await chat.compact(focus="the dates")).result()
        print([part.kind for part in (await chat.context()).parts])
        [summary] = [
            (message, part)
            for message in await chat.messages()
            for part in message.parts
            if isinstance(part, SummaryPart)
        ]
        print(f"{summary[1].messages} messages:", summary[1].text)
        print([quote.text for quote in summary[1].quotes])
        await chat.delete(summary[0])  # undone: requests have the whole history again


if __name__ == "__main__":
    asyncio.run(main())
