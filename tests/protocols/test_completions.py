"""A turn as Chat Completions (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn import api
from everturn.core import events as all_events
from everturn.core.deltas import TextDelta, TurnItem
from everturn.core.events import (
    AnswerStarted,
    Entry,
    OutputRejected,
    Problem,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnSuspended,
)
from everturn.protocols.chat_completions import ChatCompletionsEncoder
from everturn.protocols.openai_common import openai_error
from everturn.server.protocols.openai.schema import ChatMessage, conversation_fingerprint, split_chat_messages
from tests.protocols.test_responses import UNSEEN as UNSEEN_IN_RESPONSES
from tests.protocols.test_responses import shown, story

SEEN = {
    *(AnswerStarted, OutputRejected, StepFinished, StepInterrupted, StepRestarted, StepStarted),
    *(TurnCancelled, TurnCompleted, TurnFailed, TurnSuspended),
}
UNSEEN = {name: why for name, why in UNSEEN_IN_RESPONSES.items() if name != "AnswerStarted"} | {
    "GateOpened": "a call for the client is said when the turn parks; what people are asked has no place here",
    "CallStarted": "tools that run here are not seen",
    "CallFinished": "as above",
}


def answer(segment: int = 0, **more: Any) -> ChatCompletionsEncoder:
    return ChatCompletionsEncoder("session", "turn", "assistant", 0.0, segment=segment, **more)


def chunks(encoder: ChatCompletionsEncoder, fed: Iterator[TurnItem]) -> list[Any]:
    """What a stream says, without its last word."""
    out = encoder.begin()
    for item in fed:
        out += encoder.feed(item)
        if encoder.is_done:
            break
    out += encoder.end("over")
    frames = [frame.removeprefix(b"data: ") for frame in out.split(b"\n\n") if frame]
    assert frames.pop() == b"[DONE]"
    return [msgspec.json.decode(frame) for frame in frames]


def text(stream: list[Any]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in stream for choice in chunk["choices"])


def test_every_event_is_said_or_is_decided_not_to_be() -> None:
    seen = {kind.__name__ for kind in SEEN}
    assert seen | UNSEEN.keys() == {kind.__name__ for kind in get_args(all_events.LogEvent)}
    assert not seen & UNSEEN.keys()


@given(st.integers(0, 1), st.lists(st.integers(1, 9), min_size=1, max_size=8), st.lists(st.booleans(), max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_turn_is_the_same_in_whatever_pieces_it_comes(segment: int, sizes: list[int], drops: list[bool]) -> None:
    live = answer(segment)
    stream = chunks(live, shown(story(), sizes, drops))
    whole = answer(segment, is_stream=False)
    chunks(whole, shown(story()))
    choice = whole.whole()["choices"][0]
    assert text(stream) == (choice["message"]["content"] or "") == live.text
    assert stream[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def test_the_story_is_two_answers_for_what_people_are_asked_ends_none() -> None:
    first, second = answer(0), answer(1)
    stream = chunks(first, shown(story(), [4]))
    assert text(stream) == "I look.\n\nAnd ring."
    [tool_call] = stream[-2]["choices"][0]["delta"]["tool_calls"]
    assert (tool_call["function"], [tool_call["id"]]) == (
        {"name": "bell", "arguments": '{"times":2}'},
        first.call_names,
    )
    assert stream[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert text(chunks(second, shown(story(), [4]))) == "All is done."
    assert second.call_names == []


def test_while_a_person_is_asked_it_waits_and_can_be_given_up() -> None:
    encoder = answer()
    waited = 0
    for item in shown(story()):
        encoder.feed(item)
        if encoder.is_waiting:
            waited += 1
            assert not encoder.is_done
            break
    last = encoder.give_up()
    assert (waited, encoder.is_done) == (1, True)
    assert b'"finish_reason":"stop"' in last
    assert b'"kind":"call","tool":"mail"' in last


def test_what_was_shown_of_a_step_that_starts_again_is_not_in_a_whole_answer() -> None:
    entries = list(story())
    at = next(at for at, entry in enumerate(entries) if isinstance(entry.event, StepStarted))
    turn: str = entries[at].event.turn  # type: ignore[attr-defined]
    moved = [
        *entries[: at + 1],
        Entry(entries[at].seq + 1, StepRestarted(turn=turn, step=1)),
        *(Entry(entry.seq + 1, entry.event) for entry in entries[at + 1 :]),
    ]
    void = [TextDelta(turn, entries[at].seq, 0, 0, "I was about to say")]
    whole, stream = answer(is_stream=False), answer()
    chunks(whole, shown(moved, [3], void=void))
    assert whole.text == "I look.\n\nAnd ring."
    chunks(stream, shown(moved, [3], void=void))
    assert stream.text == "I was about to say\n\nI look.\n\nAnd ring."


@pytest.mark.parametrize("why", ["drain", "slow", "revoked", "unshared", "lost"])
def test_a_stream_that_is_cut_is_an_error_and_never_an_end(why: str) -> None:
    encoder = answer()
    encoder.begin()
    last = encoder.end(why)
    assert msgspec.json.decode(last.removeprefix(b"data: "))["error"]["code"] == why
    assert b"[DONE]" not in last
    assert encoder.end(why) == b""


def test_a_turn_that_fails_is_an_error() -> None:
    encoder = answer()
    frame = encoder.feed(TurnFailed(turn="turn", problem=Problem("model", "it broke")))
    assert b"it broke" in frame
    assert b"[DONE]" not in frame
    assert encoder.failure == "it broke"


def test_errors_are_worded_as_their_client_reads_them() -> None:
    view = api.ErrorView(code="unfit", message="no", where="$.n")
    assert openai_error(view, 422) == {
        "error": {"message": "no", "type": "invalid_request_error", "code": "unfit", "param": "$.n"}
    }
    kinds = [openai_error(view, status)["error"]["type"] for status in (401, 403, 404, 429, 503)]
    assert kinds == ["authentication_error", "permission_error", "not_found_error", "rate_limit_error", "server_error"]


def test_a_conversation_is_known_by_all_that_was_said_and_by_whom() -> None:
    talk = [ChatMessage("user", "a"), ChatMessage("assistant", "b")]
    others = [
        conversation_fingerprint("u", None, [ChatMessage("user", "ab")]),
        conversation_fingerprint("u", None, [ChatMessage("user", "x"), ChatMessage("assistant", "b")]),
        conversation_fingerprint("u", None, [ChatMessage("user", "a"), ChatMessage("user", "b")]),
        conversation_fingerprint("u", None, [ChatMessage("user", "a"), ChatMessage("assistant", "b ")]),
        conversation_fingerprint(
            "u", None, [ChatMessage("user", "a"), ChatMessage("assistant", "b", [{"id": "call_1"}])]
        ),
        conversation_fingerprint("u", None, [ChatMessage("user", "a"), ChatMessage("assistant", "b", None, "call_1")]),
        conversation_fingerprint("v", None, talk),
        conversation_fingerprint("u", "v", talk),
        conversation_fingerprint("u", None, talk[:1]),
    ]
    mine = conversation_fingerprint("u", None, talk)
    assert len({mine, *others}) == len(others) + 1
    assert conversation_fingerprint("u", None, [ChatMessage("user", [{"type": "text", "text": "a"}]), talk[1]]) == mine


def test_only_what_comes_after_the_last_answer_is_new() -> None:
    talk = [ChatMessage("system", "s"), ChatMessage("user", "a"), ChatMessage("assistant", "b")]
    new, before = split_chat_messages([*talk, ChatMessage("user", "c"), ChatMessage("user", "d")])
    assert (new.text, new.has_system, new.has_history, before) == ("c\n\nd", True, True, talk[1:])
    new, before = split_chat_messages([*talk, ChatMessage("tool", "r", None, "call_1")])
    assert (new.text, new.results) == ("", {"call_1": "r"})
