"""aiohttp and `json.loads`, line by line."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from .manual import ByHand

DISTRIBUTION = "aiohttp"


class Adapter(ByHand):
    session: aiohttp.ClientSession | None = None

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        if self.session is None:  # it wants a running loop
            self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        async with self.session.post(self.url, json=body) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])
