"""OpenAI Responses writer: renders an answer as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from everturn.testing.provider.answers import StreamChunk
from everturn.testing.provider.render.answer import AnswerBlock, Ending, Kind, seeded_token
from everturn.testing.provider.render.chat import CREATED
from everturn.testing.provider.script import Cite, HostedTool, InBandError, ScriptedUsage
from everturn.testing.provider.server_tools import HOSTED_AS, hosted_item
from everturn.testing.provider.signatures import seal_reasoning

_PREFIX = {"text": "msg", "refusal": "msg", "call": "fc", "thinking": "rs", "redacted": "rs", "cited": "msg"}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesWriter:
    """Writes output items; the encrypted content of reasoning only if the request asked for it."""

    kinds: frozenset[Kind] = frozenset({"text", "thinking", "redacted", "refusal", "call", "server", "cited"})

    def __init__(self, model: str, ending: Ending, *, with_encrypted: bool, seed: str = "") -> None:
        self._model, self._ending, self._with_encrypted = model, ending, with_encrypted
        self._seed = f"{model}\0{seed}"
        self._output: list[dict[str, Any]] = []
        self._count = 0

    def start(self) -> Iterator[StreamChunk]:
        """`response.created` and `response.in_progress`."""
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))

    def open(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """The item, still empty, and its part if it has parts."""
        yield self._event("response.output_item.added", output_index=block.index, item=self._item(block, is_done=False))
        if isinstance(block.item, HostedTool):
            kind = HOSTED_AS[block.item.name][1]
            for phase in ("in_progress", *(["searching"] if "search" in kind else []), "completed"):
                yield self._at(block, f"response.{kind}.{phase}", is_beat=True)
        if block.kind in ("text", "refusal", "cited"):
            yield self._at(block, "response.content_part.added", content_index=0, part=_part(block, ""))
        elif block.kind == "thinking":
            part = {"type": "summary_text", "text": ""}
            yield self._at(block, "response.reasoning_summary_part.added", summary_index=0, part=part)

    def piece(self, block: AnswerBlock, text: str) -> Iterator[StreamChunk]:
        """One delta."""
        match block.kind:
            case "text" | "cited":
                yield self._beat(block, "response.output_text.delta", content_index=0, delta=text, logprobs=[])
            case "refusal":
                yield self._beat(block, "response.refusal.delta", content_index=0, delta=text)
            case "thinking":
                yield self._beat(block, "response.reasoning_summary_text.delta", summary_index=0, delta=text)
            case _:
                yield self._beat(block, "response.function_call_arguments.delta", delta=text)

    def close(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """The streamed content once more, whole, from the inside out."""
        match block.kind:
            case "text" | "cited":
                if isinstance(block.item, Cite):
                    found = _annotation(block.item)
                    kind = "response.output_text.annotation.added"
                    yield self._at(block, kind, content_index=0, annotation_index=0, annotation=found)
                yield self._at(block, "response.output_text.done", content_index=0, text=block.text, logprobs=[])
            case "refusal":
                yield self._at(block, "response.refusal.done", content_index=0, refusal=block.text)
            case "thinking":
                part = {"type": "summary_text", "text": block.text}
                yield self._at(block, "response.reasoning_summary_text.done", summary_index=0, text=block.text)
                yield self._at(block, "response.reasoning_summary_part.done", summary_index=0, part=part)
            case "call":
                yield self._at(block, "response.function_call_arguments.done", arguments=block.text)
            case "redacted" | "server":
                pass
        if block.kind in ("text", "refusal", "cited"):
            yield self._at(block, "response.content_part.done", content_index=0, part=_part(block, block.text))
        item = self._item(block, is_done=True)
        self._output.append(item)
        yield self._event("response.output_item.done", output_index=block.index, item=item)

    def fail(self, error: InBandError) -> Iterator[StreamChunk]:
        """`response.failed`, or an `error` event."""
        if error.kind == "error":
            yield self._event("error", is_beat=True, code=error.code, message=error.message, param=None)
            return
        failed = {**self._response("failed"), "error": {"code": error.code, "message": error.message}}
        yield self._event("response.failed", is_beat=True, response=failed)

    def finish(self) -> Iterator[StreamChunk]:
        """The whole response, completed or not, with its usage."""
        why = _INCOMPLETE.get(self._ending.reason)
        status = "incomplete" if why else "completed"
        details = {"reason": why} if why else None
        whole = {**self._response(status), "incomplete_details": details, "usage": _usage(self._ending.usage)}
        yield self._event(f"response.{status}", is_beat=True, response=whole)

    def _event(self, type: str, *, is_beat: bool = False, **fields: Any) -> StreamChunk:
        body = msgspec.json.encode({"type": type, "sequence_number": self._count, **fields})
        self._count += 1
        return StreamChunk(b"event: %s\ndata: %s\n\n" % (type.encode(), body), is_beat)

    def _at(self, block: AnswerBlock, type: str, *, is_beat: bool = False, **fields: Any) -> StreamChunk:
        return self._event(type, is_beat=is_beat, item_id=self._id(block), output_index=block.index, **fields)

    def _beat(self, block: AnswerBlock, type: str, **fields: Any) -> StreamChunk:
        return self._at(block, type, is_beat=True, **fields)

    def _id(self, block: AnswerBlock) -> str:
        if isinstance(block.item, HostedTool):
            return block.id
        return f"{_PREFIX[block.kind]}_{seeded_token(f'{self._seed}{block.index}{block.id}', 48)}"

    def _item(self, block: AnswerBlock, *, is_done: bool) -> dict[str, Any]:
        status, text = ("completed", block.text) if is_done else ("in_progress", "")
        match block.kind:
            case "thinking" | "redacted":
                summary = [{"type": "summary_text", "text": text}] if is_done and block.kind == "thinking" else []
                item: dict[str, Any] = {"id": self._id(block), "type": "reasoning", "summary": summary}
                if self._with_encrypted:
                    item["encrypted_content"] = seal_reasoning("enc", self._model, text or f"hidden {block.index}")
                return item
            case "server" if isinstance(block.item, HostedTool):
                item = {"id": block.id, **hosted_item(block.item)}
                return item if is_done or "status" not in item else {**item, "status": "in_progress"}
            case "call":
                head = {"id": self._id(block), "type": "function_call", "status": status}
                return {**head, "arguments": text, "call_id": block.id, "name": block.name}
            case _:
                head = {"id": self._id(block), "type": "message", "status": status, "role": "assistant"}
                return {**head, "content": [_part(block, text)] if is_done else []}

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": "resp_" + seeded_token(self._seed, 48),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "model": self._model,
            "output": list(self._output),
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "service_tier": "auto" if status == "in_progress" else "default",
            "store": False,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "user": None,
            "metadata": {},
        }


def _part(block: AnswerBlock, text: str) -> dict[str, Any]:
    if block.kind == "refusal":
        return {"type": "refusal", "refusal": text}
    annotations = [_annotation(block.item)] if isinstance(block.item, Cite) and text else []
    return {"type": "output_text", "annotations": annotations, "logprobs": [], "text": text}


def _annotation(item: Cite) -> dict[str, Any]:
    return {"type": "url_citation", "start_index": 0, "end_index": len(item.text), "title": item.title, "url": item.url}


def _usage(usage: ScriptedUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
