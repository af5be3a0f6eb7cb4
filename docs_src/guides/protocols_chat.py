import asyncio
import sys

from openai import AsyncOpenAI

# The offline demo calls the tool that a message names. Ask a real model in words.
QUESTION = 'order_status {"order": 7}'


async def talk(url: str, token: str) -> None:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=token) as client:
        print([model.id async for model in client.models.list()])  # your agents

        stream = await client.chat.completions.create(
            model="support",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
        )
        async for chunk in stream:
            if chunk.choices:
                print(chunk.choices[0].delta.content or "", end="")
        print()


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1], sys.argv[2]))
