"""Private PostgreSQL server: `async with private_postgres(tmp_path) as postgres`.

It writes through to the disk as a real one does (`fsync` is on), trusts every user, and listens on the loopback only. A
new cluster takes a second to make, so one is made per machine and version and kept as a template; each instance is a
copy.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

from everturn.errors import ConfigError
from tools.servers.process import GLANCE, PATIENCE, Daemon, ServerProcess, free_port, process_family

Mode = Literal["smart", "fast", "immediate"]

_SIGNALS: dict[Mode, int] = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_INSTALL = "on Debian: apt install postgresql"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",
    "max_connections": "200",
    # As docs/deploy/postgresql.md recommends: after a crash, one sync of the file system and not one per file.
    "recovery_init_sync_method": "syncfs",
    # In the data directory, not in /dev/shm: a server that was killed for good leaves nothing there.
    "dynamic_shared_memory_type": "mmap",
}
# The one thing outside its directory: a killed postmaster leaves a few bytes of shared memory, named on this line.
_FAREWELL = 'set -- "$1" $(sed -n 7p data/postmaster.pid) && ipcrm -m "$3"'


class PostgresServer(ServerProcess):
    """A PostgreSQL server that only this test uses."""

    def __init__(self, daemon: Daemon, binaries: Path, port: int) -> None:
        super().__init__(daemon)
        self._binaries, self.port = binaries, port
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"

    async def stop(self, mode: Mode = "fast") -> None:
        """Stop it: `smart` waits for clients, `fast` disconnects them, `immediate` is a crash with a notice to
        clients.
        """
        await self._daemon.stop(_SIGNALS[mode])

    async def restart(self, mode: Mode = "fast") -> None:
        """Stop it and start it again, on the same port and with the same data."""
        await self.stop(mode)
        await self.start()

    async def drop_connections(self) -> int:
        """Disconnect every client, and return how many there were."""
        return int(
            await self.sql(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )

    async def pause(self, seconds: float) -> None:
        """Stop every process of the server for some seconds: connections stay open, and nobody is answered."""
        paused: list[int] = []
        try:
            while new := [pid for pid in process_family(self.pid).pids if pid not in paused]:
                for pid in new:  # the first is the one that starts others
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                paused += new
            await asyncio.sleep(seconds)
        finally:
            for pid in paused:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def sql(self, text: str) -> str:
        """Run one statement with psql, bypassing every proxy, and return its output: a line per row, `|` between
        columns.
        """
        command = [str(self._binaries / "psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.url]
        done = await asyncio.to_thread(subprocess.run, [*command, "-c", text], capture_output=True, text=True)
        if done.returncode:
            raise ConfigError(f"psql failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def _is_ready(self) -> bool:
        """Whether the eighth line of its lock file says so, and the first has its own process id."""
        try:
            lines = (self._daemon.home / "data" / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self._daemon.pid) and lines[7].strip() == "ready"


def postgres_binaries() -> Path:
    """The directory with `initdb`, `postgres` and `psql`.

    Raises:
        ConfigError: there is none; the message says what to install.
    """
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    found.sort(key=lambda path: int(path.parent.name) if path.parent.name.isdecimal() else 0, reverse=True)
    if (postgres := shutil.which("postgres")) is not None:
        found.append(Path(postgres).resolve().parent)
    if (config := shutil.which("pg_config")) is not None:
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        found.append(Path(answer.stdout.strip()))
    for path in found:
        if all((path / name).exists() for name in ("initdb", "postgres", "psql")):
            return path
    raise ConfigError(f"there is no PostgreSQL server on this machine; {_INSTALL}")


class _User:
    """The user that runs the server: the user of the test or, as PostgreSQL refuses to run as root, `postgres`."""

    def __init__(self) -> None:
        self.uid, self.gid, self.prefix = os.getuid(), os.getgid(), list[str]()
        if self.uid != 0:
            return
        try:
            row = pwd.getpwnam("postgres")
        except KeyError:
            raise ConfigError(f"PostgreSQL does not run as root, and there is no user postgres; {_INSTALL}") from None
        if (setpriv := shutil.which("setpriv")) is None:
            raise ConfigError(
                "PostgreSQL does not run as root; to run it as postgres, apt install util-linux (setpriv)"
            )
        self.uid, self.gid = row.pw_uid, row.pw_gid
        self.prefix = [setpriv, f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", "--"]

    def make(self, inside: Path, prefix: str) -> Path:
        """A new directory of that user: inside the given one or, where the user has no access, in the system's own."""
        reaches = all(path.stat().st_mode & stat.S_IXOTH for path in (inside, *inside.parents))
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=inside if reaches or not self.prefix else None))
        os.chown(folder, self.uid, self.gid)
        return folder


def _template(binaries: Path, user: _User) -> Path:
    """An empty cluster from which instances are copied; made on first use."""
    version = subprocess.run([binaries / "postgres", "-V"], capture_output=True, text=True, check=True).stdout.split()[
        2
    ]
    template = Path(tempfile.gettempdir()) / f"everturn-postgres-{version}-{user.uid}"
    if not template.exists():
        folder = user.make(Path(tempfile.gettempdir()), "everturn-initdb-")
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]
        command = [*user.prefix, str(binaries / "initdb"), *options, "-D", str(folder / "data")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            raise ConfigError(f"initdb failed: {done.stderr.strip()}")
        try:
            (folder / "data").rename(template)
        except OSError:  # another process was first, and its template is as good
            if not template.exists():
                raise
        shutil.rmtree(folder)
    found = template.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid or found.st_mode & 0o077:
        raise ConfigError(f"{template} is not ours; remove it")  # any user may have put it where all may write
    return template


def _copy(binaries: Path, user: _User, directory: Path) -> Path:
    home = user.make(directory, "postgres-")
    copied = ["cp", "-a", "--reflink=auto", str(_template(binaries, user)), str(home / "data")]
    subprocess.run(copied, check=True, capture_output=True)
    return home


@asynccontextmanager
async def private_postgres(directory: Path, **settings: str) -> AsyncGenerator[PostgresServer]:
    """A PostgreSQL server with its log below a directory, removed with its data when the context ends.

    `settings` are those of postgresql.conf, in addition to those of every private server.
    """
    binaries, user = postgres_binaries(), _User()
    home = await asyncio.to_thread(_copy, binaries, user, directory)
    async with _running(binaries, user, home, directory, settings) as postgres:
        yield postgres


@asynccontextmanager
async def standby_postgres(
    primary: PostgresServer, directory: Path, *, synchronous: bool = True
) -> AsyncGenerator[PostgresServer]:
    """A hot standby of another server, by streaming replication.

    With `synchronous`, the primary acknowledges a commit only when the standby has written it to disk, too.
    """
    binaries, user = postgres_binaries(), _User()
    home = user.make(directory, "postgres-")
    command = [*user.prefix, str(binaries / "pg_basebackup"), "-d", primary.url, "-D", str(home / "data")]
    command += ["-R", "-X", "stream", "--checkpoint=fast", "--no-sync"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, cwd=home)
    if done.returncode:
        raise ConfigError(f"pg_basebackup failed: {done.stderr.strip()}")
    async with _running(binaries, user, home, directory, {}) as standby:
        # After the copy: a standby that is promoted has no standby of its own to wait for.
        if synchronous:
            await primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await primary.sql("SELECT pg_reload_conf()")
        expected = "sync" if synchronous else "async"
        async with asyncio.timeout(PATIENCE):
            while await primary.sql("SELECT sync_state FROM pg_stat_replication") != expected:  # noqa: ASYNC110 - psql
                await asyncio.sleep(GLANCE)
        yield standby


@asynccontextmanager
async def _running(
    binaries: Path, user: _User, home: Path, directory: Path, settings: Mapping[str, str]
) -> AsyncGenerator[PostgresServer]:
    """The server of a data directory, until the context ends."""
    port = free_port()
    command = [*user.prefix, str(binaries / "postgres"), "-D", str(home / "data"), "-p", str(port)]
    for name, value in {**_SETTINGS, **settings}.items():
        command += ["-c", f"{name}={value}"]
    daemon = Daemon("PostgreSQL", command, home, directory / f"{home.name}.log", _FAREWELL)
    try:
        postgres = PostgresServer(daemon, binaries, port)
        await postgres.start()
        yield postgres
    finally:
        await daemon.close()
