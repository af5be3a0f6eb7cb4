"""Webhook campaign: kill -9 of processes that deliver webhooks to a receiver that fails half the time.

Events are appended to sessions of a private PostgreSQL by this process, and processes of an app deliver them. The
receiver verifies each signature and answers 500 to every second request, at random. At random moments a sender is killed
and another one started for it. In the end every event has been delivered, with a valid signature, under one id.

    python -m tools.chaos.webhooks [--deliveries 10000] [--processes 2] [--kills 10] [--seed 1]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
from aiohttp import web
from msgspec import Struct

from everturn.agent import Agent
from everturn.app import App
from everturn.core.events import TurnCompleted
from everturn.core.webhooks import Webhook, derive_secret, sign_payload
from everturn.errors import Stale
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import send_message, turn_ended_events, turn_started_events
from tools.chaos.figures import write_figures
from tools.chaos.schedules import EchoModel, KillableProcess
from tools.servers.postgres import private_postgres

PATIENCE = 600.0  # seconds after the last kill in which everything is delivered


class WebhookReport(Struct, frozen=True):
    """The result of a campaign."""

    deliveries: int
    kills: int
    requests: int
    refused: int  # requests that the receiver answered with 500
    repeated: int  # deliveries that were accepted more than once
    seconds: float
    violations: tuple[str, ...]

    def __str__(self) -> str:
        """The report as text."""
        first = f"{self.deliveries} events, {self.kills} kills: {self.requests} requests in {self.seconds:.0f} s, "
        second = f"{self.refused} answered with 500, {self.repeated} delivered more than once"
        return "\n".join([first + second, f"violations: {len(self.violations)}", *self.violations[:20]])


class _Receiver:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.secret = ""
        self.accepted: Counter[str] = Counter()  # id -> how often
        self.events: dict[tuple[str, int], str] = {}  # session and position -> id
        self.requests = self.refused = 0
        self.violations: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        body, headers = await request.read(), request.headers
        self.requests += 1
        id, time_sent = headers["webhook-id"], int(headers["webhook-timestamp"])
        if headers["webhook-signature"] != sign_payload(self.secret, id, time_sent, body):
            self.violations.append(f"{id}: its signature is wrong")
        data = msgspec.json.decode(body)["data"]
        if self.events.setdefault((data["session"], data["seq"]), id) != id:
            self.violations.append(f"{data['session']}: one event has two ids")
        if self._random.random() < 0.5:
            self.refused += 1
            return web.Response(status=500)
        self.accepted[id] += 1
        return web.Response(status=204)


def make_app(url: str, port: int) -> App:
    """The app of every process: it tries again soon, so that a campaign takes minutes."""
    app = App(agents=[Agent(EchoModel(), name="reporter")], store=url)
    app.webhooks.allow(f"127.0.0.1:{port}")
    app.webhooks.sender.retry_pauses = (0.2,) * 60
    return app


async def work(url: str, port: int) -> None:
    """A process that delivers, until it is killed."""
    await make_app(url, port).serve_until_signal(lambda: print("ready", flush=True))


async def campaign(
    url: str, folder: Path, *, deliveries: int, processes: int, kills: int, seed: int, gap: float = 5.0
) -> WebhookReport:
    """Run a campaign on an empty database."""
    store, rng, receiver = SqlStore.postgres(url), random.Random(seed), _Receiver(seed)
    server = web.Application()
    server.router.add_post("/hook", receiver.handle)
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port: int = runner.addresses[0][1]
    command = (sys.executable, "-m", "tools.chaos.webhooks", "--work", url, "--port", str(port))
    workers = [KillableProcess(command, folder / f"sender-{number}.log") for number in range(processes)]
    began = time.time()
    try:
        webhook = Webhook(
            id="campaign", url=f"http://127.0.0.1:{port}/hook", events=("turn.completed",), created=time.time()
        )
        await store.webhooks.put(webhook)
        receiver.secret = derive_secret(await store.accounts.keys.first("webhooks"), webhook, webhook.version)
        await asyncio.gather(*(worker.start() for worker in workers))
        filling = asyncio.create_task(_fill(store, deliveries))
        for _ in range(kills):
            await asyncio.sleep(rng.uniform(0.5, 1.5) * gap)
            worker = rng.choice(workers)
            await worker.kill9()
            await worker.start()
        expected = await filling
        deadline = time.time() + PATIENCE
        while time.time() < deadline and await store.webhooks.next_due() is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        seconds = time.time() - began
        violations = [*receiver.violations, *await _check(store, webhook.id, expected, receiver)]
    finally:
        for worker in workers:
            await worker.kill9()
        await runner.cleanup()
        await store.aclose()
    repeated = sum(count > 1 for count in receiver.accepted.values())
    return WebhookReport(deliveries, kills, receiver.requests, receiver.refused, repeated, seconds, tuple(violations))


async def _fill(store: SqlStore, count: int) -> set[tuple[str, int]]:
    """Append a finished turn to so many sessions, and return the positions of the events that are told."""
    positions: set[tuple[str, int]] = set()

    async def append(number: int) -> None:
        session, turn = f"s{number:05}", f"t{number:05}"
        await store.admit(send_message(f"k{number}", session, turn))
        events = [*turn_started_events(turn, command=f"k{number}"), *turn_ended_events(turn)]
        try:
            positions.add((session, await store.append(session, 0, events)))
        except Stale:  # a sender found the message first, and drives its turn
            positions.add((session, await _completed(store, session)))

    for at in range(0, count, 100):
        await asyncio.gather(*(append(number) for number in range(at, min(at + 100, count))))
    return positions


async def _completed(store: SqlStore, session: str) -> int:
    """Wait for the end of a turn that another process drives, and return the position of its event."""
    deadline = time.time() + PATIENCE
    while time.time() < deadline:
        for entry in await store.events(session):
            if isinstance(entry.event, TurnCompleted):
                return entry.seq
        await asyncio.sleep(0.5)
    raise TimeoutError(f"{session}: its turn does not end")


async def _check(store: SqlStore, webhook: str, expected: set[tuple[str, int]], receiver: _Receiver) -> list[str]:
    violations = [f"{session}: its event was not delivered" for session, _ in sorted(expected - set(receiver.events))]
    violations += [f"{session}: nobody appended this event" for session, _ in sorted(set(receiver.events) - expected)]
    violations += [f"{id}: it was never accepted" for id in receiver.events.values() if not receiver.accepted[id]]
    for state in ("pending", "dead"):
        left = await store.webhooks.deliveries("local", webhook, state, 100)
        violations += [f"{row.session}: the outbox says {state}: {row.problem}" for row in left]
    return violations


async def _main(options: argparse.Namespace) -> int:
    if options.work:
        await work(options.work, options.port)
        return 0
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        async with private_postgres(Path(folder)) as postgres:
            report = await campaign(
                postgres.url,
                Path(folder),
                deliveries=options.deliveries,
                processes=options.processes,
                kills=options.kills,
                seed=options.seed,
            )
    print(report)
    write_figures(options.json, report)
    return 1 if report.violations else 0


def main() -> int:
    """Read the options, and run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", default="", help="write the figures there")
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    return asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
