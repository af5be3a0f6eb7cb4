"""Whatever the server's own document allows, and much that it does not, is asked: no 500, and no answer it did not declare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.node_process import a_node

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,unsupported_method,allow_header_conformance,ignored_auth"
)
NOT_FOR_IT = ("inbox", "import_session", "transcribe")
"""A stream that answers whoever asks and does not end, and files that schemathesis cannot make; all have tests of their own."""


def run(folder: Path, *more: str) -> None:
    """Let schemathesis loose on a node; it must find nothing."""
    with a_node() as node:
        command = [
            str(Path(sys.executable).with_name("st")),
            "run",
            f"{node.url}/openapi.json",
            "--header",
            f"Authorization: Bearer {node.keys['ours/operator']}",
            "--checks",
            CHECKS,
            *(word for name in NOT_FOR_IT for word in ("--exclude-operation-id", name)),
            "--request-timeout",
            "10",
            "--suppress-health-check",
            "all",
            "--warnings",
            "off",
            "--no-color",
            *more,
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert node.process.poll() is None, "the node has died"
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.timeout(300)  # a program of its own that asks a server hundreds of times
def test_a_short_run_over_the_whole_document_finds_nothing(tmp_path: Path) -> None:
    run(tmp_path, "--phases", "examples,fuzzing", "--max-examples", "5", "--seed", "8", "--no-shrink")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_long_run_finds_nothing_either(tmp_path: Path) -> None:
    run(tmp_path, "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "100", "--continue-on-failure")
