"""Nodes as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class WorldNode:
    """A node that runs: its address, the keys of everybody, and the ids of what `ours` has."""

    def __init__(self, process: subprocess.Popen[str], announcement: dict[str, Any]) -> None:
        self.process = process
        self.url: str = announcement["url"]
        self.keys: dict[str, str] = announcement["keys"]
        self.things: dict[str, str] = announcement["things"]


@contextmanager
def a_node(drain: float = 5.0) -> Generator[WorldNode]:
    """A node, until the end."""
    command = [sys.executable, "-m", "tests.helpers.route_matrix_node", str(drain)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield WorldNode(process, json.loads(process.stdout.readline()))
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
