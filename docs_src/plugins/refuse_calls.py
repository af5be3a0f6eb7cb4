import asyncio

from everturn import Agent, App, ToolError, tool
from everturn.events import ToolPart
from everturn.plugins import CallContext
from everturn.testing import ScriptedModel, call, calls, say


class OwnDomain:
    """Refuses mails to other companies, and cuts long texts."""

    def on_call_start(self, ctx: CallContext) -> None:
        if ctx.call.name != "send_mail":
            return
        if not str(ctx.arguments["to"]).endswith("@example.org"):
            raise ToolError("Send mails to @example.org only.")
        ctx.arguments["text"] = str(ctx.arguments["text"])[:20]


@tool
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {text}"


model = ScriptedModel(
    calls(
        call("send_mail", to="ada@example.org", text="Lunch on Friday at noon?"),
        call("send_mail", to="eve@example.com", text="Lunch?"),
    ),
    say("Done."),
)
agent = Agent(model, name="assistant", tools=[send_mail])


async def main() -> None:
    async with App(agents=[agent], plugins=[OwnDomain()]) as app:
        result = await app.run(agent, "Invite Ada and Eve")
    for part in result.messages[-1].parts:
        if isinstance(part, ToolPart) and part.output is not None:
            print(f"{part.state}: {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
