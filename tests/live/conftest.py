"""What the live tests start from: a real model on a port of its own."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-local-model"


@pytest.fixture
async def model_url() -> AsyncGenerator[str]:
    """Where llama.cpp serves SmolLM2-135M."""
    python = HOME / "bin/python"
    assert python.exists(), "there is no local model: run scripts/local-model"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        python, Path(__file__).with_name("serve_model.py"), str(port), stdout=-1, stderr=-3
    )
    try:
        assert server.stdout is not None
        assert b"ready" in await server.stdout.readline()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        await server.wait()
