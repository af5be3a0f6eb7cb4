"""Pydantic AI bridge: any model of pydantic-ai as a model of ours.

    request → its messages → model_request_stream → its events → our chunks

What pydantic-ai hides stays hidden: keep-alives between two events, and responses that were no stream. The finish
reason is read from the provider's own data, because pydantic-ai reports "stop" for a stream that merely ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.parts import Finish, Opaque, Usage
from everturn.core.requests import ModelRequest, ToolSpec
from everturn.errors import ConfigError, ModelError
from everturn.models import bridges
from everturn.models.bridges.pydantic_ai_messages import PydanticMessageWriter
from everturn.models.failures import EXCERPT
from everturn.models.formats.lenient_json import truncated_error
from everturn.models.formats.params import Params, schema_name, take_params
from everturn.models.formats.tool_names import ToolNames
from everturn.models.formats.tool_schemas import tool_schema
from everturn.models.prices import Price
from everturn.models.profile import Origin, Profile
from everturn.transport import url_origin

EXTRA = "pydantic-ai"
FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_calls",
}
_SEALED = ("id", "signature", "provider_name", "provider_details")


class PydanticAIModel:
    """A model of pydantic-ai, or the name of one. It sends a request once; `RetryModel` retries.

    `inputs` are the kinds of files it accepts: `image`, `audio`, `pdf`.

    Raises:
        ConfigError: pydantic-ai is not installed, or does not know the model; the message says what to do.
    """

    def __init__(
        self, model: Any, *, inputs: frozenset[str] = frozenset({"image", "pdf"}), price: Price | None = None
    ) -> None:
        self._ai = _PydanticLibrary()
        try:
            self._model = self._ai.models.infer_model(model)
        except (ImportError, ValueError, self._ai.errors.UserError) as error:
            raise ConfigError(f"pydantic-ai has no model for {model!r}: {error}") from None
        self._price = price
        self._profile = Profile(vendor=EXTRA, inputs=inputs)
        url = getattr(self._model, "base_url", None)
        self._where = url_origin(str(url)) if url else self._model.system
        self._origin = Origin(EXTRA, self._model.model_id, host=self._where)

    @property
    def name(self) -> str:
        """The name that a UI shows: `pydantic-ai:vendor:model`."""
        return self._origin.name

    def __repr__(self) -> str:
        """Without the key."""
        return f"<PydanticAIModel {self._model.model_id} at {self._where}>"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request, and yield the chunks of each event."""
        request = bridges.prepare_request(request)
        names = ToolNames(request.tools)
        params = take_params(request, self._profile)
        response = self._ai.direct.model_request_stream(
            self._model,
            PydanticMessageWriter(
                self._ai.messages, request, self._profile.inputs, self._origin.issuer, names
            ).messages(),
            model_settings=self._settings(params, names),
            model_request_parameters=self._parameters(request.tools, params, names),
            instrument=False,
        )
        has_begun = False
        try:
            async with response as stream:
                reader = _PydanticStreamReader(self._origin, names.ours)
                async for event in stream:
                    has_begun = True
                    if chunks := list(reader.read(event)):
                        yield chunks
                usage = _to_usage(stream.usage)
                if usage != Usage():
                    cost = self._price(usage) if self._price else None
                    yield [UsageChunk(msgspec.structs.replace(usage, cost=cost))]
                yield list(reader.end(stream))
        except ModelError:
            raise
        except Exception as error:
            failed = self._failed(error, has_begun)
            raise bridges.redact_error_key(
                failed, getattr(getattr(self._model, "client", None), "api_key", "")
            ) from None

    def _settings(self, params: Params, names: ToolNames) -> dict[str, Any]:
        """Return pydantic-ai's settings; parameters that it does not know go into the body unchanged."""
        known = set(self._ai.settings.ModelSettings.__annotations__)
        own = tuple(_prefixes(self._model))
        settings = {key: value for key, value in params.rest.items() if key in known or key.startswith(own)}
        others = {key: value for key, value in params.rest.items() if key not in settings}
        ignored: frozenset[str] = self._model.unsupported_settings
        if others and "extra_body" in ignored:
            raise ModelError(f"{self._model.model_id} does not accept the parameters {', '.join(others)}", "request")
        if others:
            settings["extra_body"] = {**others, **settings.get("extra_body", {})}
        if params.max_tokens is not None:
            settings["max_tokens"] = params.max_tokens
        choice = params.tool_choice
        if choice is not None:
            is_name = isinstance(choice, str) and choice not in ("auto", "none", "required")
            settings["tool_choice"] = [names.wire(cast("str", choice))] if is_name else choice
        return settings if "max_retries" in ignored else {"max_retries": 0, **settings}

    def _parameters(self, tools: Sequence[ToolSpec], params: Params, names: ToolNames) -> Any:
        define = self._ai.tools.ToolDefinition
        arguments: dict[str, Any] = {
            "function_tools": [
                define(
                    name=names.wire(tool.name),
                    parameters_json_schema=tool_schema(tool.schema),
                    description=tool.description,
                    strict=False,
                )
                for tool in tools
            ]
        }
        if (schema := params.output_schema) is not None:
            arguments["output_mode"] = "native"
            name = schema_name(schema) or "answer"
            arguments["output_object"] = self._ai.output.OutputObjectDefinition(schema, name=name)
        return self._ai.models.ModelRequestParameters(**arguments)

    def _failed(self, error: Exception, has_begun: bool) -> ModelError:
        errors, names = self._ai.errors, self._origin.names
        cause = error.__cause__
        response = getattr(cause, "response", None)
        if isinstance(error, errors.ModelAPIError):
            api_error: Any = error
            status = getattr(response, "status_code", None) or getattr(error, "status_code", 0)
            if status and not (api_error.in_stream and status in (200, getattr(error, "status_code", 0))):
                headers = getattr(response, "headers", None) or getattr(error, "headers", None)
                return bridges.library_status_error(
                    status, headers, api_error.body or getattr(response, "text", ""), names
                )
            if api_error.in_stream:
                return bridges.library_stream_error(api_error.body or replace_surrogates(str(error)), names)
        if isinstance(error, errors.ModelRequestTimeout | errors.ModelTimeoutError):
            return bridges.library_timeout_error(error)
        if isinstance(error, errors.ModelConnectionError) or any(
            "TransportError" in kind.__name__ for kind in type(error).__mro__
        ):
            return bridges.library_network_error(error, self._where, has_begun)
        if isinstance(error, errors.UnexpectedModelBehavior) and "without content" in str(error):
            return truncated_error("there was not a word of it")
        text = f"{self._model.model_id} failed: {replace_surrogates(str(error) or type(error).__name__)[:EXCERPT]}"
        return ModelError(text, "request" if isinstance(error, errors.UserError) else "response")


class _PydanticLibrary:
    """The parts of pydantic-ai that are used here."""

    def __init__(self) -> None:
        self.models = bridges.import_optional("pydantic_ai.models", EXTRA)
        self.messages = bridges.import_optional("pydantic_ai.messages", EXTRA)
        self.direct = bridges.import_optional("pydantic_ai.direct", EXTRA)
        self.settings = bridges.import_optional("pydantic_ai.settings", EXTRA)
        self.tools = bridges.import_optional("pydantic_ai.tools", EXTRA)
        self.output = bridges.import_optional("pydantic_ai.output", EXTRA)
        self.errors = bridges.import_optional("pydantic_ai.exceptions", EXTRA)


def _prefixes(model: Any) -> Iterator[str]:
    """Yield the prefixes of a model's own settings: the name of its module."""
    while model is not None:
        for kind in type(model).__mro__:
            home, _, vendor = kind.__module__.partition("pydantic_ai.models.")
            if not home and vendor:
                yield vendor.partition(".")[0] + "_"
        model = getattr(model, "wrapped", None)


class _PydanticStreamReader:
    """Decodes the events of pydantic-ai into chunks."""

    def __init__(self, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # part index -> call slot

    def read(self, event: Any) -> Iterator[Chunk]:
        """Decode one event."""
        match event.event_kind:
            case "part_start":
                yield from self._start(event.index, event.part)
            case "part_delta":
                yield from self._grow(event.index, event.delta)
            case "part_end":
                yield from self._end(event.index, event.part)
            case _:
                pass

    def _start(self, index: int, part: Any) -> Iterator[Chunk]:
        match part.part_kind:
            case "text" if part.content:
                yield TextChunk(part.content)
            case "thinking" if part.content:
                yield ReasoningChunk(part.content)
            case "tool-call":
                slot = self._slots[index] = len(self._slots)
                name = self._names.get(part.tool_name, part.tool_name)
                yield CallChunk(slot, part.args if isinstance(part.args, str) else "", name, part.tool_call_id)
            case "file":
                yield FileChunk(part.content.data, part.content.media_type)
            case _:
                pass

    def _grow(self, index: int, delta: Any) -> Iterator[Chunk]:
        match delta.part_delta_kind:
            case "text" if delta.content_delta:
                yield TextChunk(delta.content_delta)
            case "thinking" if delta.content_delta:
                yield ReasoningChunk(delta.content_delta)
            case "tool_call" if isinstance(delta.args_delta, str) and delta.args_delta:
                yield CallChunk(self._slots[index], delta.args_delta)
            case _:
                pass

    def _end(self, index: int, part: Any) -> Iterator[Chunk]:
        kinds = {"text": "text", "thinking": "reasoning", "tool-call": "call"}
        whole: object = part.args if part.part_kind == "tool-call" else None
        if whole and not isinstance(whole, str):  # from vendors that do not stream it
            yield CallChunk(self._slots[index], encode_canonical(whole))
        sealed = {name: value for name in _SEALED if (value := getattr(part, name, None))}
        if part.part_kind == "thinking" or sealed.get("provider_details"):
            yield OpaqueChunk(
                Opaque(self._origin.issuer, encode_canonical(sealed)),
                cast("Any", kinds[part.part_kind]),
                self._slots.get(index, 0),
            )

    def end(self, stream: Any) -> Iterator[Chunk]:
        """End the stream: yield the finish reason, only if the provider sent one."""
        details: Mapping[str, Any] = stream.provider_details or {}
        raw, reason = str(details.get("finish_reason") or ""), stream.finish_reason
        if refusal := details.get("refusal"):
            yield TextChunk(str(refusal))
            raw = "refusal"
        is_made_up = not raw and reason == "stop" and hasattr(stream, "_missing_finish_reason")
        if is_made_up or stream.state in ("incomplete", "interrupted") or not (raw or reason):
            raise truncated_error()
        if reason == "error":
            raise bridges.library_stream_error(f"the provider reported: {raw or 'error'}", self._origin.names)
        finish: Finish = "refusal" if raw == "refusal" else FINISHES.get(reason, "other")
        yield FinishChunk("tool_calls" if finish == "stop" and self._slots else finish, raw)


def _to_usage(usage: Any) -> Usage:
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cache_read_tokens,
        written=usage.cache_write_tokens,
        reasoning=usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0),
    )
