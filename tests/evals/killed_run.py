"""An evaluation that a test kills: its model writes every request to a ledger, and may kill its process.

    python killed_run.py DATASET RUN LEDGER DEPTH KILL_AT MOMENT

At request number KILL_AT (of this process) the process is killed with SIGKILL: `before` the request is counted, or
`during` it, after it was counted and before its answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

from everturn.core.chunks import Chunk
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.evals import evaluate
from everturn.evals.report_formats import to_json
from everturn.evals.run_turn import Depth
from tests.evals.shop import Shop, refund_model


class LedgerModel:
    """Writes each request down before it answers."""

    name = "ledger"

    def __init__(self, model: Model, ledger: Path, kill_at: int, moment: str) -> None:
        self._model, self._ledger, self._kill_at, self._moment = model, ledger, kill_at, moment
        self._count = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        self._count += 1
        if self._count == self._kill_at and self._moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        with self._ledger.open("a") as file:
            file.write(f"{len(request.messages)}\n")
            file.flush()
            os.fsync(file.fileno())
        if self._count == self._kill_at and self._moment == "during":
            os.kill(os.getpid(), signal.SIGKILL)
        async for chunks in self._model.stream(request):
            yield chunks


async def main(dataset: str, run: str, ledger: str, depth: str, kill_at: str, moment: str) -> None:
    model = LedgerModel(refund_model(), Path(ledger), int(kill_at), moment)
    report = await evaluate(
        dataset,
        depth=cast("Depth", depth),
        model=model,
        tools=Shop().tools,
        folder=run,
        parallel=1,
        samples=2,
    )
    print(to_json(report))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:7]))
