"""Prompt cache health: whether requests read from the provider's cache what the requests before them left there. Pure.

A request repeats the one before it on its branch and adds to the end. So at least what that one read from the cache or wrote
to it can be read again. Where much less is read, the cache has collapsed, and the log says what changed in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast

from msgspec import Struct

from everturn.core import events as e
from everturn.core.options import TurnOptions
from everturn.core.parts import CacheCause, CacheCollapse

SHORT_SHARE: Final = 0.05  # of the expected tokens that may be missing
SHORT_TOKENS: Final = 2_000  # tokens that may be missing: providers cache in blocks
TTL: Final = 300.0  # seconds for which providers keep a prefix, unless `cache` says otherwise
LIFETIMES: Final[Mapping[str, float]] = {"5m": 300.0, "1h": 3600.0, "24h": 86_400.0}


class CacheRead(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What one request was expected to read from the cache, and what it did."""

    turn: str
    step: int
    model: str
    input: int
    expected: int
    read: int
    written: int = 0
    cause: CacheCause | Literal[""] = ""  # "": it read what was expected


class _Prefix(Struct, frozen=True):
    """What a request left in the cache, and what it was made of."""

    tokens: int
    model: str
    options: TurnOptions
    instructions: str
    at: float


def read_cache_health(log: Iterable[object]) -> list[CacheRead]:
    """The cache reads of a session's requests, in the order of its log."""
    health = _CacheHealth()
    for event in log:
        health.add(event)
    return health.reads


def is_collapse(expected: int, read: int) -> bool:
    """Whether much less was read than expected."""
    missed = expected - read
    return missed >= SHORT_TOKENS and missed > expected * SHORT_SHARE


def find_collapse(log: Iterable[object], finished: e.StepFinished) -> CacheCollapse | None:
    """The collapse of a step that has just finished; `log` has the events before it, of its branch at least."""
    if not finished.usage.input:
        return None
    last = read_cache_health([*log, finished])[-1]
    return CacheCollapse(last.cause, last.expected - last.read) if last.cause else None


class _CacheHealth:
    def __init__(self) -> None:
        self.reads: list[CacheRead] = []
        self._turns: dict[str, TurnOptions] = {}
        self._parents: dict[str, str | None] = {}  # of turns
        self._owners: dict[str, str] = {}  # a message → its turn
        self._models: dict[str, str] = {}
        self._instructions: dict[str, str] = {}
        self._sent_at: dict[str, float] = {}
        self._prefixes: dict[str, _Prefix] = {}  # of turns
        self._compacted: set[str] = set()

    def add(self, event: object) -> None:
        match event:
            case e.TurnStarted():
                self._turns[event.turn], self._parents[event.turn] = event.options, event.parent
                if event.input is not None:
                    self._owners[event.input.id] = event.turn
            case e.AgentSwitched():
                self._turns[event.turn] = event.options
            case e.AnswerStarted():
                self._owners[event.message.id] = event.turn
                self._models[event.turn] = event.message.by
            case e.MessageAdded():  # such as a summary
                self._owners[event.message.id] = event.turn
            case e.StepStarted():
                self._sent_at[event.turn], self._instructions[event.turn] = event.at, event.instructions
            case e.CompactionFinished():
                self._compacted.add(event.turn)
            case e.StepFinished():
                self._finish(event)
            case _:
                pass

    def _before(self, turn: str) -> tuple[_Prefix | None, bool]:
        """The last request on the branch of a turn, and whether the branch was compacted since."""
        is_compacted, known = False, set[str]()
        while turn and turn not in known:
            known.add(turn)
            is_compacted = is_compacted or turn in self._compacted
            if (prefix := self._prefixes.get(turn)) is not None:
                return prefix, is_compacted
            turn = self._owners.get(self._parents.get(turn) or "", "")
        return None, False

    def _finish(self, event: e.StepFinished) -> None:
        turn, usage = event.turn, event.usage
        if not usage.input:
            return
        options = self._turns.get(turn, TurnOptions())
        model = event.model or self._models.get(turn, "")
        sent_at, instructions = self._sent_at.get(turn, event.at), self._instructions.get(turn, "")
        before, is_compacted = self._before(turn)
        expected = 0 if before is None else before.tokens
        cause: CacheCause | Literal[""] = ""
        if before is not None and is_collapse(expected, usage.cached):
            now = _Prefix(0, model, options, instructions, sent_at)
            cause = "compacted" if is_compacted and before.model == model else _cause(before, now)
        self.reads.append(CacheRead(turn, event.step, model, usage.input, expected, usage.cached, usage.written, cause))
        self._prefixes[turn] = _Prefix(usage.cached + usage.written, model, options, instructions, event.at)
        self._compacted.discard(turn)


def _cause(before: _Prefix, now: _Prefix) -> CacheCause:
    if before.model != now.model:
        return "model changed"
    if _tools(before.options) != _tools(now.options):
        return "tools changed"
    if (before.instructions, _system(before.options)) != (now.instructions, _system(now.options)):
        return "instructions changed"
    return "expired" if now.at - before.at > _lifetime(before.options) else "unexpected"


def _tools(options: TurnOptions) -> object:
    return options.tools, options.clients, options.agent, options.mode == "plan"


def _system(options: TurnOptions) -> object:
    return options.system, options.prompt


def _lifetime(options: TurnOptions) -> float:
    params = cast("Mapping[str, Any]", options.params or {})
    return LIFETIMES.get(str(params.get("prompt_cache_retention") or params.get("cache", "")), TTL)


__all__ = ["CacheRead", "find_collapse", "is_collapse", "read_cache_health"]
