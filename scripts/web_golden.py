"""Write what the golden logs come to, for the page to come to the same: `python scripts/web_golden.py [--check]`.

Beside each log stands NAME.folded.json. It has a row for each event of the log, with all that is otherwise than it was before it:
so it says what every beginning of the log comes to, not only the whole. Nothing that is left out differs from the default.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from everturn import wire
from everturn.core.calls import CallRecord
from everturn.core.events import TurnEvent
from everturn.core.state import TurnState
from everturn.core.tree import MessageTree

GOLDEN: Final = Path(__file__).parent.parent / "tests" / "golden"
KEPT: Final = ("output", "late", "resolution")
"""What says something by being there, whatever is in it."""


def rows(log: bytes) -> list[dict[str, Any]]:
    """What each event of a log changes."""
    tree, turns = MessageTree(), dict[str, TurnState]()
    known: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    for entry in wire.load_log(log):
        event = entry.event
        tree.apply(event)
        if isinstance(event, TurnEvent):
            turns.setdefault(event.turn, TurnState(event.turn)).apply(event)
        now = dict(_of_tree(tree))
        for turn in turns.values():
            now |= _of_turn(turn)
        now = {key: bare(msgspec.to_builtins(value)) for key, value in now.items()}
        found.append({key: value for key, value in now.items() if key not in known or known[key] != value})
        known = now
    return found


def _of_tree(tree: MessageTree) -> Iterator[tuple[str, Any]]:
    yield "title", tree.title
    yield "agent", tree.agent
    yield "leaf", tree.leaf
    yield "deleted", sorted(tree.deleted)
    yield "writing", tree.writing
    yield "calls", tree.calls
    for name, message in tree.messages.items():
        yield f"message {name}", message
    for parent, children in tree.children.items():
        yield f"children {parent or ''}", children


def _of_turn(turn: TurnState) -> dict[str, Any]:
    ending = turn.ending
    found: dict[str, Any] = {
        f"turn {turn.id}": {
            "phase": turn.phase.value,
            "options": turn.options,
            "started": turn.started,
            "parent": turn.parent,
            "input": turn.input,
            "answer": turn.answer,
            "tip": turn.tip,
            "steps": 0 if turn.step is None else turn.step.number,
            "usage": turn.usage,
            "limit": turn.limit,
            "ending": ending and {"outcome": ending.outcome, "problem": ending.problem, "hard": ending.hard},
            "still_running": turn.still_running,
        }
    }
    if turn.step is not None:
        step = turn.step
        shown = {"closing": step.closing, "finish": step.finish, "problem": step.problem}
        found[f"step {turn.id} {step.number}"] = shown
    found |= {f"call {turn.id} {call.id}": _of_call(call) for call in turn.calls.values()}
    for name, gate in turn.gate_details.items():
        is_asked = turn.is_gate_open(name) and not turn.phase.is_terminal
        resolution, claim = turn.gates[name], turn.claims.get(name)
        shown = {"gate": gate, "resolution": resolution, "claim": claim, "is_asked": is_asked}
        found[f"gate {turn.id} {name}"] = shown
    return found


def _of_call(call: CallRecord) -> dict[str, Any]:
    gates = [gate.id for gate in (call.gate, call.review) if gate is not None]
    started = call.started
    return {
        "state": call.state,
        "step": call.step,
        "name": call.name,
        "message": call.message,
        "parent": call.parent,
        "decision": call.decision,
        "tool": started.tool if started else call.decision.tool if call.decision else "",
        "read_only": started.read_only if started else False,
        "idempotent": started.idempotent if started else False,
        "started": started.at if started else 0,
        "is_still_running": call.is_still_running,
        "is_late": call.is_late,
        "children": list(call.children.values()),
        "gates": gates,
    }


def bare(value: Any, key: str = "") -> Any:
    """The same without what is as it would be anyway; None where nothing is left."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        found = {name: left for name, one in fields.items() if (left := bare(one, name)) is not None}
        return found if found or key in KEPT else None
    if isinstance(value, list | tuple):
        return [bare(one) for one in cast("list[Any]", value)] or None
    if isinstance(value, float) and value.is_integer():
        return int(value) or None
    return value or None


def write(log: bytes) -> str:
    """The whole file, a row in a line."""
    lines = ",\n".join(msgspec.json.encode(row).decode() for row in rows(log))
    return f"[\n{lines}\n]\n"


def main() -> int:
    """Write them, or say that they are not as they would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one would change")
    check = parser.parse_args().check
    stale: list[str] = []
    for path in sorted(GOLDEN.glob("v*/*.jsonl")):
        to, text = path.with_suffix(".folded.json"), write(path.read_bytes())
        if not check:
            to.write_text(text, encoding="utf-8")
        elif not to.exists() or to.read_text(encoding="utf-8") != text:
            stale.append(to.name)
    if stale:
        print(f"not what the logs come to: {', '.join(stale)}; run python scripts/web_golden.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
