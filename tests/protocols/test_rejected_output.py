"""A typed answer that was rejected, in every protocol: what a client keeps is the answer that was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from everturn import Agent, App
from everturn.core.deltas import TurnItem
from everturn.core.events import OutputRejected, StepFinished
from everturn.events import TextDelta
from everturn.models.scripted import ScriptedModel, say
from everturn.protocols.a2a import A2aEncoder, TaskNames
from everturn.protocols.ag_ui import AgUiEncoder
from everturn.protocols.ai_sdk import AiSdkEncoder
from everturn.protocols.chat_completions import ChatCompletionsEncoder
from everturn.protocols.responses import ResponseHeader, ResponsesEncoder


@pytest.fixture
async def items() -> list[TurnItem]:
    """A turn as a reader sees it live: a wrong answer, and the right one."""
    agent = Agent(ScriptedModel(say("about seven"), say("7")), name="counter", output_type=int)
    async with App(agents=[agent]) as app:
        turn = await app.chat(agent=agent).send("How many?")
        seen = [item async for item in turn]
    assert any(isinstance(item, OutputRejected) for item in seen)
    texts = [item.text for item in seen if isinstance(item, TextDelta)]
    assert "about seven".startswith(texts[0])
    assert texts[-1] == "7"
    return seen


def feed(encoder: Any, items: Sequence[TurnItem]) -> list[Any]:
    out = encoder.begin() if hasattr(encoder, "begin") else b""
    for item in items:
        out += encoder.feed(item)
    frames = [frame.partition(b"data: ")[2] for frame in out.split(b"\n\n") if frame]
    return [msgspec.json.decode(frame) for frame in frames if frame != b"[DONE]"]


@pytest.mark.parametrize("is_stream", [True, False])
async def test_chat_completions(items: list[TurnItem], is_stream: bool) -> None:
    encoder = ChatCompletionsEncoder("s", "t", "counter", 0.0, is_stream=is_stream)
    chunks = feed(encoder, items)
    assert encoder.whole()["choices"][0]["message"]["content"] == "7"
    if is_stream:
        texts = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"]]
        assert "".join(texts) == "7"


async def test_responses(items: list[TurnItem]) -> None:
    last = feed(ResponsesEncoder(ResponseHeader("resp_1", "s", "t", "counter", 0.0, 0)), items)[-1]
    assert last["type"] == "response.completed"
    assert [part["text"] for item in last["response"]["output"] for part in item["content"]] == ["7"]


async def test_ai_sdk_resets_the_step(items: list[TurnItem]) -> None:
    kinds = [chunk["type"] for chunk in feed(AiSdkEncoder(level=7), items)]
    assert kinds.count("reset-step") == 1
    assert kinds.index("reset-step") < kinds.index("finish-step")


async def test_ag_ui_says_which_message_is_void(items: list[TurnItem]) -> None:
    events = feed(AgUiEncoder("thread", "run"), items)
    (void,) = (event["value"]["void"] for event in events if event.get("name") == "everturn.restarted")
    rejected = next(event["messageId"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
    assert void["messages"] == [rejected]


async def test_the_step_of_a_rejected_answer_has_no_parts(items: list[TurnItem]) -> None:
    finished = [item for item in items if isinstance(item, StepFinished)]
    assert [bool(step.parts) for step in finished] == [False, True]


async def test_a2a_replaces_the_artifact(items: list[TurnItem]) -> None:
    texts: list[str] = []
    for frame in feed(A2aEncoder(1, TaskNames("task", "context", "s")), items):
        update = frame["result"].get("artifactUpdate")
        if update is not None:
            texts = texts if update.get("append") else []
            texts += [part["text"] for part in update["artifact"]["parts"]]
    assert "".join(texts) == "7"
