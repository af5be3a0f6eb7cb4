import asyncio
import sys

from openai import AsyncOpenAI
from openai.types.responses import ResponseInputParam


async def talk(url: str, token: str) -> None:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=token) as client:
        said = "Note that lunch is at noon"
        response = await client.responses.create(model="assistant", input=said)
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
        went_on = client.responses.create(
            model="assistant",
            previous_response_id=response.id,
            input=answers,
        )
        print((await went_on).output_text)


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1], sys.argv[2]))
