"""A real server under hostile command lines: how long `/healthz` takes while calls and explanations pour in.

    python -m tests.permissions.hostile_load 60        # seconds

Eight clients ask `POST /api/explain` and eight have a model call a shell tool, each with lines made to be slow to read.
`/healthz` is asked from a process of its own. CI holds the same by the CPU time of the loop (`test_bounded.py`).
"""

from __future__ import annotations

import asyncio
import http.client
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from tests.helpers.cli_run import plain
from tests.permissions import explained_tools
from tests.permissions.slow_commands import ENDS, STARTS, UNITS, build_line

from everturn.permissions.shell.parser import MAX_BYTES
from everturn.testing.provider import Call, Provider, Say
from tools.servers.process import free_port

LIMIT = 0.2
CLIENTS = 8
CONFIG = """\
[server]
host = "127.0.0.1"
port = {port}
token_file = "{home}/token"

[store]
url = "{home}/talks.db"

[models.m]
model = "compatible:m"
base_url = "{model}/v1"

[agents.assistant]
model = "m"

[limits]
requests = 0

[tools]
python = [{tools}]

[[permissions]]
tool = "shell"
match = {{ command = "git *" }}
action = "allow"
"""


def hostile(dice: random.Random) -> str:
    """A line that is slow to read, of a length up to the limit and a little above."""
    unit = "".join(dice.choice(UNITS) for _ in range(dice.choice((1, 1, 2, 3))))
    size = dice.choice((300, 500, 1000, 4000, MAX_BYTES, MAX_BYTES + 100))
    return build_line(dice.choice(STARTS), unit, size, dice.choice(ENDS))


def probe(port: int, seconds: float, results: Any) -> None:
    """Ask `/healthz` fifty times a second, on one connection, and note how long each took."""
    taken: list[float] = []
    ends = time.monotonic() + seconds
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while time.monotonic() < ends:
        began = time.monotonic()
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        taken.append(time.monotonic() - began)
        time.sleep(0.02)
    results.put(taken)


async def flood(port: int, token: str, seconds: float) -> Counter[str]:
    """Let the clients do what they can; what became of it."""
    done, ends = Counter[str](), time.monotonic() + seconds
    headers = {"Authorization": f"Bearer {token}"}

    async def explain(http: aiohttp.ClientSession, dice: random.Random) -> None:
        while time.monotonic() < ends:
            body = {"tool": "shell", "arguments": {"command": hostile(dice)}}
            async with http.post("/api/explain", json=body) as answer:
                explanation = await answer.json()
                done[f"explained: {explanation.get('action', answer.status)}"] += 1

    async def turn(http: aiohttp.ClientSession) -> None:
        while time.monotonic() < ends:
            async with http.post("/api/sessions", json={"text": "go"}) as answer:
                done[f"turn: {answer.status}"] += 1
            await asyncio.sleep(0.05)

    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as http, asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(explain(http, random.Random(number)))
            group.create_task(turn(http))
    return done


async def main(seconds: float) -> int:
    """Start the server, flood it, and say how `/healthz` was."""
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        home, port = Path(folder), free_port()
        async with Provider() as provider:
            arguments = [msgspec.json.encode({"command": hostile(dice)}).decode() for _ in range(50)]
            provider.script("m", [lambda _: [Call("shell", dice.choice(arguments))], [Say("Done.")]])
            tools = msgspec.json.encode(explained_tools.__file__).decode()
            text = CONFIG.format(port=port, home=home, model=provider.url, tools=tools)
            (home / "everturn.toml").write_text(text, encoding="utf-8")
            with (home / "log").open("wb") as log:
                server = await asyncio.create_subprocess_exec(
                    *(
                        sys.executable,
                        "-m",
                        "everturn",
                        "serve",
                        "--config",
                        str(home / "everturn.toml"),
                        "--no-reload",
                    ),
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=plain(home),
                    cwd=home,
                )
            try:
                assert server.stdout is not None
                while b"serves at" not in (line := await server.stdout.readline()):
                    assert line, (home / "log").read_text()
                results: Any = multiprocessing.Queue()
                probing = multiprocessing.Process(target=probe, args=(port, seconds, results))
                probing.start()
                done = await flood(port, (home / "token").read_text().strip(), seconds)
                taken = sorted(await asyncio.to_thread(results.get))
                probing.join()
            finally:
                server.kill()
                await server.wait()
    worst = taken[-1]
    print(dict(done), f"{len(provider.seen)} of the last requests to the model kept")
    print(
        f"/healthz {len(taken)} times in {seconds:g} s: median {statistics.median(taken) * 1000:.1f} ms, "
        f"p99 {taken[int(len(taken) * 0.99)] * 1000:.1f} ms, the longest {worst * 1000:.1f} ms (at most {LIMIT * 1000:g})"
    )
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)))
