import asyncio
import sys

from openai import AsyncOpenAI
from openai.types.responses import ResponseInputParam

# The offline demo calls the tool that a message names. Ask a real model in words.
QUESTION = 'refund {"order": 7, "cents": 900}'


async def talk(url: str, token: str) -> None:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=token) as client:
        response = await client.responses.create(model="support", input=QUESTION)
        answers: ResponseInputParam = []
        for item in response.output:
            if item.type == "mcp_approval_request":
                print(f"{item.name} {item.arguments}: allowed")
                answers.append(
                    {
                        "type": "mcp_approval_response",
                        "approval_request_id": item.id,
                        "approve": True,
                    }
                )
        response = await client.responses.create(
            model="support",
            previous_response_id=response.id,
            input=answers,
        )
        print(response.output_text)


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1], sys.argv[2]))
