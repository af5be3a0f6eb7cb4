import asyncio

from everturn import Agent, App, Budget, TurnSettings
from everturn.testing import ScriptedModel, say

model = ScriptedModel(say("One."), say("Two."), say("Three."))


async def main() -> None:
    settings = TurnSettings(
        session_budget=Budget(steps=2),
        tenant_budget=Budget(cost=20.0),
        tenant_period=86_400.0,  # counts the last 24 hours
    )
    agent = Agent(model, name="counter")
    async with App(agents=[agent], settings=settings) as app:
        chat = app.chat(agent=agent)
        for word in ("one", "two", "three"):
            print((await chat.run(word)).text)
    print("requests:", len(model.requests))


if __name__ == "__main__":
    asyncio.run(main())
