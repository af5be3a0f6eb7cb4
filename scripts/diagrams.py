"""The tables in `core` -> docs/diagrams/*.txt, so that the docs cannot show another machine than the code has.

`python scripts/diagrams.py` writes them; with `--check` it only says which ones are out of date.
"""

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from everturn.core.calls import CALL_TRANSITIONS
from everturn.core.events import Event
from everturn.core.phases import TRANSITIONS

FOLDER = Path(__file__).parent.parent / "docs" / "diagrams"
WIDTH = 87


State = TypeVar("State", bound=str)


def draw(table: Mapping[State, Mapping[type[Event], State | frozenset[State]]]) -> str:
    """Each state, where it leads, and by which events."""
    order = list(table)
    margin = max(len(state) for state in order) + len("   →   ")
    lines: list[str] = []
    for state, row in table.items():
        lines.append(state)
        ways: dict[tuple[int, ...], list[str]] = {}
        for event, to in row.items():
            targets = (to,) if isinstance(to, str) else to
            # A set has no order of its own; the table has.
            ways.setdefault(tuple(sorted(order.index(target) for target in targets)), []).append(event.__name__)
        for targets, events in sorted(ways.items()):
            where = " | ".join(order[target] for target in targets)
            head = "   ↺  " if where == state else f"   → {where}  "
            lines += textwrap.wrap(
                ", ".join(events), WIDTH, initial_indent=head.ljust(margin), subsequent_indent=" " * margin
            )
    return "\n".join(lines) + "\n"


DRAWINGS = {"phases.txt": draw(TRANSITIONS), "calls.txt": draw(CALL_TRANSITIONS)}


def outdated(folder: Path) -> list[str]:
    """The drawings that are not there, or not what the tables say now."""
    paths = {name: folder / name for name in DRAWINGS}
    return [
        name for name, path in paths.items() if not path.exists() or path.read_text(encoding="utf-8") != DRAWINGS[name]
    ]


def write(folder: Path) -> list[str]:
    """Draw anew what is out of date."""
    folder.mkdir(exist_ok=True)
    old = outdated(folder)
    for name in old:
        (folder / name).write_text(DRAWINGS[name], encoding="utf-8")
    return old


def main() -> int:
    if "--check" in sys.argv[1:]:
        old = outdated(FOLDER)
        for name in old:
            print(f"docs/diagrams/{name} is out of date; run: python scripts/diagrams.py", file=sys.stderr)
        return 1 if old else 0
    for name in write(FOLDER):
        print(f"wrote docs/diagrams/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
