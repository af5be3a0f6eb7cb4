"""httpx, httpx-sse and `json.loads`: the yardstick, for it is what most people would write."""
# pyright: reportMissingImports=false

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from .manual import ByHand

DISTRIBUTION = "httpx"


class Adapter(ByHand):
    client: httpx.AsyncClient | None = None

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        if self.client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            self.client = httpx.AsyncClient(timeout=600, limits=limits)
        async with aconnect_sse(self.client, "POST", self.url, json=body) as source:
            source.response.raise_for_status()
            async for event in source.aiter_sse():
                if event.data != "[DONE]":
                    yield json.loads(event.data)
