import asyncio

from everturn import Agent, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask")  # a person approves each call; it never runs twice
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


# Follows a script, without network and key. Yours: model = "anthropic:claude-opus-5"
invite = calls(call("send_mail", to="Ada", text="Lunch?"))
model = ScriptedModel(invite, say("Ada is invited."))
agent = Agent(model, instructions="You write mails.", tools=[send_mail])


async def main() -> None:
    result = await agent.run("Invite Ada to lunch")
    for gate in result.gates:  # what the run waits for: today, or after a restart
        print("approve?", gate.tool, gate.arguments)
        await gate.approve()
    result = await result.resume()
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
