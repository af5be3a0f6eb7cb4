import asyncio

from everturn import Chat, TextPart, tool
from everturn.core.history import render_history
from everturn.core.options import ToolHistory
from everturn.events import NoticePart
from everturn.models import RequestCall, RequestPart, RequestResult
from everturn.testing import ScriptedModel, call, calls, say

POLICIES: list[ToolHistory] = ["full", "results", "digest", "none"]


@tool(read_only=True)
async def weather(city: str) -> str:
    """Look up the weather."""
    return "sunny, 22 degrees"


def shown(part: RequestPart) -> str:
    match part:
        case RequestCall(name=name, arguments=arguments):
            return f"(call {name} {arguments})"
        case RequestResult(text=text):
            return f"(result) {text}"
        case NoticePart(text=text):
            return f"(notice) {text}"
        case TextPart(text=text):
            return text
        case _:
            return ""


async def main() -> None:
    model = ScriptedModel(
        [say("One moment."), calls(call("weather", city="Lisbon"))],
        say("It is sunny."),
    )
    async with Chat(model, tools=[weather]) as chat:
        await (await chat.send("How is Lisbon?"))
        branch = await chat.messages()
    for policy in POLICIES:
        print(f"--- {policy}")
        for message in render_history(branch, policy):
            print(f"{message.role}:")
            print(*(shown(part) for part in message.parts))
            if size := message.hint_size:
                print(f"({size} characters of hint, then: {message.text[size:]})")


if __name__ == "__main__":
    asyncio.run(main())
