"""Metric families: every metric by name, with its labels. No label identifies a tenant, a user or a session.

A label that is not in these tables cannot be used, and a new value in a full family counts as `other`: so the number of
series is bounded, whatever clients send.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Kind = Literal["counter", "gauge", "histogram"]

MOST_SERIES: Final = 400  # of one family; further ones are `other`
MOST_VALUE: Final = 100  # characters of a label's value
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LONG_SECONDS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 86_400.0)
# As OpenTelemetry's conventions define it for the duration of a model request.
MODEL_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


class MetricFamily(Struct, frozen=True):
    """A metric: its name, kind, help text and ordered labels."""

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


def _family(kind: Kind, name: str, text: str, *labels: str, bounds: tuple[float, ...] = ()) -> MetricFamily:
    return MetricFamily(f"everturn_{name}", kind, text, labels, bounds)


ALL: Final = (
    # HTTP; `route` is the pattern of the path, never the path
    _family("counter", "http_requests_total", "Requests answered.", "route", "method", "status"),
    _family("histogram", "http_request_seconds", "Seconds until a request was answered.", "route", bounds=SECONDS),
    _family("gauge", "http_requests_underway", "Requests under way, streams included."),
    _family("counter", "http_refused_total", "Requests refused before a route saw them.", "reason"),
    _family("counter", "rate_limited_total", "Requests refused because a tenant did too much.", "limit"),
    _family("counter", "logins_total", "Credentials shown.", "carrier", "outcome"),
    # streams of events
    _family("gauge", "streams_open", "Streams of events that are open.", "kind"),
    _family("counter", "streams_ended_total", "Streams of events that ended, and why.", "kind", "why"),
    _family("counter", "streams_revoked_total", "Streams ended because who read them may no more."),
    _family("counter", "deliveries_total", "Pieces given to readers: an event, or what came with it.", "kind"),
    _family("counter", "slow_readers_total", "Readers let go because they did not keep up."),
    # turns
    _family("counter", "turns_started_total", "Turns begun."),
    _family("counter", "turns_ended_total", "Turns ended.", "outcome"),
    _family("gauge", "turns_underway", "Turns that this process drives."),
    _family("counter", "turns_taken_over_total", "Turns taken over from another process."),
    _family("counter", "turns_suspended_total", "Times a turn began to wait for a person or a client."),
    _family("histogram", "turn_seconds", "Seconds from a turn's start to its end.", "outcome", bounds=LONG_SECONDS),
    _family("histogram", "wake_seconds", "Seconds from a command to the driver that acts on it.", bounds=LONG_SECONDS),
    _family("gauge", "wake_lag_seconds", "Seconds that one waits for a driver who waits longest, in the whole store."),
    _family(
        "gauge", "sessions_quarantined", "Sessions that stopped their drivers and are left alone, in the whole store."
    ),
    _family("counter", "steps_restarted_total", "Steps restarted because their driver died."),
    _family("counter", "requests_retried_total", "Model requests sent again after an error.", "model", "kind"),
    _family("counter", "limits_reached_total", "Budgets used up.", "limit", "scope"),
    # gates and calls
    _family("counter", "gates_opened_total", "Questions put to people or clients.", "kind"),
    _family("counter", "gates_answered_total", "Answers.", "kind", "resolution"),
    _family("gauge", "gates_waiting", "Gates that stand open, in the whole store, when it was last asked."),
    _family("histogram", "gate_seconds", "Seconds from a question to its answer.", "kind", bounds=LONG_SECONDS),
    _family("counter", "calls_started_total", "Tool calls started.", "repeat"),
    _family("counter", "calls_finished_total", "Calls that have their result.", "state"),
    _family("histogram", "call_seconds", "Seconds from a call's start to its result.", "state", bounds=LONG_SECONDS),
    _family("counter", "late_results_total", "Results that came after their call was settled."),
    # models
    _family("counter", "model_requests_total", "Requests to models that ended.", "model", "finish"),
    _family("histogram", "model_seconds", "Seconds a model took for a step.", "model", bounds=MODEL_SECONDS),
    _family("counter", "model_tokens_total", "Tokens.", "model", "type"),
    _family("counter", "prompt_cache_collapses_total", "Requests that missed the prompt cache.", "model", "cause"),
    _family("counter", "prompt_cache_missed_tokens_total", "Tokens that these requests missed.", "model", "cause"),
    _family("counter", "model_cost_dollars_total", "What models cost, where the price is known.", "model"),
    _family(
        "histogram",
        "rate_limit_wait_seconds",
        "Seconds that a model request waited for its provider's rate limit before it was sent.",
        "model",
        bounds=LONG_SECONDS,
    ),
    _family("counter", "rate_limit_refused_total", "Model requests that a provider refused with HTTP 429.", "model"),
    _family("gauge", "rate_limit_waiting", "Model requests that wait for a rate limit now.", "model"),
    _family("gauge", "breaker_open", "1 while a model is left alone because it failed (circuit breaker).", "model"),
    # services
    _family("gauge", "service_up", "1 while a service answers this process, 0 while it is away.", "service"),
    _family("counter", "store_errors_total", "What the store refused or could not do.", "kind"),
    _family("histogram", "store_append_seconds", "Seconds an append took.", bounds=SECONDS),
    _family("counter", "spans_total", "Spans made for a collector."),
    _family("counter", "spans_lost_total", "Spans that could not be made, or that no collector took."),
    _family("counter", "log_records_total", "Lines logged.", "level"),
    _family("gauge", "draining", "1 while this process is about to leave."),
    _family("gauge", "info", "Always 1.", "version"),
)

PROCESS: Final = (
    MetricFamily("process_cpu_seconds_total", "counter", "Processor seconds used."),
    MetricFamily("process_resident_memory_bytes", "gauge", "Memory in use."),
    MetricFamily("process_virtual_memory_bytes", "gauge", "Address space in use."),
    MetricFamily("process_open_fds", "gauge", "Files and connections open."),
    MetricFamily("process_max_fds", "gauge", "Files and connections that may be open."),
    MetricFamily("process_threads", "gauge", "Threads."),
    MetricFamily("process_start_time_seconds", "gauge", "When the process began."),
)
"""Named as in every Prometheus client."""
