"""Logs → spans: the same of the same log, in the words of the conventions, and without what anybody said."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from everturn import wire
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Entry,
    PermissionDecided,
    StepFinished,
    StepRestarted,
    StepStarted,
    TurnCompleted,
    TurnEvent,
    TurnStarted,
)
from everturn.core.options import Lineage, TurnOptions
from everturn.core.parts import CacheCollapse, CompactionReason, Output
from everturn.core.projections.turn_trace import trace_spans
from everturn.telemetry.ids import SpanKey, is_sampled, read_traceparent, span_id, span_of_turn, trace_id
from everturn.telemetry.otel_names import provider_and_model
from everturn.telemetry.span_types import Span
from everturn.telemetry.spans import TurnTrace, spans_of

GOLDEN = Path(__file__).parent.parent / "golden"
LOGS = sorted(GOLDEN.glob("v*/*.jsonl"))


def log(name: str) -> list[Entry]:
    return wire.load_log((GOLDEN / "v1" / f"{name}.jsonl").read_bytes())


def drawn(spans: list[Span]) -> list[str]:
    """Spans as an indented tree, in the order in which they ended."""
    parents = {span.key: span.parent for span in spans}

    def depth(place: SpanKey | None) -> int:
        return -1 if place is None else depth(parents[place]) + 1

    return [
        "  " * depth(span.key)
        + span.name
        + "".join(f" ({moment.name})" for moment in span.events)
        + (f" ! {span.failed}" if span.failed else "")
        for span in spans
    ]


def test_the_spans_of_every_golden_log() -> None:
    assert {
        path.stem: drawn(spans_of("talk", wire.load_log(path.read_bytes())))
        for path in LOGS
        if path.parent.name == "v1"
    } == snapshot(
        {
            "cancelled": ["  chat scripted", "invoke_agent"],
            "compacted": [
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "invoke_agent",
                "invoke_agent (compaction started: command) (compaction failed: summary) ! summary",
                "invoke_agent (compaction started: command) (compaction finished)",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "  execute_tool look",
                "  chat window",
                "invoke_agent",
            ],
            "denied": [
                "  chat scripted",
                "  gate call",
                "  execute_tool mail",
                "  chat scripted",
                "invoke_agent (suspended)",
            ],
            "durable_tool": [
                "  chat scripted",
                "  execute_tool order (paused) (resumed) (paused) (resumed)",
                "  chat scripted",
                "invoke_agent (suspended) (suspended)",
            ],
            "error": ["  chat scripted ! broken", "invoke_agent ! broken"],
            "fork": [
                "  chat scripted",
                "invoke_agent",
                "  chat scripted",
                "invoke_agent",
                "  chat scripted",
                "invoke_agent",
                "  chat scripted",
                "invoke_agent",
            ],
            "gate_edited": [
                "  chat scripted",
                "  execute_tool unknown ! failed",
                "  execute_tool look",
                "  gate call",
                "  execute_tool mail",
                "  chat scripted",
                "invoke_agent (suspended)",
            ],
            "granted": [
                "  chat scripted",
                "  gate call",
                "  execute_tool note",
                "  chat scripted",
                "invoke_agent (suspended)",
                "  chat scripted",
                "  execute_tool note",
                "  chat scripted",
                "invoke_agent",
            ],
            "handed_over": [
                "  chat scripted",
                "  execute_tool transfer_to_billing",
                "  chat scripted",
                "  chat scripted",
                "invoke_agent front",
            ],
            "imported": ["  chat scripted", "invoke_agent"],
            "instructed": ["  chat scripted", "invoke_agent", "  chat scripted", "invoke_agent"],
            "late": [
                "  chat scripted",
                "  execute_tool slow",
                "invoke_agent",
                "    late_result slow",
                "  chat scripted",
                "invoke_agent",
            ],
            "limited": [
                "  chat scripted",
                "  execute_tool look",
                "  chat scripted",
                "  execute_tool unknown ! failed",
                "invoke_agent (limit reached: calls)",
            ],
            "max_steps": [
                "  chat scripted",
                "  execute_tool look",
                "  chat scripted",
                "  execute_tool unknown ! failed",
                "  chat scripted",
                "invoke_agent",
            ],
            "plain": ["  chat scripted", "invoke_agent", "  chat scripted", "invoke_agent"],
            "organized": ["  chat scripted", "invoke_agent", "  chat scripted", "invoke_agent"],
            "rated": ["  chat scripted", "invoke_agent"],
            "uploaded": ["  chat uploading", "invoke_agent", "  chat uploading", "invoke_agent"],
            "reached_out": [
                "  chat scenes",
                "    execute_tool look",
                "    gate client",
                "  execute_tool bell (paused) (resumed)",
                "  execute_tool work (paused) (resumed)",
                "  chat scenes",
                "invoke_agent (suspended)",
            ],
            "reasoning": ["  chat scripted", "invoke_agent"],
            "refused": [
                "  chat everturn",
                "invoke_agent (input refused by guard)",
                "  chat scripted (restarted)",
                "invoke_agent",
                "  chat scripted (restarted)",
                "invoke_agent",
            ],
            "restarted": ["  chat scripted (restarted)", "invoke_agent"],
            "retried": ["  chat second (retried (rate), attempt 2) (retried (rate), attempt 2)", "invoke_agent"],
            "reviewed": [
                "  chat scripted",
                "    gate result",
                "    gate result",
                "  execute_tool look",
                "  execute_tool look",
                "  chat scripted",
                "invoke_agent (suspended)",
            ],
            "steered": [
                "  chat scripted",
                "  gate call",
                "  execute_tool mail",
                "  chat scripted",
                "invoke_agent (suspended)",
                "  chat scripted",
                "invoke_agent",
            ],
            "switched": ["  chat scripted", "invoke_agent front", "  chat scripted", "invoke_agent billing"],
        }
    )


def test_the_whole_of_a_turn_in_the_words_of_the_conventions() -> None:
    assert [msgspec.to_builtins(span) for span in spans_of("talk", log("gate_edited"))] == snapshot(
        [
            {
                "name": "chat scripted",
                "kind": "client",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 15254464344967519670},
                "parent": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": (),
                "attributes": {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "everturn",
                    "gen_ai.request.model": "scripted",
                    "gen_ai.request.stream": True,
                    "gen_ai.response.finish_reasons": ("tool_calls",),
                    "gen_ai.usage.input_tokens": 0,
                    "gen_ai.usage.output_tokens": 0,
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                    "everturn.step": 1,
                },
                "links": (),
                "failed": "",
                "caller": None,
            },
            {
                "name": "execute_tool unknown",
                "kind": "internal",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 6888498879055183652},
                "parent": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": (),
                "attributes": {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "unknown",
                    "gen_ai.tool.type": "function",
                    "gen_ai.tool.call.id": "turn_3-1-3",
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                    "everturn.call.state": "failed",
                    "error.type": "failed",
                },
                "links": (),
                "failed": "failed",
                "caller": None,
            },
            {
                "name": "execute_tool look",
                "kind": "internal",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 7887039161576433682},
                "parent": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": (),
                "attributes": {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "look",
                    "gen_ai.tool.type": "function",
                    "gen_ai.tool.call.id": "turn_3-1-1",
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                    "everturn.call.allowed": True,
                    "everturn.call.read_only": True,
                    "everturn.call.idempotent": False,
                    "everturn.call.state": "completed",
                },
                "links": (),
                "failed": "",
                "caller": None,
            },
            {
                "name": "gate call",
                "kind": "internal",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 7510098725806378603},
                "parent": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": (),
                "attributes": {
                    "everturn.gate.id": "gate_6",
                    "everturn.gate.kind": "call",
                    "everturn.gate.resolution": "allowed",
                    "gen_ai.tool.call.id": "turn_3-1-2",
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                },
                "links": (),
                "failed": "",
                "caller": None,
            },
            {
                "name": "execute_tool mail",
                "kind": "internal",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 12800962526765878992},
                "parent": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": (),
                "attributes": {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "mail",
                    "gen_ai.tool.type": "function",
                    "gen_ai.tool.call.id": "turn_3-1-2",
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                    "everturn.call.allowed": True,
                    "everturn.call.read_only": False,
                    "everturn.call.idempotent": True,
                    "everturn.call.state": "completed",
                },
                "links": (),
                "failed": "",
                "caller": None,
            },
            {
                "name": "chat scripted",
                "kind": "client",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 9369659946388132113},
                "parent": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": (),
                "attributes": {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "everturn",
                    "gen_ai.request.model": "scripted",
                    "gen_ai.request.stream": True,
                    "gen_ai.response.finish_reasons": ("stop",),
                    "gen_ai.usage.input_tokens": 11,
                    "gen_ai.usage.output_tokens": 1,
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                    "everturn.step": 2,
                },
                "links": (),
                "failed": "",
                "caller": None,
            },
            {
                "name": "invoke_agent",
                "kind": "internal",
                "key": {"trace": 179807042963126114192949081251970151795, "span": 4417373991399505378},
                "parent": None,
                "start": 1700000000.0,
                "end": 1700000000.0,
                "events": ({"name": "suspended", "at": 1700000000.0},),
                "attributes": {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.provider.name": "everturn",
                    "gen_ai.request.model": "scripted",
                    "gen_ai.conversation.id": "talk",
                    "everturn.turn.id": "turn_3",
                    "gen_ai.usage.input_tokens": 11,
                    "gen_ai.usage.output_tokens": 1,
                    "everturn.outcome": "completed",
                    "everturn.steps": 2,
                    "everturn.calls": 2,
                },
                "links": (),
                "failed": "",
                "caller": None,
            },
        ]
    )


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_every_span_of_a_turn_is_in_its_one_trace_and_has_a_parent_in_it(path: Path) -> None:
    entries = wire.load_log(path.read_bytes())
    spans = spans_of("talk", entries)
    turns = {entry.event.turn for entry in entries if isinstance(entry.event, TurnStarted)}
    places = {span.key for span in spans}
    assert len(places) == len(spans)
    assert {span.key.trace for span in spans} == {trace_id("talk", turn) for turn in turns}
    for span in spans:
        assert span.parent is None or span.parent in places
        assert span.start <= span.end
    assert sum(span.parent is None for span in spans) == len(turns)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_wherever_a_log_is_cut_in_two_both_pieces_make_the_spans_of_the_whole(path: Path) -> None:
    entries = wire.load_log(path.read_bytes())
    whole = spans_of("talk", entries)
    for cut in range(len(entries)):
        before = spans_of("talk", entries[:cut])
        assert whole[: len(before)] == before


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_an_entry_that_is_seen_again_changes_nothing(path: Path) -> None:
    entries = wire.load_log(path.read_bytes())
    turn = next(entry.event.turn for entry in entries if isinstance(entry.event, TurnEvent))
    mine = [entry for entry in entries if isinstance(entry.event, TurnEvent) and entry.event.turn == turn]
    once, twice = TurnTrace("talk", turn), TurnTrace("talk", turn)
    spans = [span for entry in mine for span in once.apply(entry)]
    assert [span for number in range(len(mine)) for e in mine[: number + 1] for span in twice.apply(e)] == spans


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_without_content_no_span_holds_a_word_that_was_said(path: Path) -> None:
    """Every text of a log is replaced by a canary, but for names and ids that are ours; none is in a span."""
    canary = "Canary-7f3a"
    quiet = {
        "turn",
        "id",
        "call",
        "gate",
        "command",
        "type",
        "state",
        "tool",
        "kind",
        "by",
        "model",
        "finish",
        "read_only",
        "idempotent",
    }
    quiet |= {
        "outcome",
        "cause",
        "parent",
        "identity",
        "plugin",
        "role",
        "limit",
        "scope",
        "phase",
        "origin",
        "session",
        "below",
        "agent",
        "layer",
        "rating",
    }
    quiet |= {
        "hash",
        "calls",
        "gates",
        "key",
        "approval",
        "tool_history",
        "late",
        "review",
        "action",
        "blob",
        "private",
    }

    def sung(value: object, name: str = "") -> object:
        if isinstance(value, dict):
            return {key: sung(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [sung(each, name) for each in value]
        is_ours = name in quiet or (name == "why" and value in get_args(CompactionReason))
        return f"{canary} {value}" if isinstance(value, str) and not is_ours else value

    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    changed = b"".join(msgspec.json.encode(sung(line)) + b"\n" for line in lines)
    entries = wire.load_log(changed)
    assert canary in str(entries)
    assert canary not in str(spans_of("talk", entries))
    assert canary in str(spans_of("talk", entries, content=True))


def test_a_result_that_was_made_of_private_values_is_never_shown() -> None:
    output = Output("Canary", sensitive=True)
    log = [Entry(1, CallFinished(turn="t", call="c", state="completed", output=output))]
    [span] = spans_of("talk", log, content=True)
    assert span.attributes["gen_ai.tool.call.result"] == "[private]"


def test_a_sub_turn_is_in_the_trace_of_the_turn_at_the_top_below_the_call_that_asked_for_it() -> None:
    above = Lineage(session="top", turn="turn_1", by=("top", "turn_1", "call_9"))
    trace = TurnTrace("below", "turn_2")
    trace.apply(Entry(1, TurnStarted(turn="turn_2", options=TurnOptions(lineage=above))))
    assert trace.key == SpanKey(trace_id("top", "turn_1"), span_id("below", "turn_2", "turn"))
    [span] = trace.apply(Entry(2, TurnCompleted(turn="turn_2")))
    assert span.parent == SpanKey(trace_id("top", "turn_1"), span_id("top", "turn_1", "call", "call_9"))


def test_a_step_that_a_dead_process_began_is_one_span_from_its_first_beginning() -> None:
    trace = TurnTrace("talk", "t")
    trace.apply(Entry(1, TurnStarted(turn="t", at=10.0)))
    trace.apply(Entry(2, StepStarted(turn="t", step=1, at=11.0)))
    trace.apply(Entry(3, StepRestarted(turn="t", step=1, at=90.0)))
    [span] = trace.apply(Entry(4, StepFinished(turn="t", step=1, parts=(), finish="stop", at=95.0)))
    assert (span.start, span.end, [moment.at for moment in span.events]) == (11.0, 95.0, [90.0])


def test_a_name_that_a_model_made_up_is_in_no_span_and_a_call_begins_when_it_began_first() -> None:
    made_up = PermissionDecided(turn="t", call="c1", tool="Canary", identity="", hash="", allowed=False, why="")
    started = CallStarted(turn="t", call="c2", tool="look", arguments="{}", hash="", read_only=True, key="k", at=3.0)
    again = msgspec.structs.replace(started, at=50.0)
    settled = [CallFinished(turn="t", call=call, state="failed", output=Output(""), at=60.0) for call in ("c1", "c2")]
    log = [Entry(seq, event) for seq, event in enumerate((made_up, started, again, *settled), 1)]
    first, other = spans_of("talk", log)
    assert (first.name, first.start) == ("execute_tool unknown", 60.0)
    assert (other.name, other.start) == ("execute_tool look", 3.0)


@given(st.lists(st.text(max_size=8), min_size=2, max_size=2), st.lists(st.text(max_size=8), min_size=2, max_size=2))
def test_two_turns_never_share_a_trace(first: list[str], other: list[str]) -> None:
    assert (trace_id(*first) == trace_id(*other)) == (first == other)
    assert 0 < span_of_turn(*first).span < 2**64


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            (0xAF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331),
        ),
        (
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            (0xAF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331),
        ),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", None),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", None),
        ("00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_a_traceparent_is_read_as_w3c_has_it(text: str, place: tuple[int, int] | None) -> None:
    assert read_traceparent(text) == (SpanKey(*place) if place else None)
    if place and text.startswith("00"):
        assert SpanKey(*place).traceparent == text


def test_a_part_of_all_traces_is_about_that_part_and_the_same_everywhere() -> None:
    traces = [trace_id("talk", f"turn_{number}") for number in range(2000)]
    assert 400 < sum(is_sampled(trace, 0.25) for trace in traces) < 600
    assert all(is_sampled(trace, 1.0) for trace in traces)
    assert not any(is_sampled(trace, 0.0) for trace in traces)
    assert {trace for trace in traces if is_sampled(trace, 0.1)} <= {
        trace for trace in traces if is_sampled(trace, 0.2)
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai:gpt-5.2", ("openai", "gpt-5.2")),
        ("gemini:gemini-3-pro", ("gcp.gemini", "gemini-3-pro")),
        ("mistral:large", ("mistral_ai", "large")),
        ("house:our-model@chat", ("house", "our-model")),
        ("scripted", ("everturn", "scripted")),
        ("", ("everturn", "unknown")),
    ],
)
def test_a_model_is_called_what_the_conventions_call_it(name: str, expected: tuple[str, str]) -> None:
    assert provider_and_model(name) == expected


def test_a_step_that_missed_the_prompt_cache_says_why() -> None:
    missed = CacheCollapse("tools changed", 12_000)
    entries = [
        Entry(1, TurnStarted(turn="t")),
        Entry(2, StepStarted(turn="t", step=1)),
        Entry(3, StepFinished(turn="t", step=1, parts=(), finish="stop", cache=missed)),
    ]
    (step,) = spans_of("s", entries)
    assert (step.attributes["everturn.cache.collapse"], step.attributes["everturn.cache.missed_tokens"]) == (
        "tools changed",
        12_000,
    )
    assert [span.cache for span in trace_spans(entries)] == [missed]
