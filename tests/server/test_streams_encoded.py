"""A turn in another protocol: the encoder is shown what a reader of the turn is shown, and has the last word."""

import asyncio

import aiohttp
from starlette.requests import Request

from everturn import Chat
from everturn.access.access import Access
from everturn.app import App
from everturn.core.deltas import Delta, TurnItem
from everturn.core.events import StepFinished, Terminal
from everturn.server.streams.open import StreamEndpoints
from tests.helpers.server_streams import Taps, house_of, serving, so


class Plain:
    """A protocol of our own: the text, and how it ended."""

    def __init__(self, stops: bool = False) -> None:
        self.is_done, self._stops = False, stops

    def begin(self) -> bytes:
        return b"<"

    def feed(self, shown: TurnItem) -> bytes:
        self.is_done = self._stops and isinstance(shown, StepFinished)
        if isinstance(shown, Delta):
            return shown.text.encode()
        return b"!" if isinstance(shown, Terminal) else b""

    def end(self, why: str) -> bytes:
        return f">{why}".encode()


async def answer(access: Access, streams: StreamEndpoints, request: Request) -> object:
    """`/{session}/{turn}?stops=`."""
    session, _, turn = request.url.path[1:].partition("/")
    headers = {"content-type": "text/plain", "x-protocol": "plain"}
    encoder = Plain(request.query_params.get("stops") == "1")
    return await streams.encoded(access, session, turn, encoder, headers)


async def test_a_turn_is_told_in_another_protocol_from_its_beginning_to_its_end_or_to_where_that_is_done():
    model = Taps()
    app = App(model)
    async with (
        serving(house_of(app), answer=answer) as server,
        Chat("", app=app, session="s") as chat,
        aiohttp.ClientSession() as http,
    ):
        turn = await chat.send("one")
        model.tap("one").put_nowait("a")

        async def read_turn(stops: str) -> tuple[str, str]:
            async with http.get(f"{server.url}/s/{turn.id}", params={"stops": stops}) as response:
                return response.headers["x-protocol"], await response.text()

        both = [asyncio.create_task(read_turn(stops)) for stops in ("0", "1")]
        await so(lambda: server.streams.open >= 2)
        for text in ("b", "c", ""):
            model.tap("one").put_nowait(text)

        assert await asyncio.gather(*both) == [("plain", "<abc!>over"), ("plain", "<abc>over")]
        assert await read_turn("0") == ("plain", "<abc!>over")  # long after it is over, too


async def test_a_stream_of_another_protocol_says_why_it_is_cut_short():
    model = Taps()
    app = App(model)
    async with (
        serving(house_of(app), answer=answer) as server,
        Chat("", app=app, session="s") as chat,
        aiohttp.ClientSession() as http,
    ):
        turn = await chat.send("one")
        async with http.get(f"{server.url}/s/{turn.id}") as response:
            await response.content.readexactly(1)
            await server.streams.aclose()

            assert await response.text() == ">drain"
