"""A cluster on this machine, gone afterwards: PostgreSQL, Restate, NATS, two workers, an API node and an offline model.

Everturn is started as it is in earnest: `everturn worker` and `everturn serve --cluster`, with everturn.toml.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from everturn.testing.provider import Call, Item, Provider, Say

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository, whose folder `tools` starts servers

from tools.servers.nats import private_nats
from tools.servers.postgres import private_postgres
from tools.servers.process import free_port
from tools.servers.restate import restate_server

CONFIG = str(Path(__file__).with_name("everturn.toml"))


class Here:
    """Where everything is."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment, self.url = environment, ""

    async def everturn(self, *words: str, **more: Any) -> asyncio.subprocess.Process:
        """Start a program of Everturn."""
        command = (sys.executable, "-m", "everturn", *words, "--config", CONFIG)
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*command, env=self.environment, stdout=pipe, **more)

    async def key(self, tenant: str, user: str, role: str = "member") -> str:
        """Make an API key."""
        process = await self.everturn("keys", "add", user, "--tenant", tenant, "--role", role)
        output, _ = await process.communicate()
        return output.decode().split()[-1]


@asynccontextmanager
async def cluster(home: Path) -> AsyncGenerator[Here]:
    """Start all of it, with files beneath `home`."""
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(Provider())
        provider.script("support", [look, act, tell], pace=0.01)
        postgres, nats, restate = await asyncio.gather(
            stack.enter_async_context(private_postgres(home)),
            stack.enter_async_context(private_nats(home)),
            stack.enter_async_context(restate_server(home)),
        )
        installation = Here(
            os.environ
            | {"EVERTURN_DATABASE": postgres.url, "EVERTURN_NATS": nats.url, "XDG_DATA_HOME": str(home)}
            | {"EVERTURN_RESTATE": restate.ingress, "EVERTURN_ADMIN": restate.admin}
            | {"EVERTURN_MODELS__OFFLINE__BASE_URL": f"{provider.url}/v1", "SHOP_LEDGER": str(home / "bank.db")}
        )
        listen = f"127.0.0.1:{free_port()}"
        log = stack.enter_context((home / "workers.log").open("wb"))
        workers = await installation.everturn("worker", "--workers", "2", "--listen", listen, stderr=log)
        stack.push_async_callback(leave, workers)
        node = await installation.everturn("serve", "--cluster", "--port", "0", stderr=log)
        stack.push_async_callback(leave, node)
        installation.url = await wait_for_output(node, rb"serves at (http://\S+)")
        while (home / "workers.log").read_bytes().count(b"drives sessions") < 2:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
        yield installation


async def wait_for_output(program: asyncio.subprocess.Process, pattern: bytes) -> str:
    """Wait until a program says something.

    Raises:
        RuntimeError: it has ended instead.
    """
    assert program.stdout is not None
    while line := await program.stdout.readline():
        if found := re.search(pattern, line):
            return found[1].decode()
    raise RuntimeError("the API node did not start; `everturn config check everturn.toml` may know why")


async def leave(program: asyncio.subprocess.Process) -> None:
    """Ask a program to leave, and wait until it has."""
    if program.returncode is None:
        program.terminate()
    await program.wait()


# The offline model ----------------------------------------------------------------------------------------------------


def last_message(body: dict[str, Any]) -> str:
    """What the customer has said last."""
    return [str(message["content"]) for message in body["messages"] if message["role"] == "user"][-1]


def look(body: dict[str, Any]) -> list[Item]:
    """Look the order up that is named."""
    number = re.search(r"\d{4}", last_message(body))
    return [Call("find_order", json.dumps({"number": number[0]}))] if number else [Say("Which order is it about?")]


def act(body: dict[str, Any]) -> list[Item]:
    """Give money back if that is wanted; say what was found, if not."""
    result = str(body["messages"][-1]["content"])
    found = re.search(r"order (\d+): a \w+ for (\d+)", result)
    if found is None or "refund" not in last_message(body).lower():
        return [Say(f"I looked it up: {result}.")]
    return [Say("I ask for that."), Call("refund", json.dumps({"number": found[1], "amount": int(found[2])}))]


def tell(body: dict[str, Any]) -> list[Item]:
    """Say what became of it."""
    return [Say(f"This is what came of it: {body['messages'][-1]['content']}.")]
