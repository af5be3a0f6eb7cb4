import asyncio

from pydantic import BaseModel

from everturn import Agent, get_model
from everturn.models import Model
from everturn.testing.provider import Provider, Say


# --8<-- [start:shown]
class City(BaseModel):
    name: str
    people: int


async def ask(model: Model | str) -> City:
    agent = Agent(model, output_type=City, params={"max_tokens": 500})
    result = await agent.run("Which is the largest city of Portugal?")
    return result.output


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("gpt-5.2", [[Say('{"name": "Lisbon", "people": 575739}')]])
        model = get_model("openai:gpt-5.2", base_url=f"{provider.url}/v1")
        print(repr(await ask(model)))
        sent = provider.seen[0].body
        print(sent["max_output_tokens"], sent["text"]["format"]["type"])


if __name__ == "__main__":
    asyncio.run(main())
