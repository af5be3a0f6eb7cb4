"""A stream as the server sends it, kept for the client's own tests: `python -m tests.web.record_stream` writes web/client/tests/recorded.sse.

Every delta is a message of its own. There is reasoning, text outside of the basic plane, calls whose arguments stream, two turns
at once on two branches, and gates.
"""

import asyncio
from pathlib import Path

import aiohttp

from everturn import Chat, Turn
from everturn.app import App
from everturn.config.server_options import ServerOptions
from everturn.events import GateOpened
from everturn.testing import CountingIds, FakeClock, ScriptedModel, call, calls, say, think
from tests.helpers.server_streams import house_of, serving, so
from tests.helpers.tools import look, mail

TO = Path(__file__).parents[2] / "web" / "client" / "tests" / "recorded.sse"
TEXT = "Grüße 👋🏽, 你好! 👨‍👩‍👧‍👦 \U0001d518\U0001d52b\U0001d526 𠜎𠜱 — the end.\r\n\n| a | b |\u2028data: not a field\n\n"


async def finish(turn: Turn) -> None:
    """See a turn to its end; whoever is asked allows it, in other words."""
    async for event in turn:
        if isinstance(event, GateOpened):
            await turn.answer(event.gate, allow="once", arguments={"to": "Ada", "text": "🍜"})


async def record() -> bytes:
    """Everything that was sent of a session until its three turns were over."""
    call_chunks = calls(call("look", at="the 🕰️"), call("mail", to="Bob", text="午餐🍜"))
    model = ScriptedModel(
        [*think("She asks 🤔 for much."), *say(TEXT * 3, 2), *call_chunks],
        [*think("所以…"), *say(TEXT * 4, 3)],
        say(TEXT * 5, 1),
        pace=0.001,
    )
    app = App(model, tools=(look, mail), clock=FakeClock(), ids=CountingIds())
    data = bytearray()
    async with serving(house_of(app), ServerOptions(merge=0.0)) as server, Chat(model, app=app) as chat:
        first = await chat.send("Look, and write to Bob 👋")
        url = f"{server.url}/{chat.session}"
        async with aiohttp.ClientSession() as http, http.get(url) as response:

            async def listen() -> None:
                async for chunk in response.content.iter_any():
                    data.extend(chunk)

            task = asyncio.create_task(listen())
            await finish(first)
            answer = (await first).message
            assert answer is not None
            second, beside = await chat.send("And now?"), await chat.rerun(answer.id)
            await asyncio.gather(finish(second), finish(beside))
            await so(lambda: data.count(b'"type":"TurnCompleted"') == 3)
            task.cancel()
    return bytes(data)


def main() -> None:
    """Write it."""
    TO.write_bytes(asyncio.run(record()))


if __name__ == "__main__":
    main()
