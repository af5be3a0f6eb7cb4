import asyncio

from everturn import Chat, tool
from everturn.events import GateOpened, TextDelta
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)  # changes nothing, so it is safe to repeat
async def calendar(person: str) -> str:
    """Find out when a person is free."""
    return f"{person} is free from noon to two"


@tool(approval="always")  # a person approves each call; it never runs twice
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


# This model follows a script, so the example needs no network and no key.
model = ScriptedModel(
    [say("Let me look. "), calls(call("calendar", person="Ada"))],
    [say("Noon is fine. "), calls(call("send_mail", to="Ada", text="Lunch?"))],
    say("Ada has your invitation."),
)


async def main() -> None:
    async with Chat(model, tools=[calendar, send_mail]) as chat:
        turn = await chat.send("Invite Ada to lunch")
        async for event in turn:
            match event:
                case TextDelta(text=text):
                    print(text, end="")
                case GateOpened(gate=gate):
                    print(f"\n[{gate.tool} {gate.arguments}: allowed]")
                    await turn.answer(gate, allow="once")
                case _:
                    pass
        result = await turn
        print(f"\n{result.phase}, {len(result.messages)} messages")


if __name__ == "__main__":
    asyncio.run(main())
