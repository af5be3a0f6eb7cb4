"""Servers of a test's own: they come up fast, die when told to, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import nats
import pytest
import pytest_asyncio
from tests.helpers.waiting import wait_until

from everturn.errors import ConfigError
from tools.environment import child_environment
from tools.servers import PlannedCut, PostgresServer, Proxy, cutting_proxy, private_nats, private_postgres
from tools.servers import process as processes
from tools.servers.nats import nats_binary
from tools.servers.postgres import postgres_binaries
from tools.servers.process import free_port, process_family

pytestmark = pytest.mark.live


@pytest.fixture
async def postgres(tmp_path: Path) -> AsyncIterator[PostgresServer]:
    async with private_postgres(tmp_path) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def steady(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PostgresServer]:
    """One for all tests of the proxy: a copy for each would take longer than they do."""
    async with private_postgres(tmp_path_factory.mktemp("steady")) as server:
        yield server


@pytest.fixture
async def proxy(steady: PostgresServer) -> AsyncIterator[Proxy]:
    await steady.sql("DROP TABLE IF EXISTS fruit CASCADE")
    await steady.sql("CREATE TABLE fruit (name text PRIMARY KEY)")
    async with cutting_proxy(steady.url) as between:
        yield between


def segment_of(data: Path) -> str:
    """The piece of shared memory a running postmaster names in its lock file."""
    return (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[6].split()[1]


def has_segment(name: str) -> bool:
    lines = Path("/proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()[1:]
    return name in {line.split()[1] for line in lines}


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def is_missing(path: Path) -> bool:
    return not os.path.lexists(path)


# PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill9"])
async def test_what_was_committed_is_there_after_the_database_was_stopped_in_any_way(
    postgres: PostgresServer, mode: Any
):
    url = postgres.url
    await postgres.sql("CREATE TABLE fruit (name text)")
    await postgres.sql("INSERT INTO fruit VALUES ('apple')")
    before = postgres.pid
    if mode == "kill9":
        postgres.kill9()
        await postgres.start()
    else:
        await postgres.restart(mode)
    assert (postgres.url, postgres.pid != before) == (url, True)
    assert await postgres.sql("SELECT name FROM fruit") == "apple"


async def test_it_writes_through_to_the_disk_and_listens_on_the_loopback_only(postgres: PostgresServer):
    shown = [await postgres.sql(f"SHOW {name}") for name in ("fsync", "listen_addresses", "unix_socket_directories")]
    assert shown == ["on", "127.0.0.1", ""]


async def test_dropped_connections_are_dropped_and_the_next_one_is_served(postgres: PostgresServer):
    connection = await asyncpg.connect(postgres.url)
    assert await postgres.drop_connections() == 1
    with pytest.raises((*LOST, asyncpg.PostgresError, asyncpg.InternalClientError)):
        await connection.execute("SELECT 1")
    connection.terminate()
    assert await postgres.sql("SELECT 1") == "1"


async def test_the_cpu_time_of_backends_counts_also_when_they_are_gone_and_after_a_restart(postgres: PostgresServer):
    before = postgres.cpu()
    await postgres.sql("SELECT count(*) FROM generate_series(1, 2000000) n WHERE md5(n::text) = ''")
    after = postgres.cpu()
    assert after > before
    await postgres.restart("immediate")
    assert postgres.cpu() >= after


def test_one_that_dies_while_a_family_is_counted_is_not_forgotten(monkeypatch: pytest.MonkeyPatch):
    burning = "import time; until = time.process_time() + 0.3\nwhile time.process_time() < until: pass"
    parent = subprocess.Popen(["/bin/sh", "-c", '"$@"; read end', "sh", sys.executable, "-c", burning], stdin=-1)
    looks = list[int]()

    def look() -> dict[int, processes._Stat]:
        found = look_around()
        if not looks:  # the parent was read, then the child died, then it was the child's turn
            while processes._stat(parent.pid, processes._NONE).buried == 0:
                time.sleep(0.01)
        looks.append(len(found))
        return {pid: stat for pid, stat in found.items() if stat.parent != parent.pid}

    look_around = processes._look
    monkeypatch.setattr(processes, "_look", look)
    try:
        assert process_family(parent.pid).seconds >= 0.29
        assert len(looks) == 2
    finally:
        parent.kill()
        parent.communicate()


async def test_nothing_is_left_of_a_database_that_was_killed_and_never_started_again(tmp_path: Path):
    async with private_postgres(tmp_path) as postgres:
        home = Path(await postgres.sql("SHOW data_directory"))
        segment = segment_of(home)
        postgres.kill9()
        assert has_segment(segment)  # what a killed postmaster leaves: the next line is no accident
    assert not has_segment(segment)
    assert is_missing(home.parent)


async def test_servers_die_with_a_test_process_that_is_killed(tmp_path: Path):
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from tools.servers import private_nats, private_postgres\n"
        "async def main():\n"
        "    here = Path(sys.argv[1])\n"
        "    async with private_postgres(here) as postgres, private_nats(here) as nats:\n"
        "        print(postgres.pid, nats.pid, await postgres.sql('SHOW data_directory'), flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, str(tmp_path)), stdout=subprocess.PIPE, env=child_environment()
    )
    assert process.stdout is not None
    postgres, server, home = (await process.stdout.readline()).decode().split()
    assert not is_gone(int(postgres))
    assert not is_gone(int(server))
    segment = segment_of(Path(home))
    process.kill()
    await process.wait()
    await wait_until(lambda: is_gone(int(postgres)) and is_gone(int(server)))
    await wait_until(lambda: is_missing(Path(home).parent) and not list(tmp_path.glob("nats-*/")))
    assert not has_segment(segment)


def test_a_missing_server_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ConfigError, match="apt install postgresql"):
        postgres_binaries()
    with pytest.raises(ConfigError, match="apt install nats-server"):
        nats_binary()


async def test_a_server_that_cannot_start_says_what_its_log_says(tmp_path: Path):
    with pytest.raises(ConfigError, match="max_connections"):
        async with private_postgres(tmp_path, max_connections="many"):
            pass
    assert [Path(name).suffix for name in os.listdir(tmp_path)] == [".log"]


def test_a_free_port_is_below_those_the_kernel_gives_to_clients():
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8").split()[0])
    assert all(free_port() < low for _ in range(20))


def test_the_family_of_a_process_holds_its_grandchildren():
    with subprocess.Popen(["/bin/sh", "-c", "sh -c 'sleep 60; :' & wait"], start_new_session=True) as shell:
        while len(family := process_family(shell.pid).pids) < 3:
            time.sleep(0.01)
        for pid in family:
            os.kill(pid, signal.SIGKILL)


# The proxy --------------------------------------------------------------------------------------------------------


async def by_simple_query(connection: Any) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO fruit VALUES ('pear')")


async def by_parse_bind_execute(connection: Any) -> None:
    await connection.execute("BEGIN")
    await connection.execute("INSERT INTO fruit VALUES ($1)", "pear")
    await connection.fetch("COMMIT")


async def by_a_named_statement(connection: Any) -> None:
    commit = await connection.prepare("commit work")
    await connection.execute("BEGIN; INSERT INTO fruit VALUES ('pear')")
    await commit.fetch()


async def in_one_query(connection: Any) -> None:
    await connection.execute("BEGIN; INSERT INTO fruit VALUES ('pear'); END;")


WAYS = [by_simple_query, by_parse_bind_execute, by_a_named_statement, in_one_query]
LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError)


async def insert(proxy: Proxy, way: Callable[[Any], Any], cut: PlannedCut | None = None) -> None:
    connection = await asyncpg.connect(proxy.url)
    try:
        if cut is None:
            await way(connection)
            return
        with pytest.raises(LOST):
            await way(connection)
        await cut.wait()
    finally:
        connection.terminate()


@pytest.mark.parametrize("way", WAYS)
async def test_a_connection_cut_after_the_commit_leaves_the_row_though_the_client_saw_an_error(
    steady: PostgresServer, proxy: Proxy, way: Any
):
    await insert(proxy, way, proxy.cut("after_commit"))
    assert await steady.sql("SELECT name FROM fruit") == "pear"


@pytest.mark.parametrize("way", WAYS)
async def test_a_connection_cut_before_the_commit_leaves_nothing(steady: PostgresServer, proxy: Proxy, way: Any):
    await insert(proxy, way, proxy.cut("before_commit"))
    assert await steady.sql("SELECT count(*) FROM fruit") == "0"


async def test_only_the_nth_commit_is_cut_whoever_sends_it(steady: PostgresServer, proxy: Proxy):
    cut = proxy.cut("before_commit", nth=3)
    for name in ("one", "two"):
        await insert(proxy, lambda c, name=name: c.execute(f"BEGIN; INSERT INTO fruit VALUES ('{name}'); COMMIT"))
    await insert(proxy, by_simple_query, cut)
    await insert(proxy, lambda c: c.execute("BEGIN; INSERT INTO fruit VALUES ('four'); COMMIT"))
    assert await steady.sql("SELECT string_agg(name, ' ' ORDER BY name) FROM fruit") == "four one two"


@pytest.mark.parametrize(("when", "left"), [("before_commit", "0"), ("after_commit", "1")])
async def test_a_statement_that_commits_by_itself_can_be_cut_too(
    steady: PostgresServer, proxy: Proxy, when: Any, left: str
):
    async def alone(connection: Any) -> None:
        await connection.execute("INSERT INTO fruit VALUES ($1)", "fig")

    await insert(proxy, alone, proxy.cut(when, matching="^INSERT INTO fruit"))
    assert await steady.sql("SELECT count(*) FROM fruit") == left


async def test_a_cut_that_was_taken_back_is_not_made(steady: PostgresServer, proxy: Proxy):
    cut = proxy.cut("before_commit")
    proxy.clear_cuts()
    await insert(proxy, by_simple_query)
    assert not cut.is_made
    assert await steady.sql("SELECT count(*) FROM fruit") == "1"


async def test_text_that_merely_mentions_a_commit_is_none(steady: PostgresServer, proxy: Proxy):
    cut = proxy.cut("before_commit")
    await insert(proxy, lambda c: c.execute("INSERT INTO fruit VALUES ('; commit then')"))
    assert not cut.is_made
    assert await steady.sql("SELECT count(*) FROM fruit") == "1"


async def test_a_commit_that_the_server_refuses_is_cut_all_the_same(steady: PostgresServer, proxy: Proxy):
    await steady.sql("DROP TABLE IF EXISTS basket")
    await steady.sql("CREATE TABLE basket (name text REFERENCES fruit DEFERRABLE INITIALLY DEFERRED)")

    async def dangling(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute("INSERT INTO basket VALUES ('nothing')")

    await insert(proxy, dangling, proxy.cut("after_commit"))
    assert await steady.sql("SELECT count(*) FROM basket") == "0"


async def test_what_was_asked_before_the_commit_is_answered_before_the_cut(steady: PostgresServer, proxy: Proxy):
    cut = proxy.cut("after_commit")
    connection = await asyncpg.connect(proxy.url)
    transaction = connection.transaction()
    await transaction.start()
    rows = await connection.fetch("SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) n")
    assert len(rows) == 5000
    with pytest.raises(LOST):
        await transaction.commit()
    assert cut.is_made
    connection.terminate()


async def test_a_stalled_proxy_closes_nothing_and_goes_on_when_told(proxy: Proxy):
    connection = await asyncpg.connect(proxy.url)
    proxy.stall()
    query = asyncio.ensure_future(connection.fetchval("SELECT 7"))
    done, _ = await asyncio.wait({query}, timeout=0.1)
    assert not done
    assert proxy.connections == 1
    proxy.resume()
    assert await query == 7
    await connection.close()


async def test_all_connections_can_be_cut_on_demand(proxy: Proxy):
    connection = await asyncpg.connect(proxy.url)
    assert proxy.cut_now() == 1
    with pytest.raises(LOST):
        await connection.execute("SELECT 1")
    connection.terminate()


async def test_clients_are_turned_away_while_the_server_is_down_and_served_when_it_is_back(
    steady: PostgresServer, proxy: Proxy
):
    steady.kill9()
    with pytest.raises(LOST):
        await asyncpg.connect(proxy.url)
    await steady.start()
    await insert(proxy, by_simple_query)


# NATS -------------------------------------------------------------------------------------------------------------


async def test_nats_keeps_what_was_stored_over_a_restart_and_a_kill(tmp_path: Path):
    async with private_nats(tmp_path) as server:
        client = await nats.connect(server.url)
        stream = client.jetstream()
        await stream.add_stream(name="fruit", subjects=["fruit"])
        await stream.publish("fruit", b"apple")
        await client.close()
        before = server.pid
        await server.restart()
        server.kill9()
        await server.start()
        assert server.pid != before
        client = await nats.connect(server.url)
        assert (await client.jetstream().stream_info("fruit")).state.messages == 1
        async with asyncio.timeout(20):  # it is counted in ticks, and one takes many of these
            while not server.cpu():
                await client.jetstream().publish("fruit", b"pear" * 1000)
        await client.close()
    assert [Path(name).suffix for name in os.listdir(tmp_path)] == [".log"]
