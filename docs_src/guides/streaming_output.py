import asyncio

from pydantic import BaseModel

from everturn import Agent
from everturn.testing import ScriptedModel, say


class Recipe(BaseModel):
    title: str
    steps: list[str]


pieces = ['{"title": "Tea", ', '"steps": ["boil water"', ', "wait"]}']
model = ScriptedModel([say(piece) for piece in pieces])
cook = Agent(model, output_type=Recipe)


async def main() -> None:
    async with cook.stream("How do I make tea?") as run:
        async for partial in run.stream_output():
            print(partial)


if __name__ == "__main__":
    asyncio.run(main())
