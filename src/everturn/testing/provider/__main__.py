"""Serves the built-in models until it is stopped: `python -m everturn.testing.provider --port 8123`."""

from __future__ import annotations

import argparse
import asyncio
import signal

from everturn.testing.provider.server import Provider


async def serve(port: int, *, strict: bool, record: bool) -> None:
    """Print the address, then serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with Provider(port, strict=strict, record=record) as provider:
        print(f"ready {provider.url}", flush=True)
        await stop.wait()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m everturn.testing.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--lax", action="store_true", help="serve what the real ones would refuse")
    parser.add_argument("--no-record", action="store_true", help="keep nothing of a request")
    options = parser.parse_args()
    asyncio.run(serve(options.port, strict=not options.lax, record=not options.no_record))


if __name__ == "__main__":
    main()
