"""What an evaluation costs: CPU seconds for 200 recordings at depths pure and turn, without a model.

    python -m benchmarks.evals [--cases 200]

The recordings are those of the examples, again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from everturn.core.rules.policy import Rule
from everturn.evals import Case, Dataset, EvalChange, evaluate
from everturn.evals.run_turn import Depth
from everturn.replay import Recording

EXAMPLES = Path(__file__).parent.parent / "examples"


def dataset(count: int) -> Dataset:
    """A dataset of that many recordings."""
    recorded = [Recording.read(path) for path in sorted(EXAMPLES.glob("*/recorded/*.jsonl"))]
    return Dataset("examples", [Case(f"case-{at}", recorded[at % len(recorded)]) for at in range(count)])


def measure(data: Dataset, depth: Depth, change: EvalChange) -> tuple[float, int]:
    """CPU seconds of an evaluation, and how many cases ran."""
    before = time.process_time()
    report = asyncio.run(evaluate(data, depth=depth, change=change))
    return time.process_time() - before, sum(case.status != "error" for case in report.cases)


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    data = dataset(parser.parse_args().cases)
    rules = EvalChange(rules=[Rule("refund", "deny")])
    for name, depth, change in (
        ("pure, no change", "pure", EvalChange()),
        ("pure, other rules", "pure", rules),
        ("turn, no change", "turn", EvalChange()),
    ):
        seconds, ran = measure(data, depth, change)  # pyright: ignore[reportArgumentType]
        print(f"{name}: {ran} recordings in {seconds:.2f} s of CPU")


if __name__ == "__main__":
    main()
