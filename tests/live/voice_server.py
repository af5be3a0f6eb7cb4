"""A real voice and a real ear beside the tests: starts `serve_voice.py`, and says where it listens."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-local-voice"
SENTENCE = "i would like a cup of coffee"
"""What the ear understands word for word, also when it is said a little faster or slower, higher or lower."""


@asynccontextmanager
async def voice() -> AsyncGenerator[str]:
    """The base of its addresses, up to `/v1`."""
    python = HOME / "bin/python"
    assert python.exists(), "there is no local voice: run scripts/local-voice"
    server = await asyncio.create_subprocess_exec(python, Path(__file__).with_name("serve_voice.py"), stdout=-1)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(await server.stdout.readline())}/v1"
    finally:
        server.kill()
        await server.wait()
