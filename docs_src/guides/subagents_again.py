import asyncio

from everturn import Chat
from everturn.events import SubagentStarted, TextDelta, ToolPart
from everturn.models import ModelRequest
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import SubagentTool

poet = SubagentTool("poet", "Writes a line, and the next one.", resumable=True)
lines = ["The sea is wide.", "The boat is small."]


def script(request: ModelRequest) -> list[object]:
    texts = [message.text for message in request.messages]
    if texts[0] == "a line":  # the sub-agent remembers its earlier conversation
        return [*say(lines[len(texts) // 2])]
    tool_messages = [message for message in request.messages if message.role == "tool"]
    results = [message.parts[0] for message in tool_messages]
    if not results:
        return [*calls(call("poet", task="a line"))]
    if len(results) == 1:
        session = str(results[0]).split("[session=")[1].split("]")[0]
        return [*calls(call("poet", task="another line", session=session))]
    return [*say("Two lines.")]


model = ScriptedModel(*[script] * 5)


async def main() -> None:
    async with Chat(model, tools=[poet]) as chat:
        sessions: list[str] = []
        turn = await chat.send("Write a poem")
        async for event in turn:
            if isinstance(event, SubagentStarted):
                sessions.append(event.session)
                async for shown in await turn.children(event):
                    if isinstance(shown, TextDelta):
                        print(shown.text, end="")
                print()
        print("one session:", len({*sessions}) == 1)
        for part in (await turn).messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print(part.state, part.output.text.splitlines()[0])


if __name__ == "__main__":
    asyncio.run(main())
