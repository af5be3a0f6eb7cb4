import asyncio

from pydantic import BaseModel, ConfigDict

from everturn import Chat, get_model
from everturn.core.ports import Model
from everturn.testing.provider import Provider, Say


# --8<-- [start:shown]
class City(BaseModel):
    model_config = ConfigDict(extra="forbid")  # vendors insist on it

    name: str
    people: int


async def ask(model: Model | str) -> City:
    params = {"output_schema": City.model_json_schema(), "max_tokens": 500}
    async with Chat(model) as chat:
        turn = await chat.send("Which is the largest city of Portugal?", params=params)
        return City.model_validate_json((await turn).text)


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
