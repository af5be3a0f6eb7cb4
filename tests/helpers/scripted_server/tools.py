"""The tools of the rig. What they do to the world is one line each in a file, so that it can be counted."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

from everturn import Output, Progress, Question, ToolContext, ToolError, tool
from everturn.core.parts import FilePart
from everturn.testing.provider.media.png import draw_png as drawn
from everturn.tools.subagent import SubagentTool

DEEDS = Path(os.environ.get("RIG_HOME", "/nowhere")) / "deeds.jsonl"
SECRET = "hunter2-7391"


def did(action: str, **how: Any) -> None:
    """Write it down; an append of one line is whole or not there."""
    with DEEDS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"did": action, "at": time.time(), **how}) + "\n")


@tool(read_only=True)
async def look(place: str) -> str:
    """Look at a place.

    Args:
        place: which one
    """
    return f"In the {place} there is a lamp and a letter."


@tool(read_only=True)
async def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> Output:
    """Tell the weather of a city."""
    await asyncio.sleep(0.4)
    return Output(f"{city}: 18 °C, light rain", title=f"Weather in {city}")


@tool(approval="always")
async def send_mail(
    to: str, subject: str, body: str = "", urgent: bool = False, copies: list[str] | None = None
) -> str:
    """Send a mail.

    Args:
        to: an address
        subject: what it is about
        body: the text
        urgent: whether it goes out at once
        copies: who else is to have it
    """
    did("mail", to=to, subject=subject, body=body, urgent=urgent, copies=copies or [])
    return f"sent to {to}"


@tool(approval="ask", subjects={"command": "command"})
async def run(command: str) -> str:
    """Run a command line; here it is only written down."""
    did("run", command=command)
    return f"$ {command}\nok"


@tool(timeout=120)
async def slow(seconds: float = 3.0) -> AsyncIterator[Progress | str]:
    """Take its time, and say how far it is."""
    began = time.monotonic()
    count = max(1, int(seconds * 2))
    for at in range(count):
        yield Progress(f"{at + 1} of {count} done")
        await asyncio.sleep(seconds / count)
    did("slow", took=time.monotonic() - began)
    yield f"finished after {seconds:g} seconds"


@tool(read_only=True, review="always")
async def lookup(name: str) -> str:
    """Look up an account; a person reads what comes of it first."""
    did("lookup", name=name)
    return f"account: {name}\npassword: {SECRET}\nlast seen: yesterday\nhint: the password is not {SECRET}x"


@tool(idempotent=True)
async def errand(ctx: ToolContext, to: str = "ann@example.org") -> str:
    """Look around, and mail what was seen: it makes calls of its own."""
    seen = await ctx.run_tool("look", {"place": "hall"})
    sent = await ctx.run_tool("send_mail", {"to": to, "subject": "What I saw", "body": seen.text})
    return f"{seen.text} {sent.text}"


@tool(read_only=True)
async def inquire(ctx: ToolContext) -> str:
    """Ask the person for what is missing, by a form."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Your name"},
            "size": {"type": "string", "enum": ["S", "M", "L"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["name", "size"],
    }
    resolution = await ctx.ask(Question("Which shirt shall it be?", schema=schema))
    return resolution.result or f"no answer: {resolution.reason}"


@tool()
async def measure(thing: str) -> str:
    """Measure a thing; a person does that by hand, where an agent says so."""
    raise ToolError(f"nobody has measured {thing}")


@tool(read_only=True)
async def draw(ctx: ToolContext) -> Output:
    """Draw a picture."""
    assert ctx.blobs is not None
    data = drawn(b"rig")
    file = FilePart(await ctx.blobs.put(data), "image/png", len(data), "picture.png")
    return Output("a picture, 64 by 64", title="A picture", attachments=(file,))


@tool(read_only=True, untrusted=True, limit=2_000)
async def read_page(size: int = 40) -> str:
    """Read a long page that a stranger wrote."""
    return "\n".join(f"{at}: all work and no play makes a long page" for at in range(size))


@tool(read_only=True, approval="deny")
async def forbidden() -> str:
    """Nobody may."""
    return "never"


@tool(read_only=True)
async def fail(why: str = "the door is locked") -> str:
    """Fail."""
    raise ToolError(why)


researcher = SubagentTool(
    "researcher", "Finds something out, in a conversation of its own.", system="You find things out."
)
