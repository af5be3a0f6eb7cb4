"""A process is killed (SIGKILL) around the upload of a file: the next one sends the request, and the vendor has one file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from everturn import wire
from everturn.core.events import FileUploadChanged
from everturn.stores.sql.store import SqlStore
from everturn.testing.provider import Provider, Say

KILLED = -9
CASES = [
    ("openai:gpt-5", "/v1", "upload.started"),
    ("openai:gpt-5", "/v1", "upload.sent"),
    ("openai:gpt-5", "/v1", "upload.written"),
    ("openai-chat:gpt-5", "/v1", "upload.sent"),
    ("anthropic:claude-x", "/v1", "upload.sent"),
    ("gemini:gemini-3", "/v1beta", "upload.sent"),
]


async def run_process(folder: Path, url: str, model: str, point: str) -> tuple[int | None, str]:
    command = [sys.executable, "-m", "tests.turn.killed_upload_process", str(folder), url, model, point]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return process.returncode, out.decode().strip()


@pytest.mark.parametrize(("model", "path", "point"), CASES)
async def test_a_killed_process_leaves_no_upload_that_nobody_knows(
    tmp_path: Path, model: str, path: str, point: str
) -> None:
    async with Provider() as provider:
        provider.script(model.partition(":")[2], [[Say("It is a contract.")]])
        assert (await run_process(tmp_path, provider.url + path, model, point))[0] == KILLED
        assert provider.seen == []  # no request was sent
        sent = provider.cabinet.uploads
        assert sent == (0 if point == "upload.started" else 1)

        assert await run_process(tmp_path, provider.url + path, model, "") == (0, "It is a contract.")

        assert provider.cabinet.uploads == 1  # what the first process sent was found again
        assert [seen.status for seen in provider.seen] == [200]
        store = SqlStore.sqlite(tmp_path / "log.db")
        events = [entry.event for entry in await store.indexed_events("s", "upload")]
        await store.aclose()
        changes = [event for event in events if isinstance(event, FileUploadChanged)]
        assert [change.state for change in changes][-1] == "ready"
        assert str(provider.seen[0].body).count(changes[-1].reference) == 1
        names = {file.name.partition(".")[0] for file in provider.cabinet.files.values()}
        assert names <= {change.upload.replace("_", "-") for change in changes}
        assert all(wire.load_event(wire.dump_event(change)) == change for change in changes)
