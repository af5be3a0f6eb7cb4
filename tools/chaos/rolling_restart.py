"""Rolling restart campaign: the service of the FastAPI guide is replaced, again and again, while answers stream.

`uvicorn --workers N` runs on one PostgreSQL, and nothing else. Many readers follow a turn each over HTTP. Meanwhile a new
set of workers starts, the old one is told to leave (SIGTERM), and so on. A reader whose connection ends goes to another
address and resumes with the id of the last event that it has. Each must have rendered the text that is stored, byte for
byte, and no turn may fail or be asked twice.

    python -m tools.chaos.rolling_restart --streams 200 --workers 4 --restarts 2
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from everturn.core.deltas import Frame
from everturn.core.events import LogEvent, StepRestarted, TurnCompleted
from everturn.stores.sql.store import SqlStore
from everturn.testing.provider.server import Provider
from tools.chaos.figures import write_figures
from tools.chaos.resume import TurnScreen, compare_with_stored
from tools.environment import child_environment
from tools.servers.postgres import private_postgres
from tools.servers.process import free_port

PACE_MS = 100  # between two chunks of an answer
PATIENCE = 180.0  # seconds for all readers to see the end, beyond the duration of an answer
ITEM: msgspec.json.Decoder[Any] = msgspec.json.Decoder(LogEvent | Frame)


class RestartReport(Struct, frozen=True):
    """What the readers saw."""

    streams: int
    restarts: int  # of the service
    reconnects: int  # of readers
    step_restarts: int  # steps that another process began again
    longest_gap: float  # seconds without anything new, of the reader that waited longest
    seconds: float
    violations: tuple[str, ...]


class Service:
    """The sets of workers that can be reached; a reader goes to any of them."""

    def __init__(self, environment: dict[str, str], workers: int, log: Path) -> None:
        self._environment, self._workers, self._log = environment, workers, log
        self._sets: dict[str, asyncio.subprocess.Process] = {}

    def address(self, number: int) -> str:
        """An address, for the readers in turn."""
        addresses = list(self._sets)
        return addresses[number % len(addresses)]

    async def start(self, http: aiohttp.ClientSession) -> None:
        """Start a set of workers; it answers when this returns."""
        port = free_port()
        words = ("uvicorn", "tools.chaos.guide_service:app", "--workers", str(self._workers), "--port", str(port))
        more = ("--log-level", "warning", "--timeout-graceful-shutdown", "3")
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *words,
                *more,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        address = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(180):
            while not await _is_served(http, address):  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.1)
        self._sets[address] = process

    async def stop_oldest(self) -> None:
        """Tell the oldest set to leave, and wait until it has."""
        address, process = next(iter(self._sets.items()))
        del self._sets[address]
        process.terminate()
        await asyncio.wait_for(process.wait(), 60)

    async def stop(self) -> None:
        """Stop everything."""
        while self._sets:
            await self.stop_oldest()


class HttpReader:
    """Sends a message and follows its turn, over any connections that it takes."""

    def __init__(self, number: int, service: Service, http: aiohttp.ClientSession) -> None:
        self.session = f"stream-{number:04d}"
        self.face = TurnScreen()
        self.reconnects = 0
        self.longest_gap = 0.0
        self.failures: list[str] = []
        self._at, self._service, self._http = number, service, http
        self._news = time.monotonic()

    async def run(self) -> None:
        """Follow the turn to its end."""
        turn = await self._send()
        self._news = time.monotonic()
        while not self.face.is_over and not self.failures:
            try:
                await self._follow(turn)
            except (aiohttp.ClientError, TimeoutError):
                pass
            if not self.face.is_over:
                self.reconnects += 1
                self._at += 1
                await asyncio.sleep(0.1)

    async def _send(self) -> str:
        while True:
            url = f"{self._service.address(self._at)}/talks/{self.session}"
            try:
                async with self._http.post(
                    url, json={"text": "Tell me."}, headers={"idempotency-key": "1"}
                ) as response:
                    if response.status == 200:
                        return str((await response.json())["turn"])
                    if response.status < 500:
                        self.failures.append(f"sending: {response.status} {await response.text()}")
                        return ""
            except (aiohttp.ClientError, TimeoutError):
                pass
            self._at += 1
            await asyncio.sleep(0.1)

    async def _follow(self, turn: str) -> None:
        url = f"{self._service.address(self._at)}/talks/{self.session}/{turn}"
        async with self._http.get(url, headers={"last-event-id": self.face.cursor}) as response:
            if response.status != 200:
                if response.status < 500:
                    self.failures.append(f"following: {response.status} {await response.text()}")
                return
            cursor = ""
            async for line in response.content:
                if line.startswith(b"id: "):
                    cursor = line[4:].strip().decode()
                elif line.startswith(b"data: "):
                    self.face.show(ITEM.decode(line[6:]))
                elif not line.strip() and cursor:  # a whole event: what came after it is asked for next time
                    self.face.cursor = cursor
                    self.longest_gap = max(self.longest_gap, time.monotonic() - self._news)
                    self._news = time.monotonic()


async def restart_while_streaming(
    streams: int = 200, workers: int = 4, restarts: int = 2, chunks: int = 400
) -> RestartReport:
    """Run the campaign."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        async with private_postgres(Path(home), max_connections="300") as postgres, Provider() as provider:
            environment = child_environment() | {
                "TALKS": postgres.url,
                "CHAOS_MODEL": f"plain-n{chunks}-p{PACE_MS}",
                "CHAOS_MODEL_URL": f"{provider.url}/v1",
                "PYTHONPATH": str(Path.cwd()),
            }
            async with _http() as http:
                service = Service(environment, workers, Path(home) / "service.log")
                try:
                    await service.start(http)
                    readers = [HttpReader(number, service, http) for number in range(streams)]
                    await _read(readers, service, http, restarts, PATIENCE + chunks * PACE_MS / 1000)
                finally:
                    await service.stop()
            return await _judge(readers, postgres.url, restarts, time.monotonic() - began)


async def _read(
    readers: list[HttpReader], service: Service, http: aiohttp.ClientSession, restarts: int, patience: float
) -> None:
    async def replace() -> None:
        for number in range(restarts):
            await asyncio.sleep(2)
            await service.stop_oldest()
            if number + 1 < restarts:
                await service.start(http)

    await service.start(http)  # so that the first that leaves has a successor
    replacing = asyncio.create_task(replace())
    reading = [asyncio.create_task(reader.run()) for reader in readers]
    done, left = await asyncio.wait(reading, timeout=patience)
    for task in left:  # what they have not seen is found below
        task.cancel()
    for task in done:
        task.result()
    await replacing


async def _judge(readers: list[HttpReader], url: str, restarts: int, seconds: float) -> RestartReport:
    violations: list[str] = []
    step_restarts = 0
    store = SqlStore.postgres(url)
    try:
        for reader in readers:
            events = [entry.event for entry in await store.events(reader.session)]
            ended = [event for event in events if isinstance(event, TurnCompleted)]
            step_restarts += sum(isinstance(event, StepRestarted) for event in events)
            stored = (await store.path(reader.session, (await store.info(reader.session)).leaf))[-1].text
            found = [*reader.failures, *compare_with_stored(reader.face, stored)]
            if len(ended) != 1:
                found.append(f"the turn completed {len(ended)} times")
            violations += [f"{reader.session}: {problem}" for problem in found]
    finally:
        await store.aclose()
    reconnects = sum(reader.reconnects for reader in readers)
    if reconnects < restarts * len(readers) / 4:
        violations.append(f"only {reconnects} connections were cut, so this proves little")
    return RestartReport(
        streams=len(readers),
        restarts=restarts,
        reconnects=reconnects,
        step_restarts=step_restarts,
        longest_gap=max(reader.longest_gap for reader in readers),
        seconds=seconds,
        violations=tuple(violations),
    )


async def _is_served(http: aiohttp.ClientSession, address: str) -> bool:
    try:
        async with http.get(f"{address}/openapi.json") as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


@asynccontextmanager
async def _http() -> AsyncGenerator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield http


def main() -> None:
    """Run the campaign, and print what it found."""
    parser = argparse.ArgumentParser(description="Readers over HTTP while the service is replaced.")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--restarts", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=400, help="of an answer, ten a second")
    parser.add_argument("--json", default="", help="write the figures there")
    options = parser.parse_args()
    report = asyncio.run(restart_while_streaming(options.streams, options.workers, options.restarts, options.chunks))
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    write_figures(options.json, report)
    raise SystemExit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
