"""Turn metrics: counts events of turns, as a store observer, and the turns that this process drives, as a plugin."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from everturn.core import events as e
from everturn.core.hooks import TurnContext
from everturn.core.parts import Usage
from everturn.core.store_ports import Store
from everturn.telemetry.metrics import METRICS, Metrics

MOST_BEGUN: Final = 20_000  # start times in memory; of older ones only the end is counted, not the duration


class TurnMetrics:
    """Counts turns, steps, calls and gates of this process; Prometheus sums them up."""

    name = "everturn.metrics"

    def __init__(self, metrics: Metrics = METRICS) -> None:
        self._metrics = metrics
        self._start_times: OrderedDict[tuple[str, str, str], float] = OrderedDict()  # (turn, kind, name) -> start time
        self._models: OrderedDict[str, str] = OrderedDict()  # turn -> its model
        self._table: dict[type[e.Event], Callable[[str, e.Event], None]] = {
            e.TurnStarted: self._turn_started,
            e.AnswerStarted: self._answer_started,
            e.StepStarted: self._step_started,
            e.StepRestarted: lambda _turn, _event: metrics.count("steps_restarted_total"),
            e.RequestRetried: self._request_retried,
            e.StepFinished: self._step_ended,
            e.StepInterrupted: self._step_ended,
            e.CompactionFinished: self._compaction_ended,
            e.CompactionFailed: self._compaction_ended,
            e.TitleSet: self._title_set,
            e.GateOpened: self._gate_opened,
            e.GateResolved: self._gate_resolved,
            e.CallStarted: self._call_started,
            e.CallFinished: self._call_finished,
            e.LateResultReceived: lambda _turn, _event: metrics.count("late_results_total"),
            e.LimitReached: self._limit_reached,
            e.TurnSuspended: lambda _turn, _event: metrics.count("turns_suspended_total"),
            e.TurnCompleted: self._turn_ended,
            e.TurnFailed: self._turn_ended,
            e.TurnCancelled: self._turn_ended,
        }

    def on_turn_start(self, ctx: TurnContext) -> Callable[[], None]:
        """Hook: this process drives the turn now; the returned clean-up is called when it stops."""
        self._metrics.add("turns_underway", 1)
        if ctx.turn not in self._models:  # another process has started it
            self._metrics.count("turns_taken_over_total")
            self._set_model(ctx.turn, "")
        return lambda: self._metrics.add("turns_underway", -1)

    def appended(self, store: Store, session: str, entries: Sequence[e.Entry]) -> None:
        """Count entries that were written here."""
        for entry in entries:
            count = self._table.get(type(entry.event))
            if count is not None and isinstance(entry.event, e.TurnEvent):
                count(entry.event.turn, entry.event)

    def _start_timer(self, turn: str, kind: str, name: str, at: float) -> None:
        self._start_times[turn, kind, name] = at
        if len(self._start_times) > MOST_BEGUN:
            self._start_times.popitem(last=False)

    def _observe_duration(self, family: str, turn: str, kind: str, name: str, at: float, *labels: str) -> None:
        began = self._start_times.pop((turn, kind, name), None)
        if began is not None:
            self._metrics.observe(family, at - began, *labels)

    def _set_model(self, turn: str, name: str) -> None:
        self._models[turn] = name
        if len(self._models) > MOST_BEGUN:
            self._models.popitem(last=False)

    def _turn_started(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.TurnStarted)
        self._metrics.count("turns_started_total")
        self._start_timer(turn, "turn", "", event.at)
        self._set_model(turn, event.options.model)

    def _answer_started(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.AnswerStarted)
        if event.message.by:
            self._set_model(turn, event.message.by)

    def _step_started(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.StepStarted)
        self._start_timer(turn, "step", str(event.step), event.at)

    def _request_retried(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.RequestRetried)
        self._metrics.count("requests_retried_total", self._models.get(turn) or "unknown", event.problem.kind)

    def _step_ended(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.StepFinished | e.StepInterrupted)
        model, usage = event.model or self._models.get(turn) or "unknown", event.usage
        self._metrics.count("model_requests_total", model, event.finish)
        self._observe_duration("model_seconds", turn, "step", str(event.step), event.at, model)
        self._count_usage(model, usage)
        if isinstance(event, e.StepFinished) and (collapse := event.cache) is not None:
            self._metrics.count("prompt_cache_collapses_total", model, collapse.cause)
            self._metrics.count("prompt_cache_missed_tokens_total", model, collapse.cause, by=collapse.missed)

    def _compaction_ended(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.CompactionFinished | e.CompactionFailed)
        model = self._models.get(turn) or "unknown"
        if isinstance(event, e.CompactionFinished):
            model = event.model or model
        self._count_usage(model, event.usage)

    def _title_set(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.TitleSet)
        if event.model:
            self._count_usage(event.model, event.usage)

    def _count_usage(self, model: str, usage: Usage) -> None:
        kinds = {
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "written": usage.written,
            "reasoning": usage.reasoning,
        }
        for kind, tokens in kinds.items():
            if tokens:
                self._metrics.count("model_tokens_total", model, kind, by=tokens)
        if usage.cost:
            self._metrics.count("model_cost_dollars_total", model, by=usage.cost)

    def _gate_opened(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.GateOpened)
        self._metrics.count("gates_opened_total", event.gate.kind)
        self._start_timer(turn, f"gate {event.gate.kind}", event.gate.id, event.at)

    def _gate_resolved(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.GateResolved)
        kind = next((key[1][5:] for key in _gate_keys(turn, event.gate) if key in self._start_times), "unknown")
        self._metrics.count("gates_answered_total", kind, "allowed" if event.resolution.allowed else "denied")
        self._observe_duration("gate_seconds", turn, f"gate {kind}", event.gate, event.at, kind)

    def _call_started(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.CallStarted)
        repeat = "read_only" if event.read_only else "idempotent" if event.idempotent else "at_most_once"
        self._metrics.count("calls_started_total", repeat)
        self._start_timer(turn, "call", event.call, event.at)

    def _call_finished(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.CallFinished)
        self._metrics.count("calls_finished_total", event.state)
        self._observe_duration("call_seconds", turn, "call", event.call, event.at, event.state)

    def _limit_reached(self, turn: str, event: e.Event) -> None:
        assert isinstance(event, e.LimitReached)
        self._metrics.count("limits_reached_total", event.limit, event.scope)

    def _turn_ended(self, turn: str, event: e.Event) -> None:
        outcome = {"TurnCompleted": "completed", "TurnFailed": "error"}.get(type(event).__name__, "cancelled")
        self._metrics.count("turns_ended_total", outcome)
        self._observe_duration("turn_seconds", turn, "turn", "", event.at, outcome)
        self._models.pop(turn, None)


def _gate_keys(turn: str, gate: str) -> list[tuple[str, str, str]]:
    return [(turn, f"gate {kind}", gate) for kind in GATE_KINDS]


GATE_KINDS: Final = ("call", "egress", "loop", "manual", "result", "question", "form", "client", "limit")
