"""Tool probe: asks a model on a local server to call a tool, to see whether it has native tool calls.

Many small models have none: their server refuses the request, or drops the tools and lets the model answer in prose.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from everturn.core.chunks import CallChunk, TextChunk
from everturn.core.parts import TextPart
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.errors import EverturnError, ModelError
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy

PROBE_SECONDS: Final = 30.0  # a server may have to load the model first
TOOL_FORMAT: Final = "json"  # the prompted format for a model without native calls
MAX_TOKENS: Final = 200
MAX_WORDS: Final = 120  # characters of an answer in words, after which no call is expected
_TOOL: Final = ToolSpec(
    "report_status",
    "Report a status.",
    {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]},
)
_MESSAGE: Final = 'Call the tool `report_status` with the status "ready". Do not answer in words.'


async def has_native_tools(toml: str, environ: Mapping[str, str]) -> bool | None:
    """Whether the model of a configuration, as the first run writes it, calls a tool when it is asked to; None: it did not
    answer in time, or failed."""
    name, base_url = _model_of(toml)
    request = ModelRequest("", "", [RequestMessage("user", (TextPart(_MESSAGE),))], [_TOOL], {"max_tokens": MAX_TOKENS})
    is_called, words = False, 0
    try:
        model = get_model(f"{name}@native", base_url=base_url, environ=environ, retry=RetryPolicy(attempts=1))
        async with asyncio.timeout(PROBE_SECONDS):
            async for batch in model.stream(replace(request, model=model.name)):
                is_called = is_called or any(isinstance(chunk, CallChunk) for chunk in batch)
                words += sum(len(chunk.text) for chunk in batch if isinstance(chunk, TextChunk))
                if words > MAX_WORDS:  # it answers in words: a slow machine need not write them to the end
                    break
    except ModelError as error:
        return False if error.refuses_tools else None
    except TimeoutError:
        return False if words and not is_called else None
    except (EverturnError, OSError):
        return None
    return is_called


def with_prompted_tools(toml: str) -> str:
    """The same configuration, with prompted tool calling."""
    line = next(line for line in toml.splitlines() if line.startswith("model = "))
    if "[models." in toml:
        return toml.replace(line, f'{line}\ntool_format = "{TOOL_FORMAT}"', 1)
    return toml.replace(line, f'{line.removesuffix(chr(34))}@{TOOL_FORMAT}"', 1)


def _model_of(toml: str) -> tuple[str, str]:
    """The name of the model, and its base URL."""
    tables = tomllib.loads(toml)
    for table in tables.get("models", {}).values():
        return table["model"], table.get("base_url", "")
    return next(iter(tables["agents"].values()))["model"], ""
