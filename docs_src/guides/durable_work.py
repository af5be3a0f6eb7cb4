import asyncio
import sys

from everturn import App, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def look(page: int) -> str:
    """Read a page; this takes a moment."""
    print("reading page", page, flush=True)
    await asyncio.sleep(0.5)
    return f"this is page {page}"


def make(file: str) -> App:
    pages = [calls(call("look", page=page)) for page in range(1, 10)]
    return App(ScriptedModel(*pages, say("Read it.")), tools=[look], store=file)


if __name__ == "__main__":
    asyncio.run(make(sys.argv[1]).serve_until_signal())  # until SIGTERM or Ctrl-C
