"""Sharing over the Python client: with a user, a role and a link; revoked; temporary; opened as administrator."""

from __future__ import annotations

import asyncio

import pytest

from everturn.client import Server
from everturn.errors import Forbidden, UnknownLink, UnknownSession, UnknownShare
from tests.client.test_server import gate_of, key_for
from tests.helpers.server_process import Node


async def people_of(server: Server) -> tuple[str, str]:
    return (await key_for(server, "ada", "member"))[1], (await key_for(server, "bob", "member"))[1]


async def test_a_session_is_shared_and_no_longer(node: Node) -> None:
    async with node.client() as local:
        ada_key, bob_key = await people_of(local)
    async with node.client(token=ada_key) as ada, node.client(token=bob_key) as bob:
        turn = await ada.start_session("what is 2+2?")
        await turn
        mine, theirs = ada.session(turn.session), bob.session(turn.session)
        with pytest.raises(UnknownSession):
            await theirs.messages()
        assert {"ada", "bob"} <= {person.id for person in await ada.people()}
        share = await mine.sharing.share(user="bob")
        assert (share.kind, share.name, share.level) == ("user", "bob", "read")
        assert await theirs.messages()
        assert turn.session in {view.id for view in (await bob.sessions()).sessions}
        assert (await theirs.sharing.get()).level == "read"
        with pytest.raises(Forbidden):
            await theirs.send("and 3+3?")
        with pytest.raises(Forbidden):
            await theirs.sharing.share(role="viewer")
        again = await mine.sharing.share(user="bob", level="write")
        assert (again.id, again.level) == (share.id, "write")
        await (await theirs.send("what is 3+3?"))
        await mine.sharing.revoke(share.id)
        with pytest.raises(UnknownSession):
            await theirs.messages()
        with pytest.raises(UnknownShare):
            await mine.sharing.revoke("share_none")


async def test_a_link_is_opened_and_revoked_with_the_streams_that_it_let_in(node: Node) -> None:
    async with node.client() as local:
        ada_key, bob_key = await people_of(local)
    async with node.client(token=ada_key) as ada, node.client(token=bob_key) as bob:
        turn = await ada.start_session("note that it is private")
        await gate_of(ada, turn.session)
        link = await ada.session(turn.session).sharing.create_link()
        opened = await bob.open_link(link.link)
        assert opened.id == turn.session
        reading = opened.events()
        await anext(reading)
        await ada.session(turn.session).sharing.revoke(link.share.id)
        async with asyncio.timeout(5):  # seconds that a revocation may take
            with pytest.raises(UnknownSession):
                async for _ in reading:
                    pass
        with pytest.raises(UnknownLink):
            await bob.open_link(link.link)


async def test_an_owner_opens_a_private_session_and_its_author_is_told(node: Node) -> None:
    async with node.client() as local:
        ada_key, _ = await people_of(local)
        _, owner_key = await key_for(local, "olga", "owner")
    async with node.client(token=ada_key) as ada, node.client(token=owner_key) as owner:
        turn = await ada.start_session("what is 2+2?")
        await turn
        with pytest.raises(UnknownSession):
            await owner.session(turn.session).messages()
        with pytest.raises(Forbidden):
            await ada.session(turn.session).sharing.open_as_administrator("curious")
        await owner.session(turn.session).sharing.open_as_administrator("a complaint", minutes=5)
        assert await owner.session(turn.session).messages()
        (notice,) = await ada.notices()
        assert (notice.by, notice.reason, notice.session) == ("olga", "a complaint", turn.session)
        await ada.dismiss_notice(notice.id)
        assert await ada.notices() == []


async def test_a_temporary_session_is_in_no_list(node: Node) -> None:
    async with node.client() as local:
        turn = await local.start_session("a word that is nowhere else: quince", temporary=True)
        await turn
        assert turn.session not in {view.id for view in (await local.sessions()).sessions}
        assert await local.search("quince") == []
        assert (await local.session(turn.session).sharing.get()).temporary_until > 0
