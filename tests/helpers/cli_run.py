"""`everturn run` in a pipe, as a script has it: a home of its own, and a provider that says what it is told to."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from everturn.cli.args.commands import make_parser
from everturn.cli.commands.run import check_options, run_prompt
from everturn.errors import ConfigError

RUN = [sys.executable, "-m", "everturn", "run"]
PATIENCE = 120.0  # seconds; a machine may be busy
TOOLS = str(Path(__file__).parent / "cli_run_tools.py")


class Done(Struct, frozen=True):
    """What came of it."""

    code: int
    out: str
    err: str


def plain(home: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing is configured."""
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    bare = {"HOME": str(home), "PYTHONUTF8": "1", "EVERTURN_DONE": str(home / "done.txt"), "COLUMNS": "100"}
    return {**inherited, **bare, **more}


async def start(home: Path, *words: str, command: Sequence[str] = RUN, **environment: str) -> Process:
    """Start it, with pipes at all ends."""
    return await asyncio.create_subprocess_exec(
        *command, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=plain(home, **environment), cwd=home
    )


async def run(
    home: Path, *words: str, stdin: str | bytes = "", command: Sequence[str] = RUN, **environment: str
) -> Done:
    """Run it to its end."""
    process = await start(home, *words, command=command, **environment)
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(stdin.encode() if isinstance(stdin, str) else stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    assert b"Traceback" not in err, err.decode()
    return Done(process.returncode, out.decode(), err.decode())


class Here:
    """It in this process, which takes a tenth of the time; for what does not depend on pipes and signals."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]) -> None:
        for name in list(os.environ):
            if name.startswith("EVERTURN_") or name.endswith("_API_KEY") or name.startswith("XDG_"):
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("EVERTURN_DONE", str(home / "done.txt"))
        patch.chdir(home)
        self._captured = captured

    async def __call__(self, *words: str) -> Done:
        """Run it to its end, without anything on stdin."""
        options = make_parser().parse_args(["run", "--no-stdin", *words])
        try:
            check_options(options)
            code = await run_prompt(options, options.prompt or "")
        except ConfigError as error:
            code, _ = 2, print(f"everturn: {error}", file=sys.stderr)
        out, err = self._captured.readouterr()
        return Done(code, out.decode(), err.decode())


def did(home: Path) -> list[str]:
    """What the tools really did."""
    file = home / "done.txt"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
