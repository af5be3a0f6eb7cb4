"""Recorded logs → what a reader of a turn is shown, in whatever pieces; and real clients that read what we make of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import wire
from everturn.core.deltas import TurnItem, TurnReader, missing_deltas
from everturn.core.events import (
    Entry,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnEvent,
)
from everturn.protocols import Encoder

GOLDEN = Path(__file__).parent.parent / "golden" / "v1"
HERE = Path(__file__).parent.parent / "protocols" / "node"
CLIENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn" / "protocol-clients"

NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))

with_clients = [
    pytest.mark.live,
    pytest.mark.skipif(not (CLIENTS / "node_modules").exists(), reason="run scripts/protocol-clients first"),
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here"),
]


def turns_of(name: str) -> list[list[Entry]]:
    """The turns of a recorded log."""
    turns: dict[str, list[Entry]] = {}
    for entry in wire.load_log((GOLDEN / f"{name}.jsonl").read_bytes()):
        if isinstance(entry.event, TurnEvent):
            turns.setdefault(entry.event.turn, []).append(entry)
    return list(turns.values())


def shown(entries: Sequence[Entry], cut: Callable[[str], Sequence[str]] = lambda text: [text]) -> Iterator[TurnItem]:
    """What a reader is shown who was there from the beginning, with the deltas of every part cut into pieces."""
    reader = TurnReader(_turn(entries))
    step = 0
    for entry in entries:
        event = entry.event
        if isinstance(event, StepStarted | StepRestarted | RequestRetried):
            step = entry.seq
        if isinstance(event, StepFinished | StepInterrupted):
            for whole in missing_deltas(_turn(entries), step, event.parts, ()):
                at = whole.offset
                for piece in cut(whole.text):
                    part = replace(whole, offset=at, text=piece)
                    at += len(piece)
                    if (seen := reader.delta(part)) is not None:
                        yield seen
        yield from reader.entry(entry)


def _turn(entries: Sequence[Entry]) -> str:
    event = entries[0].event
    assert isinstance(event, TurnEvent)
    return event.turn


def encoded(encoder: Encoder, seen: Iterator[TurnItem]) -> bytes:
    """A whole stream, as the server would send it."""
    sent = encoder.begin()
    for item in seen:
        sent += encoder.feed(item)
        if encoder.is_done:
            break
    return sent + encoder.end("over")


def values(stream: bytes) -> list[dict[str, Any]]:
    """The messages of a stream."""
    lines = [frame.removeprefix("data: ") for frame in stream.decode().split("\n\n") if frame]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def play(script: str, payload: Any, folder: Path) -> Any:
    """Let a real client read streams; `folder` is for the script, which finds the clients beside it."""
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    shutil.copy(HERE / script, folder / script)
    node = ["node", str(folder / script)]
    env = {**os.environ, "NODE_ENV": "production"}
    stdin = json.dumps(payload)
    done = subprocess.run(node, input=stdin, capture_output=True, text=True, timeout=50, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
