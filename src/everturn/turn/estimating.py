"""What a step used, guessed from how much was written, where a provider counts nothing and somebody relies on it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from everturn.core.parts import FilePart, NoticePart, ReasoningPart, StreamedPart, TextPart, ToolPart, Usage
from everturn.core.requests import ModelRequest, RequestCall, RequestPart
from everturn.turn.run import Run

PER_TOKEN = 4  # characters, in most languages that are written with letters


def counts_tokens(run: Run) -> bool:
    """Whether a budget of tokens holds for a turn; without one nobody is served by a guess."""
    options, settings = run.state.options, run.setup.settings
    above = options.above
    budgets = (options.budget, settings.session_budget, settings.of_tenant(run.ledger.tenant)[0])
    return any(budget.tokens for budget in budgets) or (above is not None and above.left.tokens > 0)


def estimated(said: Usage, request: ModelRequest, parts: Iterable[StreamedPart]) -> Usage:
    """A usage with tokens for what was written; as it was, where nothing came of the request."""
    output = sum(_size(part) for part in parts)
    if not output:
        return said
    asked = len(request.system) + sum(_size(part) for message in request.messages for part in message.parts)
    asked += sum(
        len(spec.name) + len(spec.description) + len(msgspec.json.encode(spec.schema)) for spec in request.tools
    )
    return replace(said, input=_tokens(asked), output=_tokens(output), estimated=True)


def _size(part: RequestPart | StreamedPart) -> int:
    """The characters of a part. What a file comes to only its provider knows."""
    match part:
        case TextPart() | ReasoningPart() | NoticePart():
            return len(part.text)
        case ToolPart() | RequestCall():
            return len(part.name) + len(part.arguments)
        case FilePart():
            return 0
        case _:
            return len(part.text)


def _tokens(characters: int) -> int:
    return -(-characters // PER_TOKEN)
