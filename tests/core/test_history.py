"""History: whatever happened on the way, what a model is shown is valid for every provider."""

import json
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.simulated_driver import Dice, Play, dice, plays

from everturn.core.canonical_json import parse_object
from everturn.core.history import (
    DIGEST_LIMIT,
    NO_RESULT,
    answer_with_digest,
    arguments_as_object,
    render_history,
    render_own_message,
)
from everturn.core.messages import Message
from everturn.core.options import ToolHistory
from everturn.core.parts import (
    CallState,
    FilePart,
    NoticePart,
    Opaque,
    Output,
    Part,
    ReasoningPart,
    StepPart,
    TextPart,
    ToolPart,
)
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult, ToolSpec

POLICIES: tuple[ToolHistory, ...] = get_args(ToolHistory)

words = st.text(min_size=1, max_size=20)
opaque = st.none() | st.builds(Opaque, words, words)
files = st.builds(FilePart, words, st.just("image/png"), st.integers(0, 9))
outputs = st.none() | st.builds(Output, st.text(max_size=400), attachments=st.lists(files, max_size=1).map(tuple))
arguments = st.sampled_from(["{}", '{"a": [1, {"b": null}]}', '{"a', "", "[]", "null", '{"a": NaN}']) | words
tools = st.builds(
    ToolPart,
    call=st.uuids(version=4).map(str),
    name=words,
    arguments=arguments,
    state=st.sampled_from(get_args(CallState)),
    output=outputs,
    late=outputs,
    used=st.sampled_from(["", '{"b":2}']),
    is_edited=st.booleans(),
    opaque=opaque,
)
answer_parts = st.lists(
    st.builds(TextPart, st.text(max_size=9), opaque)
    | st.builds(ReasoningPart, st.text(max_size=9), opaque)
    | tools
    | files
    | st.builds(StepPart, st.integers(1, 9), st.just("stop"))
    | st.builds(NoticePart, words, words),
    max_size=7,
)
said_parts = st.lists(st.builds(TextPart, words) | files | st.builds(NoticePart, words, words), max_size=3)
inputs = st.builds(Message, words, st.none(), st.sampled_from(["user", "notice"]), said_parts.map(tuple))
answers = st.builds(Message, words, st.none(), st.just("assistant"), answer_parts.map(tuple), hidden=st.booleans())
histories = st.lists(inputs | answers, max_size=5)
policies = st.sampled_from(POLICIES)


def own(messages: Iterable[Message]) -> list[RequestMessage]:
    """What a turn is shown of itself."""
    return [shown for message in messages for shown in render_own_message(message)]


def check(messages: Sequence[RequestMessage]) -> None:
    """What the strictest provider would refuse."""
    known: set[str] = set()
    owed: list[str] = []
    for message in messages:
        assert message.parts, "an empty message"
        for part in message.parts:
            is_text = isinstance(part, TextPart | ReasoningPart)
            assert not is_text or part.text or part.opaque, "an empty text"
            assert not isinstance(part, NoticePart) or part.text, "an empty notice"
        kinds = {type(part) for part in message.parts}
        if message.role == "tool":
            results = [part.call for part in message.parts if isinstance(part, RequestResult)]
            assert kinds == {RequestResult}
            assert results == owed, "a call without its result, or a result without its call"
            owed = []
            continue
        assert not owed, "something between a call and its result"
        if message.role == "user":
            assert kinds <= {TextPart, FilePart, NoticePart}
            continue
        assert kinds <= {TextPart, ReasoningPart, FilePart, RequestCall}
        calls = [part for part in message.parts if isinstance(part, RequestCall)]
        owed = [call.call for call in calls]
        assert len(known | set(owed)) == len(known) + len(owed), "a call twice"
        known |= set(owed)
        assert all(isinstance(json.loads(call.arguments), dict) for call in calls), "arguments that are no object"
    assert not owed, "a call without its result"


@given(histories, policies)
def test_any_history_is_valid_under_every_policy(history: list[Message], policy: ToolHistory):
    check(render_history(history, policy))


@given(plays, policies)
def test_what_a_turn_left_behind_is_valid_under_every_policy(play: Play, policy: ToolHistory):
    check(render_history(play.state.messages.values(), policy))


@given(dice)
def test_a_turn_is_shown_its_own_messages_at_any_moment(dice: Dice):
    play = Play(dice)
    for _ in play.events():
        check(own(play.state.messages.values()))


@given(histories)
def test_a_turn_is_shown_its_hidden_answers_too_and_they_are_valid(history: list[Message]):
    check(own(history))


@given(answers)
def test_an_answer_shown_step_by_step_is_the_answer_shown_whole(answer: Message):
    ends = [at + 1 for at, part in enumerate(answer.parts) if isinstance(part, StepPart)]

    for end in ends:
        before = replace(answer, parts=answer.parts[:end])
        assert [*render_own_message(before), *render_own_message(answer, end)] == render_own_message(answer)


@pytest.mark.parametrize("policy", POLICIES)
def test_placeholders_and_hidden_messages_are_left_out(policy: ToolHistory):
    question = Message("u", None, "user", (TextPart("hello"),))
    placeholder = Message("a", "u", "assistant")
    hidden = Message("b", "u", "assistant", (TextPart("secret"), ToolPart("c", "look", "{}")), hidden=True)
    ended_empty = Message("d", "u", "assistant", (StepPart(1, "cancelled"),))

    shown = render_history([question, placeholder, hidden, ended_empty], policy)

    assert shown == [RequestMessage("user", (TextPart("hello"),))]


def test_an_empty_text_beside_a_file_is_left_out():
    check(render_history([Message("u", None, "user", (TextPart(""), FilePart("blob", "image/png", 1)))]))


def test_a_notice_that_says_nothing_is_no_message():
    check(render_history([Message("n", None, "notice", (NoticePart("kind", ""),))]))


@given(histories, policies)
def test_a_request_built_twice_is_byte_equal(history: list[Message], policy: ToolHistory):
    def build() -> bytes:
        copy = msgspec.json.decode(msgspec.json.encode(history), type=list[Message])  # another process read the log
        tool = ToolSpec("look", "Look.", {"type": "object"})
        messages = [*render_history(copy, policy), *own(copy[-1:])]
        return msgspec.json.encode(ModelRequest("model", "be kind", messages, [tool], {"top_p": 1}))

    assert build() == build()


def files_of(message: Message | RequestMessage) -> list[FilePart]:
    return [part for part in message.parts if isinstance(part, FilePart)]


@given(answers)
def test_the_hint_of_a_digest_ends_exactly_where_the_answer_begins(answer: Message):
    text, size = answer_with_digest(answer)
    tool_parts = [part for part in answer.parts if isinstance(part, ToolPart)]

    assert text[size:] == answer.text
    assert (size > 0) == bool(tool_parts)
    assert all(part.name in text[:size] for part in tool_parts)
    if not answer.hidden:
        shown = render_history([answer], "digest")
        is_there = text or files_of(answer)
        assert [(message.text, message.hint_size) for message in shown] == ([(text, size)] if is_there else [])
        assert [file for message in shown for file in files_of(message)] == files_of(answer)


def test_a_digest_shows_enough_of_a_long_result_to_recognise_it():
    long = ToolPart("c", "read", "{}", "completed", Output("x" * (DIGEST_LIMIT + 1)))

    text, size = answer_with_digest(Message("a", None, "assistant", (long, TextPart("Done."))))

    assert text[:size].count("x") == DIGEST_LIMIT
    assert text[size:] == "Done."


@given(answers)
def test_without_calls_every_result_is_told_in_a_notice_before_the_answer(answer: Message):
    shown = [] if answer.hidden else render_history([answer], "results")
    tool_parts = [part for part in answer.parts if isinstance(part, ToolPart)]

    assert not any(isinstance(part, RequestCall | RequestResult) for message in shown for part in message.parts)
    if tool_parts and shown:
        notice = shown[0].parts[0]
        assert isinstance(notice, NoticePart)
        assert all((part.output.text if part.output else NO_RESULT) in notice.text for part in tool_parts)
    is_there = bool((answer.text or files_of(answer)) and shown)
    assert [message.text for message in shown if message.role == "assistant"] == [answer.text for _ in range(is_there)]
    assert not shown or [file for message in shown for file in files_of(message)] == files_of(answer)


def test_each_step_is_a_message_of_its_own_with_its_results_behind_it():
    parts: tuple[Part, ...] = (
        TextPart("Let me look."),
        ToolPart("c1", "look", "{}", "completed", Output("nothing")),
        ToolPart("c2", "look", '{"at', "failed", Output("broken arguments")),
        StepPart(1, "tool_calls"),
        TextPart("Nothing there."),
        StepPart(2, "stop"),
    )

    assert render_history([Message("a", None, "assistant", parts)]) == [
        RequestMessage(
            "assistant",
            (
                TextPart("Let me look."),
                RequestCall("c1", "look", "{}"),
                RequestCall("c2", "look", '{"invalid_json":"{\\"at"}'),
            ),
        ),
        RequestMessage(
            "tool",
            (
                RequestResult("c1", "look", "nothing"),
                RequestResult("c2", "look", "broken arguments", is_error=True, state="failed"),
            ),
        ),
        RequestMessage("assistant", (TextPart("Nothing there."),)),
    ]


def test_a_model_is_told_when_a_person_changed_the_arguments():
    part = ToolPart("c", "mail", "{}", "completed", Output("sent"), used='{"to":"Ada"}', is_edited=True)

    result = render_history([Message("a", None, "assistant", (part,))])[1].parts[0]

    assert isinstance(result, RequestResult)
    assert result.text == '[The person changed the arguments to {"to":"Ada"}]\nsent'


@given(st.text() | arguments)
def test_arguments_are_shown_as_an_object_and_broken_ones_as_what_they_are(text: str):
    shown = json.loads(arguments_as_object(text))

    broken = {"invalid_json": text} if text.strip() else {}
    assert shown == (json.loads(text) if parse_object(text) is not None else broken)


def test_no_arguments_at_all_are_an_empty_object():
    assert arguments_as_object("") == "{}"


@given(st.text(st.characters(exclude_categories=())) | st.sampled_from(["[" * 100_000, '{"a":' * 50_000]))
def test_reading_arguments_never_fails(text: str):
    assert parse_object(text) is None or isinstance(parse_object(text), dict)
