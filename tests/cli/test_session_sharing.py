"""`everturn sessions share`, `unshare` and `link`, on a server with several users."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.client.test_server import key_for
from tests.helpers.server_process import Node

from everturn.cli import main
from everturn.cli.commands.session_sharing import render_sharing
from everturn.client import Server


def done(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_without_a_server_there_is_nobody_to_share_with(capsys: pytest.CaptureFixture[str]) -> None:
    message = done(capsys, "sessions", "share", "lunch", "--user", "ada", code=2)
    assert "name it with --connect URL" in message


@pytest.mark.live
def test_a_conversation_is_shared_listed_linked_and_unshared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def prepare(node: Node) -> tuple[str, str]:
        async with node.client() as local:
            bob = (await key_for(local, "bob", "member"))[1]
            turn = await local.start_session("what is 2+2?")
            await turn
            return bob, turn.session

    async def render_as(node: Node, key: str, session: str) -> list[str]:
        async with Server(node.address, key) as server:
            return list(render_sharing(await server.session(session).sharing.get()))

    async def open_as(node: Node, key: str, link: str) -> str:
        async with Server(node.address, key) as server:
            return (await server.open_link(link)).id

    node = Node(tmp_path / "home").start()
    try:
        bob, session = asyncio.run(prepare(node))
        monkeypatch.setenv("EVERTURN_TOKEN", node.token)
        at = (session, "--connect", node.address)
        assert done(capsys, "sessions", "share", *at) == "author: local\n"
        assert done(capsys, "sessions", "share", *at, "--user", "bob") == f"{session}: bob can read\n"
        assert asyncio.run(render_as(node, bob, session)) == ["author: local", "you: can read"]
        output = done(capsys, "sessions", "share", *at, "--role", "approver", "--write", "--days", "7")
        assert "everybody with at least the role approver can read and write, until 20" in output
        listed = done(capsys, "sessions", "share", *at)
        assert "bob can read" in listed
        assert "no such user" in done(capsys, "sessions", "share", *at, "--user", "nobody", code=2)
        link = done(capsys, "sessions", "link", *at).strip()
        assert link.startswith(f"{node.address}/#/link/")
        assert done(capsys, "sessions", "unshare", *at, "bob").startswith(f"{session} is no longer shared: bob")
        assert asyncio.run(open_as(node, bob, link.rpartition("/")[2])) == session
        (row,) = [row for row in done(capsys, "sessions", "share", *at).splitlines() if row.startswith("link_")]
        assert "can read" in done(capsys, "sessions", "unshare", *at, row.split()[0])
        assert "bob" not in done(capsys, "sessions", "share", *at)
        assert "lists them" in done(capsys, "sessions", "unshare", *at, "bob", code=2)
        assert "lists them" in done(capsys, "sessions", "share", "nope", "--connect", node.address, code=2)
    finally:
        node.kill9()
