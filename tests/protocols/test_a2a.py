"""A2A: what a client puts together from a stream is the answer of the log, wherever the stream was cut into pieces."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.parts import TextPart
from everturn.core.state import fold
from everturn.protocols.a2a import SEPARATOR, A2aEncoder, TaskNames
from tests.helpers.recorded_streams import NAMES, encoded, shown, turns_of, values

TURNS = [turn for name in NAMES for turn in turns_of(name)]
NAMED = TaskNames("task", "context", "session")
FINAL = {"completed": "COMPLETED", "error": "FAILED", "cancelled": "CANCELED"}


def put_together(frames: list[dict[str, Any]]) -> tuple[str, str]:
    """The text of the artifacts and the last state, as a client of the protocol keeps them."""
    artifacts: dict[str, list[str]] = {}
    state = ""
    for result in (frame["result"] for frame in frames):
        if (update := result.get("artifactUpdate")) is not None:
            parts = artifacts.setdefault(update["artifact"]["artifactId"], [])
            if not update.get("append"):
                parts.clear()
            parts += [part.get("text", "") for part in update["artifact"]["parts"]]
        elif (update := result.get("statusUpdate")) is not None:
            state = update["status"]["state"].removeprefix("TASK_STATE_")
    return "".join(text for parts in artifacts.values() for text in parts), state


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_artifact_is_the_answer_of_the_log(size: int) -> None:
    def cut(text: str) -> list[str]:
        return [text[at : at + size] for at in range(0, len(text), size)]

    for turn in TURNS:
        state = fold(entry.event for entry in turn)
        encoder = A2aEncoder(1, NAMED, ends_at_gates=False)
        text, last = put_together(values(encoded(encoder, shown(turn, cut))))
        answers = [message for message in state.messages.values() if message.role == "assistant"]
        texts = [part.text for message in answers for part in message.parts if type(part) is TextPart]
        assert text == SEPARATOR.join(texts)
        assert last == FINAL[state.phase.value]


def test_a_stream_that_is_cut_short_says_how_to_go_on() -> None:
    encoder = A2aEncoder("r", NAMED)
    (frame,) = values(encoder.end("drain"))
    assert (frame["id"], frame["error"]["code"]) == ("r", -32603)
    assert "SubscribeToTask" in frame["error"]["message"]
