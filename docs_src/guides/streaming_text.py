import asyncio

from everturn import Agent, tool
from everturn.events import CallFinished, CallStarted, TextDelta
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def weather(city: str) -> str:
    """The weather in a city."""
    return "rain"


model = ScriptedModel(calls(call("weather", city="Rome")), say("Take a coat."))
agent = Agent(model, tools=[weather])


async def main() -> None:
    async with agent.stream("What should I wear in Rome?") as run:
        async for text in run.text_stream():
            print(text, end="", flush=True)
    print()

    async with agent.stream("And now?") as run:
        async for event in run:
            match event:
                case CallStarted():
                    print("a tool runs")
                case CallFinished():
                    print("a tool has a result")
                case TextDelta(text=text):
                    print("text:", text)
                case _:
                    pass
        result = await run.result()
    print(result.status, result.output)


if __name__ == "__main__":
    asyncio.run(main())
