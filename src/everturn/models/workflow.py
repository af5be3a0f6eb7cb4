"""Workflow model: the built-in model of a workflow's turn. It makes exactly one call, and answers with its result.

What it answers is a function of the request alone, so a turn that continues in another process gets the same answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec import Struct

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.options import WORKFLOW_MODEL
from everturn.core.requests import ModelRequest, RequestResult
from everturn.errors import ModelError


class WorkflowInput(Struct, frozen=True):
    """The message that starts a workflow, as JSON: its name, and its arguments."""

    workflow: str
    arguments: msgspec.Raw


class WorkflowModel:
    """Calls the workflow that the first message names."""

    name = WORKFLOW_MODEL

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """The call or, once it has a result, that result."""
        results = [part for message in request.messages for part in message.parts if isinstance(part, RequestResult)]
        if results:
            yield [TextChunk(results[-1].text), FinishChunk("stop")]
            return
        try:
            text = next(message.text for message in reversed(request.messages) if message.role == "user")
            workflow_input = msgspec.json.decode(text, type=WorkflowInput)
        except (StopIteration, msgspec.MsgspecError):
            raise ModelError("start a workflow with app.workflow, not with a message", kind="request") from None
        call = CallChunk(0, bytes(workflow_input.arguments).decode(), workflow_input.workflow, "workflow")
        yield [call, FinishChunk("tool_calls")]
