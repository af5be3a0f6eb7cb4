"""MCP elicitation and sampling: turns a server's request during a call into a question to a person, and the resolution
into its answer. Pure.

An address that the server wants to have opened is only shown to the person, and never opened by the program.
"""

from __future__ import annotations

from typing import Any, Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from everturn.core.canonical_json import (
    JsonObject,
    encode_canonical,
    parse_object,
    replace_surrogates,
    replace_surrogates_in,
)
from everturn.core.gates import GateResolution
from everturn.core.ports import Question, SubagentRequest
from everturn.mcp.tool_list import find_schema_problem

MOST_QUESTIONS: Final = 8  # per call
MOST_ROUNDS: Final = 10
LARGEST_STATE: Final = 200_000  # characters stored for a server between two rounds
LONGEST: Final = 8000  # characters of a question
LONGEST_ADDRESS: Final = 2000  # characters of an address that a person can still read
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
DECLINED: Final[JsonObject] = {"action": "decline"}
NO_ROOTS: Final[JsonObject] = {"roots": []}


class ElicitationRequest(Struct, frozen=True):
    """A request of a server, and the name by which its question is recognised when the call is resumed."""

    name: str
    method: str
    params: JsonObject


def make_question(server: str, request: ElicitationRequest) -> Question | None:
    """Return the question for a person; None if the request needs none, or cannot be shown."""
    if request.method == SAMPLE:
        turn = make_sampling_request(request.params)
        if turn is None:
            return None
        system = f"\n\nWith the system prompt:\n{turn.system}" if turn.system else ""
        text = f"Server {server} asks for an answer of the model to this:\n{turn.prompt}{system}"
        return Question(_short(text), name=request.name)
    if request.method != ELICIT:
        return None
    message = request.params.get("message")
    message_text = replace_surrogates(message) if isinstance(message, str) else ""
    if request.params.get("mode") == "url":
        url = request.params.get("url")
        if not isinstance(url, str) or not _is_address(url):
            return None
        text = f"Server {server} asks you to open this address: {url}\n{message_text}\nAllow it once you have done so."
        return Question(_short(text), name=request.name)
    schema = request.params.get("requestedSchema")
    if find_schema_problem(schema):
        return None
    return Question(
        _short(f"Server {server} asks: {message_text}"), schema=replace_surrogates_in(schema), name=request.name
    )


def _is_address(url: str) -> bool:
    """Whether a person can see where a URL leads: `https://bank.example@evil.example` does not lead to a bank."""
    if not url.startswith(("https://", "http://")) or not url.isprintable() or len(url) > LONGEST_ADDRESS:
        return False
    try:
        host = urlsplit(url).netloc
    except ValueError:
        return False
    return bool(host) and "@" not in host and "\\" not in url and " " not in url


def make_elicitation_answer(request: ElicitationRequest, resolution: GateResolution) -> JsonObject:
    """Build the answer to an elicitation."""
    if not resolution.allowed:
        return make_decline(resolution.reason)
    if request.params.get("mode") == "url":
        return {"action": "accept"}
    content = parse_object(resolution.result) if resolution.result else {}
    if content is None or not all(_is_plain(value) for value in content.values()):
        return make_decline("the form was not filled in")
    return {"action": "accept", "content": content}


def make_decline(reason: str = "") -> JsonObject:
    """Build an answer that declines, with the reason."""
    return {**DECLINED, "_meta": {"reason": reason}} if reason else DECLINED


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in cast("list[Any]", value))
    return value is None or isinstance(value, str | int | float | bool)


def make_sampling_request(params: JsonObject) -> SubagentRequest | None:
    """Return the sub-agent run for a sampling request: one step, no tools. None if the request has no readable text."""
    messages = params.get("messages")
    lines: list[str] = []
    for message in cast("list[Any]", messages) if isinstance(messages, list) else []:
        row = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        content = row.get("content")
        for block in cast("list[Any]", content) if isinstance(content, list) else [content]:
            text = cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else None
            if isinstance(text, str):
                lines.append(text if row.get("role") == "user" else f"{row.get('role')}: {text}")
    prompt, system = "\n\n".join(lines), params.get("systemPrompt")
    if not prompt.strip() or len(prompt) > LONGEST - 1000:  # a prompt that cannot be shown completely is refused
        return None
    system_text = replace_surrogates(system) if isinstance(system, str) else ""
    return (
        None
        if len(system_text) > 500
        else SubagentRequest(replace_surrogates(prompt), system=system_text, tools=(), max_steps=1)
    )


def make_sampling_answer(text: str) -> JsonObject:
    """Build the answer to a sampling request from the text of the model."""
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "everturn",
        "stopReason": "endTurn",
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# Rounds: the state of a call while a person is asked ----------------------------------------------------------


class ElicitationRound(Struct, frozen=True, omit_defaults=True):
    """A call that waits for answers: everything needed to continue it, also in another process."""

    number: int
    state: str | None = None
    requests: tuple[ElicitationRequest, ...] = ()
    refused: tuple[str, ...] = ()  # keys of requests that are declined
    asked: int = 0  # questions in the rounds before
    is_sent: bool = False  # the answers may have been sent


def next_round(result: JsonObject, before: ElicitationRound | None) -> ElicitationRound | str:
    """Read the requests of the server's next round; a text says why they are refused."""
    number = 1 if before is None else before.number + 1
    question_count = 0 if before is None else before.asked + len(before.requests)
    if number > MOST_ROUNDS:
        return f"it asked {MOST_ROUNDS} times over, and is answered no more"
    state, input_requests = result.get("requestState"), result.get("inputRequests")
    rows = cast("dict[str, Any]", input_requests) if isinstance(input_requests, dict) else {}
    requests: list[ElicitationRequest] = []
    refused: list[str] = []
    for key, row in rows.items():
        request = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        method, params = request.get("method"), request.get("params")
        plain_params = cast("JsonObject", params) if isinstance(params, dict) else {}
        is_over_limit = question_count + len(requests) >= MOST_QUESTIONS
        if method == ELICIT and is_over_limit:
            refused.append(key)
        elif method == SAMPLE and is_over_limit:
            return f"it asks more than {MOST_QUESTIONS} questions"
        elif method in (ELICIT, SAMPLE, ROOTS):
            requests.append(ElicitationRequest(f"r{number}.{key}", cast("str", method), plain_params))
        else:
            return f"it asks for {str(method)[:50]!r}, which is not supported"
    if len(requests) > 2 * MOST_QUESTIONS:
        return "it asks for too much at once"
    if not isinstance(state, str | None) or (state is None and not rows):
        return "it asks for nothing, and does not go on"
    upcoming = ElicitationRound(number, state, tuple(requests), tuple(refused[:1000]), question_count)
    if len(state or "") + len(encode_canonical(rows)) > LARGEST_STATE:
        return f"it wants more than {LARGEST_STATE} characters to be kept for it"
    return upcoming


def request_key(request: ElicitationRequest) -> str:
    """Return the server's own key of a request."""
    return request.name.partition(".")[2]
