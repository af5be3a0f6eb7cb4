"""Any model of litellm → a model of ours.

    request → the body of a Chat Completions request → acompletion → its chunks, as events of that format → ours

litellm speaks Chat Completions to every vendor, so what we have for that format does the work. Two things it makes up
are not believed: "stop" where the provider gave no reason, and counts of tokens where it counted none.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn.core.canonical import canonical, clean
from everturn.core.chunks import Chunk, FileChunk, OpaqueChunk, UsageChunk
from everturn.core.parts import Opaque
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models import bridges
from everturn.models.failures import EXCERPT
from everturn.models.formats import chat_request
from everturn.models.formats.chat_stream import ChatDecoder
from everturn.models.formats.words import GO_ON
from everturn.models.prices import Price
from everturn.models.profile import Origin, Profile
from everturn.transport import place

EXTRA = "litellm"
Json = dict[str, Any]


class LiteLLMModel:
    """A model as litellm names it: `bedrock/…`, `vertex_ai/…`. It asks once; `Retrying` asks again.

    `inputs` are the files it is shown: `image`, `audio`, `pdf`. All other arguments go to `litellm.acompletion` with
    every request: `api_base`, `api_key`, `aws_region_name`, and so on.

    Raises:
        ConfigError: litellm is not installed; the text says how to.
    """

    def __init__(
        self,
        model: str,
        *,
        inputs: frozenset[str] = frozenset({"image", "pdf"}),
        price: Price | None = None,
        **given: Any,
    ) -> None:
        self._litellm = _library()
        self._given, self._price = given, price
        self._profile = Profile(vendor=EXTRA, inputs=inputs)
        url = str(given.get("api_base") or given.get("base_url") or "")
        self._where = place(url) if url else model.partition("/")[0]
        self._origin = Origin(EXTRA, model, host=self._where)

    @property
    def name(self) -> str:
        """The badge a face shows: `litellm:vendor/model`."""
        return self._origin.name

    def __repr__(self) -> str:
        """Without the key."""
        return f"<LiteLLMModel {self._origin.model} at {self._where}>"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask, and give the chunks of every one of theirs."""
        built = chat_request.build(bridges.prepared(request), self._profile, self._origin)
        body = {**self._given, **_as_litellm_says(msgspec.json.decode(built.body))}
        decoder = ChatDecoder(self._profile, self._origin, built.names)
        seals = _Seals(self._origin.issuer)
        has_begun, stream = False, None
        try:
            stream = await self._litellm.acompletion(**body, num_retries=0, max_retries=0)
            async for made in stream:
                has_begun = True
                chunks: list[Chunk] = []
                event = made.model_dump(exclude_none=True)
                sealed = list(seals.read(event))
                decoder.feed(msgspec.json.encode(_as_it_was(event, stream), enc_hook=str), chunks)
                chunks += [*sealed, *_files(event)]
                if chunks:
                    yield chunks
            chunks = []
            decoder.end(chunks)
            yield self._priced(chunks)
        except ModelError:
            raise
        except Exception as error:
            raise bridges.without_key(self._failed(error, has_begun), self._given.get("api_key")) from None
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
        told: Any = chain[0]
        if isinstance(told, self._litellm.exceptions.Timeout):
            return bridges.stalled(told)
        if bridges.is_broken(chain):
            return bridges.from_network(told, self._where, has_begun)
        body = next((body for one in chain if (body := getattr(one, "body", None))), None)
        status, text = getattr(told, "status_code", None), clean(str(getattr(told, "message", told)))
        if has_begun or isinstance(told, self._litellm.exceptions.APIConnectionError):
            return bridges.from_stream(body or {"code": str(status or ""), "message": text}, names)
        if status is not None:
            headers = getattr(told, "litellm_response_headers", None)
            return bridges.from_status(int(status), headers, body or text, names)
        return ModelError(f"{self._origin.model} failed: {text[:EXCERPT]}", "response")


def _library() -> Any:
    """litellm, without a word to anybody: not to the terminal, and not to the place its prices come from."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = bridges.bring("litellm", EXTRA)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm


def _as_litellm_says(body: Json) -> Json:
    """A body of ours, with litellm's names for what is sealed, and a user to begin with."""
    messages: list[Json] = body["messages"]
    begins = next(at for at, message in enumerate(messages) if message["role"] != "system")
    if messages[begins]["role"] == "assistant":
        messages.insert(begins, {"role": "user", "content": GO_ON})
    for message in messages:
        if (sealed := message.pop("reasoning_details", None)) is not None:
            message["thinking_blocks"] = sealed
        for call in message.get("tool_calls", ()):
            if (sealed := call.pop("extra_content", None)) is not None:
                call["provider_specific_fields"] = sealed
    return body


def _as_it_was(event: Json, stream: Any) -> Json:
    """An event without what litellm made up."""
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
    """The images of a chunk: data URLs."""
    import base64

    for choice in event.get("choices", ()):
        for image in choice.get("delta", {}).get("images", ()):
            head, _, data = image.get("image_url", {}).get("url", "").partition(";base64,")
            if data:
                yield FileChunk(base64.b64decode(data), head.removeprefix("data:"))


class _Seals:
    """The pieces of sealed thoughts → the thoughts, whole, as they must go back."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._thought = ""

    def read(self, event: Json) -> Iterator[Chunk]:
        """Gather what there is; a thought is whole when its signature comes."""
        for choice in event.get("choices", ()):
            for block in choice.get("delta", {}).get("thinking_blocks", ()):
                self._thought += block.get("thinking", "")
                whole: Json | None = block if block.get("data") else None
                if block.get("signature"):
                    whole, self._thought = {**block, "thinking": self._thought}, ""
                if whole is not None:
                    yield OpaqueChunk(Opaque(self._issuer, canonical([whole])), "reasoning")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it wraps, and what it came from."""
    while error is not None:
        inner = getattr(error, "original_exception", None)
        if inner is None:
            yield error
        error = inner or error.__cause__ or error.__context__
