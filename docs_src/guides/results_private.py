import asyncio
import re

import msgspec

from everturn import Agent, App, tool
from everturn.models import ModelRequest, RequestResult
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say

SENT: list[str] = []


@tool(read_only=True, private=("email",))
async def customers() -> list[dict[str, str]]:
    """List the customers."""
    return [{"name": "Ada", "email": "ada@example.org"}]


@tool()
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    SENT.append(to)
    return f"sent to {to}"


def read(request: ModelRequest) -> str:
    (result,) = request.messages[-1].parts
    assert isinstance(result, RequestResult)
    return result.text


def write_to_ada(request: ModelRequest) -> list[object]:
    (placeholder,) = re.findall(r"\$private\{[^}]+\}", read(request))
    return [*calls(call("send_mail", to=placeholder, text="Lunch?"))]


async def main() -> None:
    model = ScriptedModel(calls(call("customers")), write_to_ada, say("Invited."))
    agent = Agent(model, name="assistant", tools=[customers, send_mail])
    store = MemoryStore()
    async with App(agents=[agent], store=store) as app:
        chat = app.chat(agent=agent)
        await chat.run("Invite Ada")
        log = msgspec.json.encode(await store.events(chat.session))
    for request in model.requests[1:]:
        print("model received:", re.sub(r"turn_[\w-]+", "CALL", read(request)))
    print("tool received:", SENT)
    print("in the log:", b"ada@example.org" in log)


if __name__ == "__main__":
    asyncio.run(main())
