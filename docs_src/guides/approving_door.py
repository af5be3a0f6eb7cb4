import asyncio
from typing import Unpack

from msgspec.structs import replace

from everturn import Chat, EverturnError, Gate, Rule, tool
from everturn.chat.replies import GateReply
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask", subjects={"path": "path"})
async def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


async def give(chat: Chat, label: str, gate: Gate, **reply: Unpack[GateReply]) -> None:
    try:
        await chat.answer(gate, **reply)
        print(f"{label}: taken")
    except EverturnError as error:
        print(f"{label}: {type(error).__name__}")


async def main() -> None:
    model = ScriptedModel(calls(call("remove", path="build/a.o")), say("Done."))
    async with Chat(model, tools=[remove]) as chat:
        turn = await chat.send("Clean up")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                await give(chat, "nothing said", gate)
                other = replace(gate, id="mine")
                await give(chat, "another gate", other, allow="once")
                other = replace(gate, hash="00")
                await give(chat, "something else shown", other, allow="once")
                wide = Rule("remove", "allow", layer="grants")
                await give(chat, "a wider rule", gate, allow=wide)
                await give(chat, "a text for a call", gate, allow="once", text="x")
                edit: GateReply = {"allow": "once", "arguments": {"path": 7}}
                await give(chat, "wrong arguments", gate, **edit)
                await give(chat, "what was asked", gate, allow="once")
                await give(chat, "the same again", gate, allow="once")
                await give(chat, "another answer", gate, deny="no, wait")
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
