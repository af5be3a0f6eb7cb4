import asyncio

from everturn import Chat, TurnSuspended, run_javascript, run_shell
from everturn.core.parts import ToolPart
from everturn.testing import ScriptedModel, call, calls, say

model = ScriptedModel(
    calls(call("run_javascript", code="[3, 1, 2].sort().join(' < ')")),
    calls(call("run_shell", command="seq 3 | paste -sd+ | tee /tmp/sum; ls /root")),
    say("So it is."),
)


async def main() -> None:
    async with Chat(model, tools=[run_javascript(), run_shell()]) as chat:
        turn = await chat.send("Show me")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                print(f"{gate.tool} asks")
                await turn.answer(gate, allow="once")
        for part in (await turn).messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print(f"{part.name} {part.state}: {part.output.text}")
                print("  held:", (part.output.metadata or {})["guarantees"])


if __name__ == "__main__":
    asyncio.run(main())
