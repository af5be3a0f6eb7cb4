import asyncio

from everturn import Agent, App, Prompt, TurnOptions, TurnSettings
from everturn.events import TurnStarted
from everturn.testing import ScriptedModel, say

model = ScriptedModel(say("Bonjour."), name="big")
clerk = Agent(model, name="clerk", instructions="You answer customers.")
settings = TurnSettings(
    prompt=Prompt(header="Be polite.", workspace="We are a bank."),
    model_instructions={"big": "Think first."},
)


async def main() -> None:
    async with App(agents=[clerk], settings=settings) as app:
        options = TurnOptions(prompt=Prompt(session="Answer in French."))
        chat = app.chat("s", agent=clerk, options=options)
        await chat.run("Hello!")
        started = (await app.store.events("s"))[0].event
    assert isinstance(started, TurnStarted)
    assert started.options.prompt
    print(model.requests[0].system.replace("\n\n", " | "))
    print(started.options.prompt.session)


if __name__ == "__main__":
    asyncio.run(main())
