"""Stock clients in processes of their own: the Python SDK, the TypeScript SDK and `acpx` drive `everturn acp`."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everturn.testing.provider import Call, Provider, Say
from tests.helpers.acp_editor import ACP
from tests.helpers.cli_run import PATIENCE, plain
from tests.helpers.recorded_streams import CLIENTS

HERE = Path(__file__).parent
WRITE = Call("write_file", '{"path": "new.txt", "content": "x\\n"}')
pytestmark = pytest.mark.timeout(300)  # it starts processes, and a machine may be busy
needs_node = [
    pytest.mark.live,
    pytest.mark.skipif(
        not (CLIENTS / "node_modules" / "acpx").exists()
        or not (CLIENTS / "node_modules" / "@agentclientprotocol").exists(),
        reason="run scripts/protocol-clients first",
    ),
]


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


async def run(home: Path, *command: str, code: int = 0, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, env=plain(home, **environment), cwd=home
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == code, (out.decode(), err.decode())
    return out.decode()


@pytest.mark.parametrize(
    "client",
    [
        pytest.param([sys.executable, str(HERE / "sdk_client.py")], id="python"),
        pytest.param(["node", str(HERE / "node" / "sdk_client.mjs")], id="typescript", marks=needs_node),
    ],
)
async def test_a_stock_client_prompts_approves_and_loads_again(
    provider: Provider, tmp_path: Path, project: Path, client: list[str]
) -> None:
    provider.script("m", [[Say("Writing. "), WRITE], [Say("Done.")], [Say("More.")]], sequence=True)
    agent = ["--", *ACP, "--model", "m", "--base-url", f"{provider.url}/v1"]

    async def drive(session: str, prompt: str) -> dict[str, Any]:
        out = await run(tmp_path, *client, str(project), session, prompt, *agent, CLIENTS=str(CLIENTS))
        return json.loads(out)

    first = await drive("-", "Write")
    assert first["agent"] == "everturn"
    assert (first["stop"], first["text"], first["asked"]) == ("end_turn", "Writing. Done.", 1)
    assert first["calls"] == ["completed"]
    assert (project / "new.txt").read_text(encoding="utf-8") == "x\n"
    again = await drive(first["session"], "")
    assert (again["text"], again["asked"], again["calls"]) == ("Writing. Done.", 0, ["completed"])
    more = await drive(first["session"], "Go on")
    assert (more["stop"], more["text"]) == ("end_turn", "Writing. Done.More.")


@pytest.mark.parametrize(
    ("policy", "code"),  # 5: acpx says that a permission was denied
    [pytest.param("--approve-all", 0, marks=needs_node), pytest.param("--deny-all", 5, marks=needs_node)],
)
async def test_acpx_runs_a_prompt(provider: Provider, tmp_path: Path, project: Path, policy: str, code: int) -> None:
    provider.script("m", [[WRITE], [Say("Done.")]], sequence=True)
    agent = shlex.join([*ACP, "--model", "m", "--base-url", f"{provider.url}/v1"])
    acpx = str(CLIENTS / "node_modules" / ".bin" / "acpx")

    words = ["--agent", agent, "--cwd", str(project), policy, "--format", "json", "exec", "Write it"]
    out = await run(tmp_path, acpx, *words, code=code)

    messages = [json.loads(line) for line in out.splitlines()]
    assert "Done." in json.dumps(messages)
    assert "end_turn" in json.dumps(messages)
    assert (project / "new.txt").exists() is (code == 0)
