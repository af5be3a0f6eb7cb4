"""The same programs in everturn and in its peers: runs each, checks that it does the same, and counts its lines.

    python benchmarks/programs/run.py                   # all of them; peers are installed when they are first needed
    python benchmarks/programs/run.py --peers everturn  # those of everturn alone: what the tests run
    python benchmarks/programs/run.py --write           # the table of docs/guides/comparison.md

A program counts if it passes the check of its function, on the answers of `scripted.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # also where a test imports this file

from scripted import serve  # noqa: E402

from everturn.testing.provider import Provider  # noqa: E402

CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    / "everturn-programs"
)
PAGE = HERE.parent.parent / "docs" / "guides" / "comparison.md"
MARKS = ("<!-- lines: written by benchmarks/programs/run.py -->", "<!-- /lines -->")
COMMON = ("fastapi", "uvicorn")
PEERS: dict[str, tuple[str, ...]] = {
    "everturn": (),
    "pydantic_ai": ("pydantic-ai-slim[openai]", *COMMON),
    "openai_agents": ("openai-agents", *COMMON),
    "langgraph": (
        "langgraph",
        "langchain",
        "langchain-openai",
        "langgraph-checkpoint-sqlite",
        *COMMON,
    ),
}
TITLES = {
    "everturn": "Everturn",
    "pydantic_ai": "Pydantic AI",
    "openai_agents": "OpenAI Agents",
    "langgraph": "LangGraph",
}
SECONDS = 120  # for one program, on a machine that does something else


class Side(NamedTuple):
    """A program of one library, in a folder of its own."""

    peer: str
    program: str
    provider: Provider
    base_url: str
    folder: Path

    @property
    def command(self) -> list[str]:
        # The key of a vendor is sent to that vendor only, so ours is told in code where the vendor is.
        return [
            python_of(self.peer),
            *([str(HERE / "launch.py")] if self.peer == "everturn" else []),
        ]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
            "DO_NOT_TRACK": "1",
        }

    async def run(self, *arguments: str) -> list[str]:
        """Run the program, and return the lines that it printed."""
        process = await self._start(str(source(self.peer, self.program)), *arguments)
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
        if process.returncode != 0:
            raise AssertionError(
                f"{self.peer} {self.program}: {errors.decode()[-2000:]}"
            )
        return out.decode().splitlines()

    async def _start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.command,
            *arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=self.folder,
        )

    async def server(self) -> tuple[asyncio.subprocess.Process, int]:
        """Start the program as a server, and wait until it answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        folder = str(source(self.peer, self.program).parent)
        process = await self._start(
            "-m",
            "uvicorn",
            f"{self.program}:api",
            "--app-dir",
            folder,
            "--port",
            str(port),
        )
        async with asyncio.timeout(SECONDS):
            while True:
                if process.returncode is not None:
                    assert process.stderr is not None
                    raise AssertionError(
                        f"{self.peer}: {(await process.stderr.read()).decode()[-2000:]}"
                    )
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    return process, port
                except OSError:
                    await asyncio.sleep(0.05)


def source(peer: str, program: str) -> Path:
    """The file of a program."""
    return (
        HERE
        / ("everturn" if peer == "everturn" else f"peers/{peer}")
        / f"{program}.py"
    )


def python_of(peer: str) -> str:
    """The Python of a peer, in an environment of its own, which is made now if there is none."""
    if peer == "everturn":
        return sys.executable
    folder, packages = CACHE / peer, PEERS[peer]
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists() or done.read_text(encoding="utf-8") != " ".join(packages):
        print(f"installing {', '.join(packages)} into {folder}", file=sys.stderr)
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder],
            check=True,
        )
        subprocess.run(
            ["uv", "pip", "install", "--quiet", "--python", python, *packages],
            check=True,
        )
        done.write_text(" ".join(packages), encoding="utf-8")
    return str(python)


# What each program does --------------------------------------------------------------------------------------------


async def check_support(side: Side) -> None:
    """A refund waits for an approval, the server is killed, and another one pays it once; the conversation continues."""
    from aiohttp import ClientSession

    with sqlite3.connect(side.folder / "shop.db") as db:
        db.execute("create table orders (id, customer, item, cents)")
        db.execute("create table refunds (id, cents)")
        db.execute("insert into orders values (4512, 'ada', 'a lamp', 2900)")

    async def post(path: str, **query: str) -> dict[str, Any]:
        async with (
            ClientSession() as client,
            client.post(f"http://127.0.0.1:{port}{path}", params=query) as answer,
        ):
            assert answer.status == 200, f"{side.peer}: {await answer.text()}"
            return await answer.json()

    process, port = await side.server()
    reply = await post(
        "/chats/s1", customer="ada", message="I want my money back for 4512"
    )
    [[name, arguments]] = reply["approve"]
    assert name == "refund"
    assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == {
        "order": 4512,
        "cents": 2900,
    }
    process.send_signal(signal.SIGKILL)
    await process.wait()
    process, port = await side.server()
    try:
        paid = await post(f"/approvals/{reply['id']}")
        assert paid["output"] == {"summary": "refunded 2900 cents", "cents": 2900}
        again = await post(
            "/chats/s1", customer="ada", message="What did I say before?"
        )
        assert again["output"] == {
            "summary": "You said: I want my money back for 4512",
            "cents": 0,
        }
        with sqlite3.connect(side.folder / "shop.db") as db:
            assert db.execute("select id, cents from refunds").fetchall() == [
                (4512, 2900)
            ]
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    found = [
        text
        for request in side.provider.seen
        for text in [json.dumps(request.body)]
        if "a lamp" in text
    ]
    assert found  # the model was told what the database has


async def check_router(side: Side) -> None:
    """Two specialists are asked, each runs its own tool, and the router sums up."""
    assert await side.run() == ["Ada: 2 invoices and a parcel in Oslo."]
    assert len(side.provider.seen) == 6


async def check_rag(side: Side) -> None:
    """Documents are in the request, a password is refused unread, a number is taken out, an answer without a citation goes back."""
    assert await side.run() == [
        "Within 30 days [returns].",
        "I cannot help with that.",
        "At nine [hours], says ***.",
    ]
    assert "1234" not in json.dumps([request.body for request in side.provider.seen])
    assert len(side.provider.seen) == 3


async def check_review(side: Side) -> None:
    """A draft waits for its reviewer while no process runs, is not written again, and is published once."""
    [draft] = await side.run("start")
    assert "Tea is a leaf." in draft
    assert len(side.provider.seen) == 1
    assert not (side.folder / "published.txt").exists()
    assert await side.run("approve") == ["It is out."]
    assert (side.folder / "published.txt").read_text(
        encoding="utf-8"
    ) == "Tea is a leaf.\n"
    assert len(side.provider.seen) == 2


async def check_webhook(side: Side) -> None:
    """A job is started once, no process runs while it does, and its result arrives in another process."""
    assert await side.run("start") == ["waiting"]
    job = (side.folder / "job.txt").read_text(encoding="utf-8")
    (side.folder / "job.txt").unlink()
    assert await side.run("deliver", job, '{"rows": 12}') == ["It has 12 rows."]
    assert not (side.folder / "job.txt").exists()
    assert len(side.provider.seen) == 2


PROGRAMS: dict[str, tuple[str, Callable[[Side], Awaitable[None]]]] = {
    "support": (
        "support bot over HTTP: tools, dependencies, typed output, approval, SQLite",
        check_support,
    ),
    "router": ("a router with two specialists", check_router),
    "rag": ("retrieval, guardrails, an answer that is checked", check_rag),
    "review": ("a person reviews, in another process", check_review),
    "webhook": (
        "a result that arrives hours later, in another process",
        check_webhook,
    ),
}


async def check(peer: str, program: str) -> None:
    """Run a program of one library and check what it does."""
    with tempfile.TemporaryDirectory() as folder:
        async with serve() as (provider, base_url):
            await PROGRAMS[program][1](
                Side(peer, program, provider, base_url, Path(folder))
            )
            assert provider.refusals == [], f"{peer} {program}: {provider.refusals}"


# Tables ------------------------------------------------------------------------------------------------------------


def lines(peer: str, program: str) -> int:
    """The lines of a program that are not blank."""
    return sum(
        bool(line.strip())
        for line in source(peer, program).read_text(encoding="utf-8").splitlines()
    )


def versions() -> str:
    """What was installed."""
    code = "import sys, importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    found: list[str] = []
    for peer, packages in PEERS.items():
        if packages:
            names = [
                re.split(r"\[", package)[0]
                for package in packages
                if package not in COMMON
            ]
            command = [python_of(peer), "-c", code, *names]
            found.append(
                subprocess.run(
                    command, check=True, capture_output=True, text=True
                ).stdout.strip()
            )
    return "; ".join(found)


def table() -> str:
    """The table of all programs: non-blank lines."""
    head = [*TITLES.values(), "ours ÷ shortest"]
    rows = [f"| program | {' | '.join(head)} |", f"|---|{'--:|' * len(head)}"]
    for program, (about, _) in PROGRAMS.items():
        counts = [lines(peer, program) for peer in PEERS]
        rows.append(
            f"| {about} | {' | '.join(map(str, counts))} | {counts[0] / min(counts[1:]):.2f} |"
        )
    return "\n".join(rows)


def write(text: str) -> None:
    """Put the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    PAGE.write_text(
        f"{head}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{tail}", encoding="utf-8"
    )


def main() -> None:
    """Check the programs, and print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="which, with commas between them"
    )
    parser.add_argument(
        "--programs",
        default=",".join(PROGRAMS),
        help="which, with commas between them",
    )
    parser.add_argument(
        "--write", action="store_true", help="write the table of the docs"
    )
    options = parser.parse_args()
    failed = 0
    for program in options.programs.split(","):
        for peer in options.peers.split(","):
            try:
                asyncio.run(check(peer, program))
                print(f"{program:8} {peer:14} {lines(peer, program):3} lines: does it")
            except Exception as error:
                failed += 1
                print(f"{program:8} {peer:14} FAILED: {error!r}"[:3000])
    if failed:
        raise SystemExit(f"{failed} programs do not do what they should")
    if options.write:
        write(f"{table()}\n\nVersions: {versions()}.")


if __name__ == "__main__":
    main()
