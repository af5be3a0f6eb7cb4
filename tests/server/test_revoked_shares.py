"""A stream ends when its reader loses access to the conversation: on this node at once, on others at the next check."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from everturn import api
from everturn.config.server_options import ServerOptions
from everturn.server.streams.open import StreamEndpoints
from everturn.server.streams.registry import CHECK_INTERVAL
from tests.helpers.private_world import PEOPLE, a_private_world, access_of
from tests.helpers.waiting import wait_until

LIMIT = 5.0  # seconds in which a stream must end


class Client:
    """Reads a stream as an ASGI server would, until it ends."""

    def __init__(self) -> None:
        self.data, self.is_over = b"", asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.is_over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.data += message.get("body", b"")
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.is_over.set()

    async def read(self, response: Any) -> None:
        await response({"type": "http", "method": "GET"}, self.receive, self.send)


def test_two_checks_fit_into_the_limit() -> None:
    assert 2 * CHECK_INTERVAL <= LIMIT


async def test_streams_end_when_a_share_or_a_link_is_revoked_or_expires() -> None:
    async with a_private_world() as private:
        context, session = private.world.house, private.things.session
        streams = StreamEndpoints(context, ServerOptions())
        author = access_of(private.world, "author")
        names = ("author", "friend", "writer", "by_link", "administrator")
        clients = {name: Client() for name in names}
        tasks = [
            asyncio.create_task(clients[name].read(await streams.session(access_of(private.world, name), session)))
            for name in names
        ]

        async def all_read() -> bool:
            return all(b"data:" in client.data for client in clients.values())

        await wait_until(all_read)
        await streams.end_lost_access()
        assert not [name for name in names if clients[name].is_over.is_set()]

        shares = {share.name: share for share in (await author.sharing.get(session)).shares if share.name}
        await author.sharing.revoke(session, shares["friend"].id)
        await author.sharing.revoke(session, shares["by_link"].via)  # the link, not what it opened
        rows = {row.id: row for row in await context.app.store.sharing.shares([session])}
        admin = rows[shares["administrator"].id]
        await context.app.store.sharing.add(msgspec.structs.replace(admin, expires=context.app.clock.now() - 1))
        await streams.end_lost_access()
        for name in ("friend", "by_link", "administrator"):
            await asyncio.wait_for(clients[name].is_over.wait(), 60)
            assert b"unshared" in clients[name].data
        assert not clients["author"].is_over.is_set()
        assert not clients["writer"].is_over.is_set()
        await streams.aclose()
        await asyncio.gather(*tasks)


async def test_the_route_that_revokes_a_share_ends_streams_of_this_node() -> None:
    ended: list[bool] = []

    class Streams:
        async def end_lost_access(self) -> None:
            ended.append(True)

    async with a_private_world(streams=Streams()) as private:
        (route,) = [route for route in private.routes if route.name == "revoke_share"]
        answer = await private.ask(route, PEOPLE["author"])
        assert (answer.status, ended) == (204, [True])


async def test_an_inbox_pushes_a_private_conversation_to_those_who_may_see_it() -> None:
    async with a_private_world() as private:
        streams = StreamEndpoints(private.world.house, ServerOptions())
        await streams.start()
        names = ("author", "friend", "stranger", "outside_approver", "foreign_owner")
        clients = {name: Client() for name in names}
        tasks = [
            asyncio.create_task(clients[name].read(await streams.inbox(access_of(private.world, name))))
            for name in names
        ]
        author = access_of(private.world, "author")
        sent = await author.sessions.start(api.NewSession(text="pay in secret"))
        await author.sharing.share(sent.session, api.NewShare(user="friend"))

        async def is_pushed() -> bool:
            recipients = ("author", "friend", "outside_approver")
            return all(sent.session.encode() in clients[name].data for name in recipients)

        await wait_until(is_pushed)
        assert sent.session.encode() not in clients["stranger"].data + clients["foreign_owner"].data
        assert private.things.session.encode() not in clients["stranger"].data
        outside = clients["outside_approver"].data
        assert b'"is_listed":false' in outside
        assert b'"by":"author"' not in outside
        await streams.aclose()
        await asyncio.gather(*tasks)
