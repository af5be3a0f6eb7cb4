"""The public names of every public module → the tables of docs/reference/public-api.md, each with its first sentence.

`python scripts/public_api.py` writes them; with `--check` it only says whether the page is out of date.
"""

import re
import sys
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "public-api.md"
BEGIN, END = "<!-- names: written by scripts/public_api.py -->\n", "<!-- /names -->\n"
MODULES = (
    "everturn",
    "everturn.events",
    "everturn.tools",
    "everturn.models",
    "everturn.plugins",
    "everturn.stores",
    "everturn.engine",
    "everturn.bus",
    "everturn.telemetry",
    "everturn.testing",
)
TYPES = {  # names without a docstring: unions, and constants
    "Chunk": "Any chunk of a model's stream.",
    "Cleanup": "The function that `on_turn_start` may return; Everturn calls it when the process releases the turn.",
    "LogEvent": "Any event of the log.",
    "OutputBuffer": "How much of an answer an output guardrail holds back: `none`, `sentence` or `step`.",
    "Part": "Any part of a message.",
    "RequestPart": "Any part of a message in a request.",
    "SUSPEND": "Return it from a hook that waits; Everturn calls the hook again when something for its turn has arrived.",
    "TurnItem": "An item of the stream of a turn: an event of the log, or a delta.",
}


def first_sentence(name: str, found: object) -> str:
    """What a name is, on one line."""
    text = TYPES.get(name) or " ".join((found.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s(?=[A-Z`])", text)[0].replace("|", "\\|")


def tables() -> str:
    """A table for each module."""
    lines: list[str] = []
    for name in MODULES:
        module = import_module(name)
        lines += [f"## `{name}`", "", "| name | description |", "|---|---|"]
        lines += [f"| `{export}` | {first_sentence(export, getattr(module, export))} |" for export in module.__all__]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Write the tables, or check them."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{tables()}\n{END}{after}"
    if "--check" not in sys.argv:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        print("docs/reference/public-api.md is out of date: python scripts/public_api.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
