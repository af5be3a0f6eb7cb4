import asyncio

from everturn import Agent
from everturn.events import ToolPart
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import run_javascript, run_shell

model = ScriptedModel(
    calls(call("run_javascript", code="[3, 1, 2].sort().join(' < ')")),
    calls(call("run_shell", command="seq 3 | paste -sd+ | tee /tmp/sum; ls /root")),
    say("Both ran."),
)


async def main() -> None:
    agent = Agent(model, tools=[run_javascript(), run_shell()])
    result = await agent.run("Run both")
    (gate,) = result.gates
    print(f"{gate.tool} needs approval")
    await gate.approve()
    result = await result.resume()
    for part in result.messages[-1].parts:
        if isinstance(part, ToolPart) and part.output is not None:
            print(f"{part.name} {part.state}: {part.output.text}")
            print("  guarantees:", (part.output.metadata or {})["guarantees"])


if __name__ == "__main__":
    asyncio.run(main())
