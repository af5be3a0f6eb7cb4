"""The server of a store: who finds it, who is not shown its token, and how the store changes hands."""

from __future__ import annotations

import argparse
import asyncio
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from everturn.cli.args.commands import make_parser
from everturn.cli.commands.accounts import run_account_command
from everturn.cli.commands.run import run_prompt
from everturn.cli.store.handover import take_store
from everturn.cli.store.local_server import LocalServer, open_chat_server
from everturn.cli.store.server import (
    StoreServer,
    find_server,
    read_server_file,
    server_file,
    sidecar_path,
    turnstile_path,
    write_server_file,
)
from everturn.client import Server
from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.load import load_config
from everturn.core.events import GateOpened
from everturn.errors import StoreBusy
from everturn.stores.sql.file_lock import FileLock

TOKEN = "evk_" + "s" * 43


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "EVERTURN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EVERTURN_MODEL", "offline:demo")
    return tmp_path


def parse_words(*words: str) -> argparse.Namespace:
    return make_parser().parse_args([*words])


def place_of(store: Path) -> Path:
    return sidecar_path(str(store), os.environ)


def in_file(store: Path) -> StoreServer:
    found = read_server_file(server_file(place_of(store)))
    assert found is not None
    return found


@asynccontextmanager
async def listener(answer: bytes = b"", to: int = 0) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A process that has a port, and what it was sent; it answers so, or passes all on to another port."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.readuntil(b"\r\n\r\n")
        requests.append(data)
        if to:
            upstream, back = await asyncio.open_connection("127.0.0.1", to)
            back.write(data.replace(b"Host: 127.0.0.1:" + str(port).encode(), b"Host: 127.0.0.1:" + str(to).encode()))
            writer.write(await upstream.read(4096))
            back.close()
        else:
            writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", requests
    finally:
        server.close()


# The file ----------------------------------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_alone_and_another_one_is_not_read(home: Path) -> None:
    file = server_file(home / "talks.db")
    old = os.umask(0)
    try:
        write_server_file(file, StoreServer("http://127.0.0.1:1", TOKEN, 1, "terminal"))
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_server_file(file) is not None
    file.chmod(0o640)
    assert read_server_file(file) is None
    file.chmod(0o600)
    link = home / "link"
    link.symlink_to(file)
    assert read_server_file(link) is None
    file.write_text("{}")
    assert read_server_file(file) is None
    file.unlink()
    os.mkfifo(file, 0o600)
    assert read_server_file(file) is None  # and nobody waits for a writer


def test_every_way_to_name_a_store_is_one_place(home: Path) -> None:
    path = home / "talks.db"
    assert sidecar_path(f"sqlite:///{path}", os.environ) == sidecar_path(str(path), os.environ) == path.resolve()
    url, other = "postgresql://me:secret@h/x", "postgresql://me:other@h/x"
    assert sidecar_path(url, os.environ) == sidecar_path(other, os.environ)  # whatever the password is by now
    assert sidecar_path(url, os.environ) != sidecar_path("postgresql://me@h/y", os.environ)


def test_the_folder_for_the_files_of_a_database_is_created(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "new")}  # a machine on which nothing of Everturn has run yet
    FileLock(turnstile_path(sidecar_path("postgresql://me@h/x", environ))).release()
    assert (tmp_path / "new/.local/share/everturn").stat().st_mode & 0o777 == 0o700


# Who is shown a token ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\n\r\n" + b'{"proof":"' + b"0" * 64 + b'"}', b"", b"SSH-2.0-x\r\n"]
)
async def test_who_took_the_port_of_a_dead_server_is_not_shown_its_token(home: Path, answer: bytes) -> None:
    store = home / "talks.db"
    async with listener(answer) as (address, requests):
        write_server_file(server_file(place_of(store)), StoreServer(address, TOKEN, 1, "terminal"))
        assert await find_server(place_of(store)) is None
        async with open_chat_server(parse_words("chat", "--store", str(store))) as housed:
            assert housed.is_own_process  # nobody has the store, whoever has the port
            assert in_file(store).address != address
        assert requests
        assert not any(TOKEN.encode() in data for data in requests)


async def test_a_proof_that_is_passed_on_from_the_real_server_is_none(home: Path) -> None:
    store = home / "talks.db"
    async with open_chat_server(parse_words("chat", "--store", str(store))):
        real = in_file(store)
        assert await find_server(place_of(store)) == real
        async with listener(to=urlsplit(real.address).port or 0) as (address, requests):
            write_server_file(server_file(place_of(store)), replace(real, address=address))
            assert await find_server(place_of(store)) is None
            assert b"store-server" in requests[0]
            assert not any(real.token.encode() in data for data in requests)


async def test_two_stores_in_one_folder_are_not_taken_for_each_other(home: Path) -> None:
    store, other = home / "one.db", home / "other.db"
    async with open_chat_server(parse_words("chat", "--store", str(store))):
        write_server_file(server_file(place_of(other)), in_file(store))
        assert await find_server(place_of(other)) is None
        async with open_chat_server(parse_words("chat", "--store", str(other))) as second:
            assert second.is_own_process


async def test_the_token_beside_a_store_opens_its_server_and_nothing_afterwards(home: Path) -> None:
    store = home / "talks.db"
    async with open_chat_server(parse_words("chat", "--store", str(store))):
        first = in_file(store)
        async with Server(first.address, first.token) as client:
            assert (await client.me()).role == "operator"
    async with open_chat_server(parse_words("chat", "--store", str(store))):
        assert in_file(store).token != first.token


# The store changes hands ---------------------------------------------------------------------------------------------------


async def test_serve_asks_a_terminal_for_the_store_and_the_terminal_attaches_to_it(home: Path) -> None:
    store = home / "talks.db"
    async with open_chat_server(parse_words("chat", "--store", str(store))) as terminal:
        turn = await terminal.server.start_session("take a note: milk")  # which is asked about, and waits
        async for shown in turn:
            if isinstance(shown, GateOpened):
                break
        async with serve_beside(store) as address:
            assert terminal.connection is not None
            view = (await terminal.server.gates())[0]
            assert not terminal.connection.owns_store
            assert terminal.connection.address == address
            await terminal.server.answer(view, allow="once")
            assert "milk" in (await turn).text
            with pytest.raises(StoreBusy, match="use that server"):
                async with serve_beside(store):
                    pass
        assert [session.id for session in (await terminal.server.sessions()).sessions] == [turn.session]
        assert terminal.connection.owns_store  # and when serve leaves, the terminal has it again


@asynccontextmanager
async def serve_beside(store: Path) -> AsyncGenerator[str]:
    """`everturn serve` in a task of this loop."""
    from everturn.cli.store.connection import StoreOwnerAuth
    from everturn.config.server_options import ServerOptions
    from everturn.server import serve

    async with take_store(
        place_of(store), lambda: open_server(load_config(None), CommandLineOverrides(store=str(store)))
    ) as taken:
        at: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        leave = asyncio.Event()

        def ready(address: str) -> None:
            taken.publish_address(address)
            at.set_result(address)

        task = asyncio.create_task(
            serve.serve(
                taken.context,
                StoreOwnerAuth(taken.context, taken.token),
                ServerOptions(port=0, drain=2.0),
                ready,
                taken.routes,
                leave=leave,
                catches_signals=False,
            )
        )
        try:
            yield await at
        finally:
            taken.close()
            leave.set()
            await task


async def test_a_store_that_a_program_has_without_serving_it_is_not_taken_from_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = home / "talks.db"
    monkeypatch.setattr("everturn.cli.store.connection.RELEASE_TIMEOUT", 0.2)
    monkeypatch.setattr("everturn.cli.store.handover.RELEASE_TIMEOUT", 0.2)
    async with open_server(load_config(None), CommandLineOverrides(store=str(store))):
        with pytest.raises(StoreBusy, match="already uses this store"):
            async with open_chat_server(parse_words("chat", "--store", str(store))):
                pass
        with pytest.raises(StoreBusy, match="already uses this store"):
            async with serve_beside(store):
                pass


async def test_while_serve_takes_the_store_no_terminal_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, refused = home / "talks.db", asyncio.Semaphore(0)

    def hold(path: Path) -> FileLock:
        try:
            return FileLock(path)
        except StoreBusy:
            refused.release()
            raise

    monkeypatch.setattr("everturn.cli.store.connection.FileLock", hold)
    gate = FileLock(turnstile_path(place_of(store)))
    opening = asyncio.create_task(_opened(store))
    for _ in range(3):
        await refused.acquire()
    assert not opening.done()
    assert not store.exists()
    gate.release()
    assert await opening


async def _opened(store: Path) -> bool:
    async with open_chat_server(parse_words("chat", "--store", str(store))) as housed:
        return housed.is_own_process


# Commands beside an open terminal ------------------------------------------------------------------------------------------


async def test_a_run_beside_an_open_terminal_runs_there(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = home / "talks.db"
    async with open_chat_server(parse_words("chat", "--store", str(store))) as terminal:
        assert await run_prompt(run_words(store), "hello") == 0
        assert "real model" in capfd.readouterr().out
        session = (await terminal.server.sessions()).sessions[0].id
        assert await run_prompt(run_words(store, "--session", session), "again") == 0
        assert len(await terminal.server.session(session).messages()) == 4
        assert await run_prompt(run_words(store, "--session", "mine"), "hello") == 2
        assert "leave --session out" in capfd.readouterr().err
        assert await run_prompt(run_words(store, "--system", "You shout."), "hello") == 2
        assert "--system" in capfd.readouterr().err


def run_words(store: Path, *more: str) -> argparse.Namespace:
    return parse_words("run", "--no-stdin", "--store", str(store), *more, "hello")


async def test_a_link_for_a_browser_leads_to_the_terminal_that_has_the_store(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = home / "talks.db"
    async with open_chat_server(parse_words("chat", "--store", str(store))) as terminal:
        assert await asyncio.to_thread(run_account_command, parse_words("login", "--store", str(store))) == 0
        assert capsys.readouterr().out.startswith(f"{_address(terminal)}/login?token=")


def _address(housed: LocalServer) -> str:
    assert housed.connection is not None
    return housed.connection.address
