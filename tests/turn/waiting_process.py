"""A process whose second turn waits for a rate limit, until it is killed: run as a program."""

import asyncio
import sys

from everturn import App, get_model
from everturn.core.deltas import CallProgress
from everturn.models import RateLimit


async def main(store: str, url: str) -> None:
    limit = RateLimit(requests_per_minute=2, burst_seconds=0)  # the second request waits for a minute
    model = get_model("m", base_url=url, key="k", window=1000, rate_limit=limit)
    async with App(model, store=store) as app:
        await (await app.chat("a").send("first"))
        async for item in await app.chat("b").send("second"):
            if isinstance(item, CallProgress):
                print(item.text, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
