"""Context size: how many tokens a request on a branch would have, and how many it may have.

The size is what the provider counted for the last step of the branch, plus an estimate of what is new. The estimate is
weighted by a factor for each model, which is a fold over the log: what was estimated, and what was counted then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from everturn.core.context.token_estimate import (
    MESSAGE_TOKENS,
    estimate_message,
    estimate_output,
    estimate_part,
    estimate_written,
)
from everturn.core.messages import Message
from everturn.core.parts import (
    ClearedPart,
    CompactionPart,
    LearnedSize,
    Part,
    ReasoningPart,
    StepPart,
    SummaryPart,
    ToolPart,
)

DEFAULT_RESERVE: Final = 20_000  # tokens for an answer, if the turn names no maximum
CLEAR_AT: Final = 0.75  # shares of the limit
CLEAR_TO: Final = 0.6  # results are cleared if that is enough to get below it; each time costs the provider's cache
SUMMARIZE_AT: Final = 0.9
MIN_SAMPLE: Final = 32  # estimated tokens of a sample for the weight
SMOOTHING, MAX_CHANGE = 0.2, 0.15
MIN_WEIGHT, MAX_WEIGHT = 0.5, 2.0
MAX_LEARNED: Final = 16  # models of a branch about which a summary says something
SMALL_WINDOW: Final = 4_096  # tokens; in a smaller window a summary is short


class ContextLimits(Struct, frozen=True):
    """The limit of a request in tokens, and the largest size of each thing that a compaction keeps."""

    window: int
    limit: int

    @classmethod
    def of_window(cls, window: int, max_tokens: int = 0) -> ContextLimits:
        """The limits of a context window, of which a reserve is left to the answer."""
        return cls(window, max(window - min(max_tokens or DEFAULT_RESERVE, window // 4), 1))

    @property
    def tail(self) -> int:
        """Of the newest steps, which stay as they are."""
        return min(16_000, int(self.limit * 0.25))

    @property
    def quotes(self) -> int:
        """Of the person's own words."""
        return min(20_000, int(self.limit * 0.15))

    @property
    def artifacts(self) -> int:
        """Of the list of changed files and calls."""
        return min(2_000, int(self.limit * 0.05))

    @property
    def summary(self) -> int:
        """Of the text that a model writes."""
        size = min(4_096, int(self.limit * 0.2))
        return min(size, 256) if self.window < SMALL_WINDOW else size

    @property
    def protected_results(self) -> int:
        """Of the newest results, which are not cleared."""
        return min(40_000, int(self.limit * 0.25))

    @property
    def min_cleared(self) -> int:
        """What clearing must free at least."""
        return max(int(self.limit * 0.1), 1)


class ContextSize(Struct, frozen=True):
    """The size of the next request: what was counted, or computed by the last compaction, and what is new since then."""

    counted: int
    new: int  # estimated, without a weight
    is_known: bool = True  # False: no step of this branch was counted, and everything is estimated
    model: str = ""  # the model that counted; "": none has since the last compaction

    def used(self, weight: float = 1.0) -> int:
        """The tokens of the next request."""
        return self.counted + int(self.new * weight)


def measure(path: Sequence[Message]) -> ContextSize:
    """The size of a request on a branch. The parts after the last counted step are estimated.

    `path` is the branch with its compactions. Messages before the first counted step are estimated without the system
    prompt and the tools.
    """
    new = 0
    for index in range(len(path) - 1, -1, -1):
        message = path[index]
        if (compaction := compaction_of(message)) is not None:
            return _after_compaction(path, index, compaction, new)
        if message.role != "assistant":
            new += estimate_message(message)
            continue
        for at in range(len(message.parts) - 1, -1, -1):
            part = message.parts[at]
            if type(part) is StepPart and part.usage.input and not part.usage.estimated:
                counted = part.usage.input + part.usage.output
                return ContextSize(counted, new + _results(message, at), model=part.model or message.by)
            new += estimate_part(part)
    return ContextSize(0, new, is_known=False)


def compaction_of(message: Message) -> CompactionPart | None:
    """The compaction in a message that was not imported."""
    if message.role != "notice" or message.imported or message.hidden:
        return None
    return next((part for part in message.parts if isinstance(part, SummaryPart | ClearedPart)), None)


def _after_compaction(path: Sequence[Message], index: int, part: CompactionPart, new: int) -> ContextSize:
    """The size after a compaction; a step that was open then is written above it, and came after it."""
    if part.during and index:
        before = path[index - 1]
        for at in range(len(before.parts) - 1, -1, -1):
            end = before.parts[at]
            if type(end) is StepPart and end.step == part.during:
                results = _results(before, at)
                if end.usage.input and not end.usage.estimated:
                    counted = end.usage.input + end.usage.output
                    return ContextSize(counted, new + results, model=end.model or before.by)
                written = sum(estimate_written(other) for other in _step_parts(before, at))
                return ContextSize(part.after, new + results + written)
    return ContextSize(part.after, new)


def _step_parts(message: Message, end: int) -> Iterator[Part]:
    """The parts of the step whose end is part number `end`, newest first."""
    for at in range(end - 1, -1, -1):
        part = message.parts[at]
        if type(part) is StepPart:
            return
        yield part


def _results(message: Message, end: int) -> int:
    """The estimated tokens of the results of a step: its calls were counted as its output, its results were not."""
    return sum(
        estimate_output(part.output) for part in _step_parts(message, end) if type(part) is ToolPart and not part.parent
    )


def learn_weight(path: Sequence[Message], model: str) -> float:
    """The factor by which a model counts more or fewer tokens than are estimated; 1 if nothing is known."""
    weight, last, new = 1.0, None, 0
    for message in path:
        if (compaction := compaction_of(message)) is not None:
            last, new = None, 0
            if isinstance(compaction, SummaryPart):  # it has what was learned above it, which may not be read any more
                weight = next((size.weight for size in compaction.learned if size.model == model), 1.0)
        if message.role != "assistant":
            new += estimate_message(message)
            continue
        written, results = 0, 0
        new += MESSAGE_TOKENS
        for part in message.parts:
            if type(part) is not StepPart:
                written += 0 if type(part) is ReasoningPart else estimate_written(part)
                if type(part) is ToolPart and not part.parent:
                    results += estimate_output(part.output)
                continue
            usage = part.usage
            if not usage.input or usage.estimated or (part.model or message.by) != model:
                last, new = None, 0
            else:
                if last is not None:
                    weight = _adjust(weight, new, usage.input - last)
                weight = _adjust(weight, written, usage.output - usage.reasoning)
                last, new = usage.input + usage.output, results
            written, results = 0, 0
    return weight


def learned_limit(path: Sequence[Message], model: str) -> int:
    """The limit that a request has shown which was too long for a model, as the last summary has it; 0: none has."""
    for message in reversed(path):
        part = compaction_of(message)
        if isinstance(part, SummaryPart):
            if part.why == "overflow" and part.model == model:
                return part.limit
            return next((size.limit for size in part.learned if size.model == model), 0)
    return 0


def learn_sizes(path: Sequence[Message], model: str, limit: int = 0) -> tuple[LearnedSize, ...]:
    """What a summary has to say about each model of a branch; `limit` is what its own reason has shown about `model`."""
    models = {model: None}
    for message in reversed(path):
        if isinstance(part := compaction_of(message), SummaryPart):
            models.update(dict.fromkeys(size.model for size in part.learned))
            models[part.model] = None
            break
    for message in path:
        if message.role == "assistant":
            models.update(dict.fromkeys(part.model or message.by for part in message.parts if type(part) is StepPart))
    sizes = (
        LearnedSize(name, learn_weight(path, name), (limit if name == model else 0) or learned_limit(path, name))
        for name in sorted(models)
    )
    return tuple(size for size in sizes if size.weight != 1.0 or size.limit)[:MAX_LEARNED]


def _adjust(weight: float, estimated: int, counted: int) -> float:
    if estimated < MIN_SAMPLE or counted <= 0:
        return weight
    ratio = min(max(counted / estimated, MIN_WEIGHT), MAX_WEIGHT)
    return weight + min(max(SMOOTHING * (ratio - weight), -MAX_CHANGE), MAX_CHANGE)
