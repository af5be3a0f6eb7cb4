"""The support bot on a cluster of its own: two shops, an approver, a worker that is killed, and one payment each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.core.events import CallFinished
from everturn.replay import Recording
from tests.examples.example_process import EXAMPLES, commands, copied, run
from tools.environment import child_environment

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

NAME = "support-bot"


def test_the_story_goes_as_the_readme_says(tmp_path: Path) -> None:
    folder, (story,) = copied(NAME, tmp_path), commands(NAME)
    # The copy is outside of the repository, and starts servers with its `tools`.
    lines = run(
        [*story, "--export", "refund.zip"], folder, 200.0, PYTHONPATH=child_environment()["PYTHONPATH"]
    ).splitlines()
    assert lines[0].startswith("ready at http://127.0.0.1:")
    assert lines[1:] == [
        "north: I looked it up: order 1001: a lamp for 40.",
        "south: I looked it up: order 1001: a soap for 4.",
        "south looks into north's conversation: there is no such session",
        "the clerk may not allow it: to answer this needs the role 'approver'; yours is 'member'",
        'the lead allows it: refund {"amount":40,"number":"1001"}',
        "kill -9 to the worker, while it waits for the bank",
        "north: This is what came of it: gave 40 back for order 1001.",
        "south, at the desk, where small refunds are not asked about: "
        "This is what came of it: gave 4 back for order 1001.",
        "north has used 5 requests and 3 calls",
        "south has used 5 requests and 3 calls",
        "the bank was asked 3 times, by 2 workers, and has paid:",
        "  north, order 1001: 40",
        "  south, order 1001: 4",
    ]
    fresh = Recording.read(folder / "refund.zip")
    assert sum(isinstance(event, CallFinished) for event in fresh.events) == 2
    if os.environ.get("EVERTURN_RECORD"):  # not compared yet: it differs from run to run, and it is not known in what
        fresh.write(EXAMPLES / NAME / "recorded" / "refund.jsonl")
