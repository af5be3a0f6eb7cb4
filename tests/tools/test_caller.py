"""A tool knows whose call it is: the tenant of the session, and who asked."""

from __future__ import annotations

from everturn import Chat, ToolContext, TurnOptions, tool
from everturn.testing import ScriptedModel, call, calls, say


async def test_a_tool_is_told_the_tenant_and_who_asked() -> None:
    seen: list[tuple[str, str]] = []

    @tool(read_only=True)
    async def look(ctx: ToolContext) -> str:
        """Look."""
        seen.append((ctx.tenant, ctx.by))
        return "seen"

    model = ScriptedModel(calls(call("look")), say("Done."))
    async with Chat(model, tools=[look], tenant="acme", options=TurnOptions(by="ann")) as chat:
        await (await chat.send("Look"))
    assert seen == [("acme", "ann")]
