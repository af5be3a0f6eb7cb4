"""What a turn costs in everturn and in its peers: CPU of the client, against the same provider, side by side.

    python benchmarks/peers/run.py                      # everything: about half an hour on two cores
    python benchmarks/peers/run.py --phase seq --peers raw,bare_httpx,everturn --repeats 5
    python benchmarks/peers/run.py --short              # what the tests run: nothing is installed, a few seconds

Each repeat starts one process per peer and keeps them all; each job then goes to one after the other, in random order,
so that what is compared was measured within seconds. `tables.py` makes the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import Job
from scenarios import SCENARIOS
from tables import RESULTS, tables

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-peers"


class Peer(NamedTuple):
    """What to install for it. None: it is measured in the environment this runs in."""

    packages: tuple[str, ...] | None
    is_light: bool = False  # a few milliseconds a turn


PEERS = {
    "raw": Peer(("msgspec",), is_light=True),
    "bare_aiohttp": Peer(("aiohttp",), is_light=True),
    "bare_httpx": Peer(("httpx", "httpx-sse"), is_light=True),
    "openai_sdk": Peer(("openai",)),
    "pydantic_ai": Peer(("pydantic-ai-slim[openai]",)),
    "openai_agents": Peer(("openai-agents",)),
    "langgraph": Peer(("langgraph", "langchain", "langchain-openai")),
    "everturn": Peer(None, is_light=True),
    "everturn_run": Peer(None, is_light=True),
}
AT_HAND = ("raw", "bare_aiohttp", "everturn")  # what they need, everturn needs too
FLIGHT, OPEN = 64, 1_000
TURNS = {"A": 192, "B": 512, "C": 192, "D": 256, "E": 64}  # at 64 in flight, for the light ones

# Jobs --------------------------------------------------------------------------------------------------------------


def seq(scenario: str) -> Job:
    if scenario in ("E", "E10k", "A5k", "D2000"):  # seconds a turn, for some
        return Job("seq", scenario, turns=2_000, warm=1, least=2)
    return Job("seq", scenario, turns=2_000)


def conc(scenario: str) -> Job:
    return Job("conc", scenario, turns=TURNS.get(scenario, FLIGHT), flight=FLIGHT, warm=1)


PHASES = {
    "seq": [seq(name) for name in "ABCDE"],
    "conc": [conc(name) for name in "ABCDE"],
    "paced": [conc("P10"), conc("P60")],
    "growth": [seq(name) for name in ("A10", "A", "A5k", "D20", "D", "D2000", "E1k", "E", "E10k")],
    "open": [Job("open", "O", turns=OPEN, flight=OPEN, warm=0)],
}
SHORT = {"seq": [Job("seq", name, turns=60, seconds=0.1) for name in "ABC"]}


def fitted(job: Job, peer: str) -> Job | None:
    """The job as this peer can do it in reasonable time, or None."""
    if job.mode == "open" and peer not in AT_HAND:
        return None
    if job.mode == "conc" and not PEERS[peer].is_light:
        return None if job.scenario == "E" else job._replace(turns=FLIGHT)
    return job


# Processes ---------------------------------------------------------------------------------------------------------


def python_of(peer: str, is_short: bool) -> str:
    """The interpreter of a peer's environment, which is made if need be. To upgrade one, remove it."""
    packages = PEERS[peer].packages
    if packages is None or is_short:
        return sys.executable
    folder = CACHE / peer
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists() or done.read_text(encoding="utf-8") != " ".join(packages):
        print(f"installing {', '.join(packages)} into {folder}", file=sys.stderr)
        CACHE.mkdir(parents=True, exist_ok=True)
        # Some want a certifi of this month, which an index may lack; nothing here speaks TLS.
        overrides = CACHE / "overrides.txt"
        overrides.write_text("certifi\n", encoding="utf-8")
        subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
        install = ["uv", "pip", "install", "--quiet", "--python", python, "--override", overrides, *packages]
        subprocess.run(install, check=True)
        done.write_text(" ".join(packages), encoding="utf-8")
    return str(python)


def environment() -> dict[str, str]:
    """No proxy and no key of anybody's, nothing sent home, and no tracer, which would be measured along."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(CACHE / "home"),
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
        "DO_NOT_TRACK": "1",
    }


@contextlib.contextmanager
def provider() -> Generator[str, None, None]:
    """The model everybody asks: everturn's own test provider, in a process of its own."""
    command = [sys.executable, "-m", "everturn.testing.provider", "--port", "0", "--no-record"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as process:
        try:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().strip().partition(" ")
            if word != "ready":
                raise SystemExit("the provider did not start")
            yield url + "/v1"
        finally:
            process.kill()


class Worker:
    """A peer's process."""

    def __init__(self, peer: str, base: str, is_short: bool) -> None:
        command = [python_of(peer, is_short), str(HERE / "bench.py"), peer, base]
        self.peer, self.about = peer, {"peer": peer}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), cwd=HERE, text=True
        )

    def answer(self) -> dict[str, Any]:
        """What it found; whatever else a peer may print is passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        raise SystemExit(f"{self.peer}: its process is gone")

    def ask(self, job: Job) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job._asdict()) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def workers(peers: Sequence[str], base: str, is_short: bool) -> Generator[list[Worker], None, None]:
    with contextlib.ExitStack() as stack:
        started: list[Worker] = []
        for peer in peers:
            started.append(Worker(peer, base, is_short))
            stack.callback(started[-1].close)
        for worker in started:
            worker.about |= worker.answer()  # ready: importing is not measured
        yield started


# A run -------------------------------------------------------------------------------------------------------------


def measure(
    phases: dict[str, list[Job]], peers: Sequence[str], repeats: int, base: str, is_short: bool
) -> Iterator[dict[str, Any]]:
    """Every job of every phase, by every peer, as often as asked."""
    began = time.strftime("%H%M%S")
    for phase, jobs in phases.items():
        for repeat in range(repeats):
            able = [peer for peer in peers if any(fitted(job, peer) for job in jobs)]
            with workers(able, base, is_short) as started:
                for job in jobs:
                    random.shuffle(started)
                    for worker in started:
                        if (fit := fitted(job, worker.peer)) is None:
                            continue
                        found = worker.ask(fit)
                        where = {"phase": phase, "repeat": f"{began}-{repeat}", "scenario": job.scenario}
                        yield {**worker.about, **where, **found}


def some_of(known: Iterable[str], requested: str) -> list[str]:
    """The names given, if they are known."""
    names, available = requested.split(","), list(known)
    for name in names:
        if name not in available:
            raise SystemExit(f"there is no {name!r}; there are: {', '.join(available)}")
    return names


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="What a turn costs in everturn and in its peers.")
    parser.add_argument("--peers", default=",".join(PEERS), help="default: all of %(default)s")
    parser.add_argument("--scenarios", help=f"some of {','.join(SCENARIOS)}; default: all a phase has")
    parser.add_argument("--phase", default=",".join(PHASES), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="only what is at hand, a few turns: for tests")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="add each measurement to a file, as a line of JSON")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {RESULTS.name}")
    parser.add_argument("--base", metavar="URL", help="a provider that runs already")
    options = parser.parse_args(arguments)
    peers = AT_HAND if options.short else some_of(PEERS, options.peers)
    phases = SHORT if options.short else {name: PHASES[name] for name in some_of(PHASES, options.phase)}
    if options.scenarios:
        wanted = some_of(SCENARIOS, options.scenarios)
        phases = {phase: [job for job in jobs if job.scenario in wanted] for phase, jobs in phases.items()}
    rows: list[dict[str, Any]] = []
    words = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    with contextlib.nullcontext(options.base) if options.base else provider() as base:
        for row in measure(phases, peers, options.repeats, base, options.short):
            row["commit"] = commit
            rows.append(row)
            outcome = row.get("error") or f"{row['cpu'] * 1e3:.2f} ms"
            print(f"{row['phase']} {row['repeat']} {row['scenario']} {row['peer']}: {outcome}", file=sys.stderr)
            if options.rows is not None:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    text = tables(rows)
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")
    return any("error" in row for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
