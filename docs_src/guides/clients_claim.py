import asyncio

from everturn import Chat, EverturnError, Gate
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import client_tool

SCHEMA: dict[str, object] = {"type": "object", "properties": {}}
HEIGHT: dict[str, object] = {"type": "integer", "minimum": 0}
measure = client_tool("measure", "Measure the desk, in cm.", SCHEMA, answer=HEIGHT)
model = ScriptedModel(calls(call("measure")), say("72 cm."))


async def answer(chat: Chat, gate: Gate, result: str, claim: str) -> None:
    try:
        await chat.answer(gate, result=result, claim=claim)
        print(f"{result} from {claim}: taken")
    except EverturnError as error:
        print(f"{result} from {claim}: {type(error).__name__}")


async def main() -> None:
    async with Chat(model, tools=[measure]) as chat:
        turn = await chat.send("How high is my desk?")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                print(f"{gate.kind}: {gate.tool}, {gate.lease:g} seconds")
                await answer(chat, gate, "72", "tab-1")
                await chat.claim(gate, "tab-1")
                try:
                    await chat.claim(gate, "tab-2")
                except EverturnError as error:
                    print(f"tab-2 claims: {type(error).__name__}")
                await answer(chat, gate, "70", "tab-2")
                await answer(chat, gate, '"high"', "tab-1")
                await answer(chat, gate, "72", "tab-1")
                break
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
