"""What a call costs that runs by itself: find, read, validate, judge, write down, run, shape, settle. CPU, in one run.

    python benchmarks/calls.py [--repeats 7] [--json FILE]

The same function is awaited bare. A call's cost is the slope between turns with few and with many calls in one step, so
that what a turn costs by itself does not count. `rules` is the same with a thousand of them in force.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from everturn import Chat, tool
from everturn.app import App
from everturn.core.rules.policy import Rule
from everturn.testing import ScriptedModel, call, calls, say

FEW, MANY = 4, 24
GOAL = 80.0  # μs of CPU above the bare function


@tool(read_only=True)
async def look(path: str) -> str:
    """Look at something."""
    return path


def thousand() -> list[Rule]:
    """A thousand rules, a hundred of them for this tool, and one that allows it."""
    others = [Rule(f"tool_{at % 30}", "deny", {"path": f"secret/{at}/**"}) for at in range(899)]
    mine = [Rule("look", "deny", {"path": f"secret{at}*"}) for at in range(100)]
    return [*others, *mine, Rule("look", "allow")]


async def turn_of(count: int, rules: Sequence[Rule]) -> float:
    """CPU seconds of a turn with so many calls in one step."""
    model = ScriptedModel(calls(*(call("look", path=f"file{at}") for at in range(count))), say("Done."))
    async with Chat(model, app=App(model, tools=[look], rules=rules)) as chat:
        began = time.process_time()
        await (await chat.send("go"))
        return time.process_time() - began


async def bare(count: int) -> float:
    """CPU seconds of the function alone."""
    began = time.process_time()
    for at in range(count):
        await look(path=f"file{at}")
    return time.process_time() - began


async def measure(repeats: int) -> dict[str, list[float]]:
    """Microseconds for each call, round by round."""
    kinds: dict[str, Sequence[Rule]] = {"no rules": (), "1,000 rules": thousand()}
    found: dict[str, list[float]] = {"bare": [], **{kind: [] for kind in kinds}}
    await turn_of(FEW, ())
    for _ in range(repeats):
        found["bare"].append(await bare(MANY) / MANY)
        for kind, rules in kinds.items():
            found[kind].append((await turn_of(MANY, rules) - await turn_of(FEW, rules)) / (MANY - FEW))
    return {kind: [each * 1e6 for each in seconds] for kind, seconds in found.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    found = asyncio.run(measure(options.repeats))
    best = {kind: statistics.quantiles(costs, n=10)[0] for kind, costs in found.items()}
    print(f"{'':<12} {'best tenth':>11} {'above bare':>11} {'median':>9}  μs of CPU for each call")
    for kind, costs in found.items():
        print(f"{kind:<12} {best[kind]:11.1f} {best[kind] - best['bare']:+11.1f} {statistics.median(costs):9.1f}")
    if options.json is not None:
        medians = {kind: statistics.median(costs) for kind, costs in found.items()}
        figures = {kind: {"best": best[kind], "median": medians[kind]} for kind in found}
        options.json.write_text(json.dumps({"goal": GOAL, "calls": figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
