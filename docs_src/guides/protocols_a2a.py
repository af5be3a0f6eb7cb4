import asyncio
import os
import uuid

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict


async def talk(url: str, token: str) -> None:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        # The card of one agent; without /a2a/assistant, that of the first agent.
        card = await A2ACardResolver(http, f"{url}/a2a/assistant").get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)

        question = message([a2a.Part(text="Note that lunch is at noon")])
        task, gates = await follow(client, question)
        while gates:  # the task is input-required; this example allows everything
            task, gates = await follow(client, message(list(map(allow, gates)), task))


async def follow(
    client: Client,
    request: a2a.SendMessageRequest,
) -> tuple[str, list[str]]:
    """Print the answer as it streams; return the task, and its open questions."""
    task, gates = "", list[str]()
    async for event in client.send_message(request):
        if event.HasField("task"):
            task = event.task.id
        elif event.HasField("artifact_update"):
            for part in event.artifact_update.artifact.parts:
                print(part.text, end="")
        elif event.status_update.status.state == a2a.TASK_STATE_INPUT_REQUIRED:
            data = event.status_update.status.message.parts[1].data
            gates = [gate["gate"] for gate in MessageToDict(data)["gates"]]
    return task, gates


def message(parts: list[a2a.Part], task: str = "") -> a2a.SendMessageRequest:
    sent = a2a.Message(message_id=uuid.uuid4().hex, role=a2a.ROLE_USER, parts=parts)
    if task:
        sent.task_id = task
    return a2a.SendMessageRequest(message=sent)


def allow(gate: str) -> a2a.Part:
    part = a2a.Part()
    part.data.struct_value.update({"gate": gate, "approved": True})
    return part


if __name__ == "__main__":
    asyncio.run(talk("http://127.0.0.1:8000", os.environ["EVERTURN_TOKEN"]))
