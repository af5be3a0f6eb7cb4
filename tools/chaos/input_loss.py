"""Loss campaign: counts lost inputs while everything is killed. `python -m tools.chaos.input_loss --inputs
100000`.

Clients, processes of their own, send inputs to a cluster (`cell`) in which everything is killed and restarted by a
seeded plan: workers, clients, PostgreSQL, Restate, NATS. Each acknowledged input is in a ledger. When all is quiet,
every log is read: each acknowledged input must have started one turn, which has ended, and whose answer repeats the
input.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.app import App
from everturn.chat.session import Chat
from tools.chaos.cell import Cell, cell
from tools.chaos.input_check import check_session_inputs, merge_inputs
from tools.chaos.ledger import LedgerLine, read_ledger
from tools.chaos.scenario import ask
from tools.chaos.sender import REFUSED, TAKEN, SenderConfig
from tools.chaos.sets import InputsReport
from tools.environment import child_environment
from tools.servers.process import process_family

SHOWN = 40  # violations that a report lists
REST = 180.0  # seconds after the last fault in which everything must come to rest: a lost wake is found after 30

WEIGHTS = {
    "worker killed": 8,
    "client killed": 3,
    "connections dropped": 2,
    "database killed": 1,
    "database stopped at once": 1,
    "database restarted": 1,
    "bus restarted": 1,
    "bus killed": 1,
    "engine killed": 1,
}
"""The possible faults, with their weights out of nineteen."""


class LossPlan(Struct, frozen=True):
    """How much each client sends, and how often something is killed. The seed decides what and when."""

    inputs: int = 1000
    per_session: int = 20
    clients: int = 3
    at_once: int = 16  # sessions, per client
    workers: int = 3
    gap: float = 3.0  # seconds between two faults, on average; 0: none
    seed: int = 1
    name: str = "losing"
    bug: str = ""


class LossReport(Struct, frozen=True):
    """The result of a campaign."""

    plan: LossPlan
    inputs: int  # acknowledged
    begun: int
    sessions: int
    faults: dict[str, int]
    errors: dict[str, int]  # errors after which clients sent again
    refused: int  # keys reused for another input
    again: int  # repeated acknowledgements of inputs
    quarantined: int  # quarantined sessions that needed another command
    seconds: float
    cpu: dict[str, float]
    lost: int
    doubled: int
    violations: list[str]

    def __str__(self) -> str:
        """The report as text."""
        rows = [
            f"inputs acknowledged  {self.inputs} in {self.sessions} sessions, {self.again} of them again",
            f"turns begun          {self.begun}",
            f"lost                 {self.lost}",
            f"doubled              {self.doubled}",
            f"keys refused         {self.refused}",
            f"faults               {sum(self.faults.values())}: {_counted(self.faults)}",
            f"errors told          {sum(self.errors.values())}: {_counted(self.errors)}",
            f"sessions quarantined       {self.quarantined}",
            f"seconds              {self.seconds:.0f}, {self.inputs / self.seconds:.0f} inputs a second",
            f"processor seconds    {_counted({part: round(spent) for part, spent in self.cpu.items()})}",
            f"violations           {len(self.violations)}",
        ]
        return "\n".join([*rows, *(f"  {violation}" for violation in self.violations[:SHOWN])])


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


class _Client:
    """A client process, which is restarted whenever it is killed."""

    def __init__(self, config: SenderConfig, log: Path) -> None:
        self.config, self._log = config, log
        self._process: asyncio.subprocess.Process | None = None
        self.spent = 0.0

    async def run(self) -> None:
        environment = child_environment()
        while True:
            with self._log.open("ab") as log:
                self._process = process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "tools.chaos.sender",
                    msgspec.json.encode(self.config).decode(),
                    stdout=log,
                    stderr=log,
                    env=environment,
                )
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.kill()
                raise
            if code == 0:
                return
            if code != -signal.SIGKILL:
                tail = self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"client {self.config.name} ended with {code}: {tail}")

    def kill9(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self.spent += process_family(self._process.pid).seconds
            with suppress(ProcessLookupError):
                self._process.kill()


class LossCampaign:
    """One run in a cluster."""

    def __init__(self, cluster: Cell, plan: LossPlan) -> None:
        self._cell, self._plan = cluster, plan
        self._random = random.Random(plan.seed)
        self._faults, self._dead = Counter[str](), 0.0  # processor seconds of workers that have ended
        self._clients = [self._client(number) for number in range(plan.clients)]

    def _client(self, number: int) -> _Client:
        plan, name = self._plan, f"{self._plan.name}{number}"
        sessions = max(1, round(plan.inputs / plan.clients / plan.per_session))
        ledger, seed = str(self._cell.home / f"{name}.ledger"), plan.seed
        config = SenderConfig(
            name, self._cell.cluster, ledger, sessions, plan.per_session, plan.at_once, seed=seed, bug=plan.bug
        )
        return _Client(config, self._cell.home / f"{name}.log")

    async def run(self) -> LossReport:
        """Send everything while everything is killed; then count."""
        begin, before = time.monotonic(), self._cell.cpu()
        missing = self._plan.workers - sum(worker.is_running for worker in self._cell.workers)
        await self._cell.start_workers(max(missing, 0))
        async with asyncio.TaskGroup() as group:
            killing = group.create_task(self._kill())
            sending = [group.create_task(client.run()) for client in self._clients]
            await asyncio.wait(sending)
            killing.cancel()
        await self._mend()
        async with self._cell.client() as app:
            quarantined = await self._rest(app)
            seconds, spent = time.monotonic() - begin, self._cell.cpu()
            inputs, notes, wrong = await self._judge(app)
        errors = {name: count for name, count in notes.items() if name not in (REFUSED, TAKEN, "again")}
        return LossReport(
            plan=self._plan,
            inputs=inputs.acknowledged,
            begun=inputs.begun,
            sessions=sum(client.config.sessions for client in self._clients),
            faults=dict(self._faults),
            errors=errors,
            refused=notes[REFUSED],
            again=notes["again"],
            quarantined=quarantined,
            seconds=seconds,
            cpu={part: spent[part] - before[part] + (self._dead if part == "workers" else 0.0) for part in spent},
            lost=len(inputs.lost),
            doubled=len(inputs.doubled),
            violations=[*inputs.violations, *wrong],
        )

    # Faults -------------------------------------------------------------------------------------------------------

    async def _kill(self) -> None:
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        while self._plan.gap:
            await asyncio.sleep(self._random.uniform(0.2, 1.8) * self._plan.gap)
            [name] = self._random.choices(names, weights)
            self._faults[name] += 1
            self._cell.ledger.write("note", name=name)
            # A started fault is completed: a server that was killed is started again.
            await _whole(self._strike(name))

    async def _strike(self, name: str) -> None:
        cell = self._cell
        nats, restate = cell.nats, cell.restate
        assert nats is not None
        assert restate is not None
        do: dict[str, Callable[[], Awaitable[object]]] = {
            "worker killed": self._kill_worker,
            "client killed": self._kill_client,
            "connections dropped": cell.postgres.drop_connections,
            "database killed": lambda: _again(cell.postgres.kill9, cell.postgres.start),
            "database stopped at once": lambda: cell.postgres.restart("immediate"),
            "database restarted": lambda: cell.postgres.restart("fast"),
            "bus restarted": nats.restart,
            "bus killed": lambda: _again(nats.kill9, nats.start),
            "engine killed": lambda: _again(restate.kill9, restate.start),
        }
        await do[name]()

    async def _kill_worker(self) -> None:
        worker = self._random.choice([worker for worker in self._cell.workers if worker.is_running])
        self._dead += worker.cpu()
        await worker.kill9()
        self._cell.workers.remove(worker)
        await self._cell.start_worker()

    async def _kill_client(self) -> None:
        self._random.choice(self._clients).kill9()

    async def _mend(self) -> None:
        """Restart everything that ran at the beginning."""
        servers = (self._cell.postgres, self._cell.nats, self._cell.restate)
        await asyncio.gather(*(server.start() for server in servers if server is not None))

    # Results ------------------------------------------------------------------------------------------------------

    async def _rest(self, app: App) -> int:
        """Wait until no session is awake, and return how many sessions needed another command."""
        until, resent = time.monotonic() + REST, set[str]()
        while awake := [info for info in await app.store.sessions(awake=True) if self._is_ours(info.id)]:
            if time.monotonic() > until:
                break
            for info in awake:
                if (
                    info.quarantined and info.id not in resent
                ):  # it was killed again and again, and is quarantined: send anew
                    resent.add(info.id)
                    chat = Chat(app.model_for(""), app=app, session=info.id)
                    await chat.send(ask("echo", info.id, -2))
            await asyncio.sleep(0.5)
        return len(resent)

    def _is_ours(self, session: str) -> bool:
        return session.rpartition("-")[0] in {client.config.name for client in self._clients}

    async def _judge(self, app: App) -> tuple[InputsReport, Counter[str], list[str]]:
        """Read every ledger and every log, a session at a time."""
        total = InputsReport(0, 0, [], [], [], [])
        notes, wrong = Counter[str](), list[str]()
        for client in self._clients:
            acked: dict[str, list[LedgerLine]] = {}
            for line in read_ledger(client.config.ledger).lines:
                if line.kind == "ack":
                    acked.setdefault(line.session, []).append(line)
                else:
                    notes[line.name] += 1
                    if line.name == TAKEN:
                        wrong.append(f"key {line.key} of {line.session} was taken for another input")
            for number in range(client.config.sessions):
                session = f"{client.config.name}-{number}"
                inputs, problems = await check_session_inputs(app, session, acked.get(session, ()))
                notes["again"] += len(acked.get(session, ())) - inputs.acknowledged
                total, wrong = merge_inputs(total, inputs), [*wrong, *problems]
        return total, notes, wrong


async def _again(kill: Callable[[], None], start: Callable[[], Awaitable[None]]) -> None:
    kill()
    await start()


async def _whole(doing: Awaitable[None]) -> None:
    """Await something that a cancellation must not leave half done."""
    task = asyncio.ensure_future(doing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def campaign(plan: LossPlan, home: Path | None = None) -> LossReport:
    """Run a campaign in a cluster of its own."""
    async with cell(home) as cluster:
        return await LossCampaign(cluster, plan).run()


def main() -> None:
    """Run a campaign from the command line; it exits with 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    for name in ("inputs", "per_session", "clients", "at_once", "workers", "gap", "seed", "bug"):
        default: int | float | str = getattr(LossPlan(), name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there")
    options = vars(parser.parse_args())
    file: Path | None = options.pop("json")
    report = asyncio.run(campaign(LossPlan(**options)))
    print(report)
    if file is not None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    sys.exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
