"""What is counted: every family by name, with its labels. No label says whose something is.

A label that is not in these tables cannot be written, and a value that is new when a family is full counts as `other`:
so the number of series has a bound, whatever strangers send.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Kind = Literal["counter", "gauge", "histogram"]

MOST_SERIES: Final = 400  # of one family; the next ones are `other`
MOST_VALUE: Final = 100  # characters of a label's value
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LONG_SECONDS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 86_400.0)
# As the conventions of OpenTelemetry have it for the time of a request to a model.
MODEL_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


class Family(Struct, frozen=True):
    """A name, what it counts, and the labels in their order."""

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


def _of(kind: Kind, name: str, text: str, *labels: str, bounds: tuple[float, ...] = ()) -> Family:
    return Family(f"everturn_{name}", kind, text, labels, bounds)


ALL: Final = (
    # HTTP; `route` is the pattern of the path, never the path
    _of("counter", "http_requests_total", "Requests answered.", "route", "method", "status"),
    _of("histogram", "http_request_seconds", "Seconds until a request was answered.", "route", bounds=SECONDS),
    _of("gauge", "http_requests_underway", "Requests under way, streams included."),
    _of("counter", "http_refused_total", "Requests refused before a route saw them.", "reason"),
    _of("counter", "rate_limited_total", "Requests refused because a tenant did too much.", "limit"),
    _of("counter", "logins_total", "Credentials shown.", "carrier", "outcome"),
    # streams of events
    _of("gauge", "streams_open", "Streams of events that are open.", "kind"),
    _of("counter", "streams_ended_total", "Streams of events that ended, and why.", "kind", "why"),
    _of("counter", "streams_revoked_total", "Streams ended because who read them may no more."),
    _of("counter", "deliveries_total", "Pieces given to readers: an event, or what came with it.", "kind"),
    _of("counter", "slow_readers_total", "Readers let go because they did not keep up."),
    # turns
    _of("counter", "turns_started_total", "Turns begun."),
    _of("counter", "turns_ended_total", "Turns ended.", "outcome"),
    _of("gauge", "turns_underway", "Turns that this process holds."),
    _of("counter", "turns_taken_over_total", "Turns that another process had begun."),
    _of("counter", "turns_parked_total", "Times a turn began to wait for somebody."),
    _of("histogram", "turn_seconds", "Seconds from a turn's start to its end.", "outcome", bounds=LONG_SECONDS),
    _of("histogram", "wake_seconds", "Seconds from a command to the driver that acts on it.", bounds=LONG_SECONDS),
    _of("gauge", "wake_lag_seconds", "Seconds that one waits for a driver who waits longest, in the whole store."),
    _of("gauge", "sessions_stuck", "Sessions that stopped their drivers and are left alone, in the whole store."),
    _of("counter", "steps_restarted_total", "Steps begun again because their driver died."),
    _of("counter", "limits_reached_total", "Budgets used up.", "limit", "scope"),
    # gates and calls
    _of("counter", "gates_opened_total", "Questions put to people or clients.", "kind"),
    _of("counter", "gates_answered_total", "Answers.", "kind", "verdict"),
    _of("gauge", "gates_waiting", "Gates that stand open, in the whole store, when it was last asked."),
    _of("histogram", "gate_seconds", "Seconds from a question to its answer.", "kind", bounds=LONG_SECONDS),
    _of("counter", "calls_started_total", "Tools begun.", "effects"),
    _of("counter", "calls_settled_total", "Calls that have their result.", "state"),
    _of("histogram", "call_seconds", "Seconds from a call's start to its result.", "state", bounds=LONG_SECONDS),
    _of("counter", "late_results_total", "Results that came after their call was settled."),
    # models
    _of("counter", "model_requests_total", "Requests to models that ended.", "model", "finish"),
    _of("histogram", "model_seconds", "Seconds a model took for a step.", "model", bounds=MODEL_SECONDS),
    _of("counter", "model_tokens_total", "Tokens.", "model", "type"),
    _of("counter", "model_cost_dollars_total", "What models cost, where the price is known.", "model"),
    # what it stands on
    _of("gauge", "service_up", "1 while a service answers this process, 0 while it is away.", "service"),
    _of("counter", "store_errors_total", "What the store refused or could not do.", "kind"),
    _of("histogram", "store_append_seconds", "Seconds an append took.", bounds=SECONDS),
    _of("counter", "spans_total", "Spans made for a collector."),
    _of("counter", "spans_lost_total", "Spans that could not be made, or that no collector took."),
    _of("counter", "log_records_total", "Lines logged.", "level"),
    _of("gauge", "draining", "1 while this process is about to leave."),
    _of("gauge", "info", "Always 1.", "version"),
)

PROCESS: Final = (
    Family("process_cpu_seconds_total", "counter", "Processor seconds used."),
    Family("process_resident_memory_bytes", "gauge", "Memory in use."),
    Family("process_virtual_memory_bytes", "gauge", "Address space in use."),
    Family("process_open_fds", "gauge", "Files and connections open."),
    Family("process_max_fds", "gauge", "Files and connections that may be open."),
    Family("process_threads", "gauge", "Threads."),
    Family("process_start_time_seconds", "gauge", "When the process began."),
)
"""Named as every Prometheus client names them."""
