import asyncio

from everturn import Budget, Chat, TurnSettings
from everturn.testing import ScriptedModel, say

model = ScriptedModel(say("One."), say("Two."), say("Three."))


async def main() -> None:
    settings = TurnSettings(
        session_budget=Budget(steps=2),
        tenant_budget=Budget(cost=20.0),
        tenant_period=86_400.0,  # what was used in the last day counts
    )
    async with Chat(model, settings=settings) as chat:
        for word in ("one", "two", "three"):
            print((await (await chat.send(word))).text)
    print("requests:", len(model.requests))


if __name__ == "__main__":
    asyncio.run(main())
