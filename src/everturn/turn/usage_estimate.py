"""Token usage estimate for a step: from the number of characters, if the provider reports no usage and a budget needs
it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from everturn.core.parts import (
    FilePart,
    NoticePart,
    ProviderToolPart,
    ReasoningPart,
    StreamedPart,
    TextPart,
    ToolPart,
    Usage,
)
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.running.active_turn import ActiveTurn

CHARACTERS_PER_TOKEN = 4  # characters, in most alphabetic languages


def needs_token_count(run: ActiveTurn) -> bool:
    """Whether a token budget applies to a turn; without one no estimate is needed."""
    options, settings = run.state.options, run.setup.settings
    above = options.lineage
    budgets = (options.budget, settings.session_budget, settings.tenant_limits(run.ledger.tenant)[0])
    return any(budget.tokens for budget in budgets) or (above is not None and above.left.tokens > 0)


def estimate_usage(usage: Usage, request: ModelRequest, parts: Iterable[StreamedPart]) -> Usage:
    """The usage with estimated tokens; unchanged if the request produced nothing."""
    output = sum(_size(part) for part in parts)
    if not output:
        return usage
    input_size = len(request.system) + sum(_size(part) for message in request.messages for part in message.parts)
    input_size += sum(
        len(spec.name) + len(spec.description) + len(msgspec.json.encode(spec.schema)) for spec in request.tools
    )
    return replace(usage, input=_tokens(input_size), output=_tokens(output), estimated=True)


def _size(part: RequestPart | StreamedPart) -> int:
    """The characters of a part. A file counts 0: only its provider knows its tokens."""
    match part:
        case TextPart() | ReasoningPart() | NoticePart():
            return len(part.text)
        case ToolPart() | RequestCall():
            return len(part.name) + len(part.arguments)
        case FilePart():
            return 0
        case RequestResult() | ProviderToolPart():
            return len(part.text)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
