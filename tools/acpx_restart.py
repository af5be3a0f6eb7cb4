"""`acpx` with an approval open across `kill -9` of the agent:

    scripts/protocol-clients
    python -m tools.acpx_restart

`acpx`, in processes of its own, starts `everturn acp`, says hello, and sends a prompt whose answer writes a file. It is stopped (SIGSTOP) before
it can answer the approval: it asks people only where it keeps no session. When the approval is open in the store, both are killed. Then `acpx` sends another prompt: it starts `everturn acp` again and loads the session, is asked for the open approval again, and
gives it. The script prints what `acpx` showed, and exits with 1 unless the file was not there before that and is written once after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Callable
from pathlib import Path

from tests.helpers.cli_run import PATIENCE, plain
from tests.helpers.recorded_streams import CLIENTS

from everturn.testing.provider import Call, Pause, Provider, Say

ACPX = CLIENTS / "node_modules" / ".bin" / "acpx"
WRITE = Call("write_file", '{"path": "new.txt", "content": "x\\n"}')
PAUSE = 5.0  # seconds of the answer before the call: enough to stop acpx


def find_agents(home: Path) -> list[int]:
    """The processes of `everturn acp` that belong to this run."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    rows = [row.split(maxsplit=1) for row in listed.splitlines()[1:]]
    return [int(pid) for pid, words in rows if " everturn acp " in words and str(home) in words and "acpx" not in words]


def find_parent(pid: int) -> int:
    """The process that started another one: the part of `acpx` that talks to the agent."""
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout)


def count_open_gates(store: Path) -> int:
    """The approvals in the store that nobody has answered."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        return database.execute("SELECT count(*) FROM gates WHERE resolution IS NULL").fetchone()[0]


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    return subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0


async def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: it does not.
    """
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)


async def run(home: Path) -> bool:
    """Run it; whether all of it happened."""
    project, store = home / "project", home / "acp.db"
    (project / ".git").mkdir(parents=True)
    async with Provider() as provider:
        write = [Say("Writing. "), Pause(PAUSE), WRITE]
        provider.script("m", [[Say("Hello.")], write, [Say("Done.")], [Say("More.")]], sequence=True)
        agent = [sys.executable, "-m", "everturn", "acp", "--model", "m", "--base-url", f"{provider.url}/v1"]
        words = [
            str(ACPX),
            "--agent",
            shlex.join([*agent, "--store", str(store)]),
            "--cwd",
            str(project),
            "--approve-all",
        ]

        async def acpx(*more: str) -> str:
            process = await asyncio.create_subprocess_exec(
                *words, *more, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=plain(home), cwd=home
            )
            assert process.stdout is not None
            print(f"$ acpx {shlex.join(more)}", flush=True)
            text = ""
            try:
                async with asyncio.timeout(PATIENCE):
                    async for line in process.stdout:
                        text += line.decode()
                        print(f"  {line.decode().rstrip()}", flush=True)
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()
            return text

        await acpx("sessions", "new")
        await acpx("prompt", "Hello")
        second = asyncio.create_task(acpx("prompt", "Write it"))
        await wait_until(lambda: len(provider.seen) == 2)
        [pid] = find_agents(home)
        client = find_parent(pid)
        os.kill(client, signal.SIGSTOP)
        await wait_until(lambda: count_open_gates(store) == 1)
        os.kill(pid, signal.SIGKILL)
        os.kill(client, signal.SIGCONT)
        os.kill(client, signal.SIGTERM)  # acpx 0.1.15 does not notice the end of its agent, and would wait for ever
        print(f"everturn acp ({pid}) was killed with {count_open_gates(store)} approval open", flush=True)
        await wait_until(lambda: not is_alive(client))
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        was_written = (project / "new.txt").exists()
        third = await acpx("prompt", "Go on")
        await wait_until(lambda: count_open_gates(store) == 0)
        text = (project / "new.txt").read_text(encoding="utf-8") if (project / "new.txt").exists() else ""
        print(f"written before the kill: {was_written}; the file now: {text!r}; requests: {len(provider.seen)}")
        await acpx("sessions", "close")
        return not was_written and text == "x\n" and "More." in third


def main() -> int:
    """Run it in a folder of its own."""
    if not ACPX.exists():
        print("there is no acpx: run scripts/protocol-clients first")
        return 1
    with tempfile.TemporaryDirectory(prefix="everturn-restart-", ignore_cleanup_errors=True) as home:
        done = asyncio.run(run(Path(home)))
        for pid in find_agents(Path(home)):
            os.kill(pid, signal.SIGKILL)
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
