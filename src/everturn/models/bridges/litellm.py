"""LiteLLM bridge: any model of litellm as a model of ours.

    request → the body of a Chat Completions request → acompletion → its chunks, as events of that format → our chunks

litellm has a Chat Completions interface to every vendor, so our implementation of that format does the work. Two values
that litellm makes up are ignored: "stop" where the provider gave no reason, and token counts that it estimated.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.chunks import Chunk, FileChunk, OpaqueChunk, UsageChunk
from everturn.core.parts import Opaque
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models import bridges
from everturn.models.failures import EXCERPT
from everturn.models.formats import chat_request
from everturn.models.formats.chat_stream import ChatDecoder
from everturn.models.formats.notices import CONTINUE
from everturn.models.prices import Price
from everturn.models.profile import Origin, Profile
from everturn.transport import url_origin

EXTRA = "litellm"
Json = dict[str, Any]


class LiteLLMModel:
    """A model by its litellm name: `bedrock/…`, `vertex_ai/…`. It sends a request once; `RetryModel` retries.

    `inputs` are the kinds of files it accepts: `image`, `audio`, `pdf`. All other arguments go to `litellm.acompletion`
    with every request: `api_base`, `api_key`, `aws_region_name`, and so on.

    Raises:
        ConfigError: litellm is not installed; the message says how to install it.
    """

    def __init__(
        self,
        model: str,
        *,
        inputs: frozenset[str] = frozenset({"image", "pdf"}),
        price: Price | None = None,
        **arguments: Any,
    ) -> None:
        self._litellm = _library()
        self._arguments, self._price = arguments, price
        self._profile = Profile(vendor=EXTRA, inputs=inputs)
        url = str(arguments.get("api_base") or arguments.get("base_url") or "")
        self._where = url_origin(url) if url else model.partition("/")[0]
        self._origin = Origin(EXTRA, model, host=self._where)

    @property
    def name(self) -> str:
        """The name that a UI shows: `litellm:vendor/model`."""
        return self._origin.name

    def __repr__(self) -> str:
        """Without the key."""
        return f"<LiteLLMModel {self._origin.model} at {self._where}>"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request, and yield the chunks of each of litellm's."""
        built = chat_request.build(bridges.prepare_request(request), self._profile, self._origin)
        body = {**self._arguments, **_to_litellm(msgspec.json.decode(built.body))}
        decoder = ChatDecoder(self._profile, self._origin, built.names)
        seals = _SignedReasoning(self._origin.issuer)
        has_begun, stream = False, None
        try:
            stream = await self._litellm.acompletion(**body, num_retries=0, max_retries=0)
            async for part in stream:
                has_begun = True
                chunks: list[Chunk] = []
                event = part.model_dump(exclude_none=True)
                sealed = list(seals.read(event))
                decoder.feed(msgspec.json.encode(_without_invented(event, stream), enc_hook=str), chunks)
                chunks += [*sealed, *_files(event)]
                if chunks:
                    yield chunks
            chunks = []
            decoder.end(chunks)
            yield self._priced(chunks)
        except ModelError:
            raise
        except Exception as error:
            raise bridges.redact_error_key(self._failed(error, has_begun), self._arguments.get("api_key")) from None
        finally:
            if stream is not None:
                await stream.aclose()

    def _priced(self, chunks: list[Chunk]) -> list[Chunk]:
        if (price := self._price) is None:
            return chunks
        return [
            UsageChunk(replace(chunk.usage, cost=price(chunk.usage))) if isinstance(chunk, UsageChunk) else chunk
            for chunk in chunks
        ]

    def _failed(self, error: Exception, has_begun: bool) -> ModelError:
        names, chain = self._origin.names, list(_chain(error))
        outer: Any = chain[0]
        if isinstance(outer, self._litellm.exceptions.Timeout):
            return bridges.library_timeout_error(outer)
        if bridges.is_network_error(chain):
            return bridges.library_network_error(outer, self._where, has_begun)
        body = next((body for inner in chain if (body := getattr(inner, "body", None))), None)
        status, text = getattr(outer, "status_code", None), replace_surrogates(str(getattr(outer, "message", outer)))
        if has_begun or isinstance(outer, self._litellm.exceptions.APIConnectionError):
            return bridges.library_stream_error(body or {"code": str(status or ""), "message": text}, names)
        if status is not None:
            headers = getattr(outer, "litellm_response_headers", None)
            return bridges.library_status_error(int(status), headers, body or text, names)
        return ModelError(f"{self._origin.model} failed: {text[:EXCERPT]}", "response")


def _library() -> Any:
    """Import litellm without its terminal output, telemetry and download of prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = bridges.import_optional("litellm", EXTRA)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm


def _to_litellm(body: Json) -> Json:
    """Adapt a Chat Completions body: litellm's fields for opaque data, and a user message first."""
    messages: list[Json] = body["messages"]
    first = next(at for at, message in enumerate(messages) if message["role"] != "system")
    if messages[first]["role"] == "assistant":
        messages.insert(first, {"role": "user", "content": CONTINUE})
    for message in messages:
        if (sealed := message.pop("reasoning_details", None)) is not None:
            message["thinking_blocks"] = sealed
        for call in message.get("tool_calls", ()):
            if (sealed := call.pop("extra_content", None)) is not None:
                call["provider_specific_fields"] = sealed
    return body


def _without_invented(event: Json, stream: Any) -> Json:
    """Remove from an event what litellm made up."""
    for choice in event.get("choices", ()):
        if choice.get("finish_reason"):
            choice["finish_reason"] = stream.received_finish_reason or stream.intermittent_finish_reason
        for call in choice.get("delta", {}).get("tool_calls", ()):
            if (sealed := call.get("provider_specific_fields")) is not None:
                call["extra_content"] = sealed
    if (usage := event.get("usage")) is not None:
        if not any(getattr(chunk, "usage", None) for chunk in stream.chunks):
            del event["usage"]
        elif written := usage.get("cache_creation_input_tokens"):
            usage.setdefault("prompt_tokens_details", {})["cache_write_tokens"] = written
    return event


def _files(event: Json) -> Iterator[Chunk]:
    """Yield the images of a chunk, from data URLs."""
    import base64

    for choice in event.get("choices", ()):
        for image in choice.get("delta", {}).get("images", ()):
            head, _, data = image.get("image_url", {}).get("url", "").partition(";base64,")
            if data:
                yield FileChunk(base64.b64decode(data), head.removeprefix("data:"))


class _SignedReasoning:
    """Joins the pieces of signed reasoning, which has to be sent back whole."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._thought = ""

    def read(self, event: Json) -> Iterator[Chunk]:
        """Collect pieces; a reasoning block is complete when its signature arrives."""
        for choice in event.get("choices", ()):
            for block in choice.get("delta", {}).get("thinking_blocks", ()):
                self._thought += block.get("thinking", "")
                whole: Json | None = block if block.get("data") else None
                if block.get("signature"):
                    whole, self._thought = {**block, "thinking": self._thought}, ""
                if whole is not None:
                    yield OpaqueChunk(Opaque(self._issuer, encode_canonical([whole])), "reasoning")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the errors it wraps, and their causes."""
    while error is not None:
        inner = getattr(error, "original_exception", None)
        if inner is None:
            yield error
        error = inner or error.__cause__ or error.__context__
