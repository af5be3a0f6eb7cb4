"""The acceptance of a cluster, at full size: `python -m tests.cluster.acceptance [streaming|gating|cancelling|rolling …]`.

Three nodes of the API and three workers, as programs; PostgreSQL, Restate and NATS of their own; a provider over HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tests.cluster import cancelling, gating, rolling, streaming
from tools.chaos.api import ApiCell, api_cell


async def _streaming(cell: ApiCell) -> list[streaming.Streamed]:
    sizes = streaming.Sizes()
    return [await streaming.streaming(cell, sizes, is_stopped=is_stopped) for is_stopped in (True, False)]


async def _gating(cell: ApiCell) -> list[gating.Gated]:
    return [await gating.gating(cell)]


async def _cancelling(cell: ApiCell) -> list[cancelling.Cancelled]:
    return [await cancelling.cancelling(cell, cancelling.Sizes())]


async def _rolling(cell: ApiCell) -> list[rolling.Rolled]:
    return [await rolling.rolling(cell, rolling.Sizes())]


PARTS: dict[str, Callable[[ApiCell], Awaitable[Any]]] = {
    "streaming": _streaming,
    "gating": _gating,
    "cancelling": _cancelling,
    "rolling": _rolling,
}


async def run(parts: list[str]) -> int:
    """Run parts, each in a cell of its own; how many violations there were."""
    wrong = 0
    for name in parts:
        async with api_cell() as cell:
            for report in await PARTS[name](cell):
                wrong += len(report.violations)
                print(name, msgspec.json.format(msgspec.json.encode(report), indent=2).decode(), flush=True)
    return wrong


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them unless said")
    sys.exit(1 if asyncio.run(run(parser.parse_args().parts or list(PARTS))) else 0)


if __name__ == "__main__":
    main()
