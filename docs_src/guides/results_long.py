import asyncio

from everturn import Agent, tool
from everturn.models import ModelRequest, RequestResult
from everturn.testing import ScriptedModel, call, calls, say

BOOK = "\n".join(f"line {number} of the book" for number in range(1, 20_001))


@tool(read_only=True, limit=120)
async def read_book() -> str:
    """Read the book."""
    return BOOK


@tool(idempotent=True)
async def print_out(text: str) -> str:
    """Print a text."""
    return f"printed {len(text):,} characters, and at the end {text[-22:]!r}"


def last(request: ModelRequest) -> RequestResult:
    (result,) = request.messages[-1].parts
    assert isinstance(result, RequestResult)
    return result


def book(request: ModelRequest) -> str:
    """The id of the call whose result was truncated; the note has it."""
    return next(
        part.call
        for message in request.messages
        for part in message.parts
        if isinstance(part, RequestResult) and part.name == "read_book"
    )


model = ScriptedModel(
    calls(call("read_book")),
    lambda req: calls(call("read_result", call=book(req), start=4000, length=48)),
    lambda req: calls(call("print_out", text=f"$ref{{{book(req)}}}")),
    say("Printed."),
)


async def main() -> None:
    agent = Agent(model, tools=[read_book, print_out])
    await agent.run("Print the book")
    first, *_ = model.requests
    print("tools in the first request:", [spec.name for spec in first.tools])
    for request in model.requests[1:]:
        text = last(request).text.replace(book(request), "CALL")
        for line in text.splitlines():
            print("|", line if len(line) < 80 else line[:76] + " …")
        print()


if __name__ == "__main__":
    asyncio.run(main())
