"""What a server asks in the middle of a call → a question to a person, and their verdict → the server's answer. Pure.

An address that it wants a person to open is shown to them, and opened by nobody else.
"""

from __future__ import annotations

from typing import Any, Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from everturn.core.asking import Verdict
from everturn.core.canonical import JsonObject, canonical, clean, clean_all, parse_object
from everturn.core.ports import Question, SubTurn
from everturn.mcp.listing import schema_trouble

MOST_QUESTIONS: Final = 8  # of one call
MOST_ROUNDS: Final = 10
LARGEST_STATE: Final = 200_000  # characters that are kept for a server
LONGEST: Final = 8000  # characters of a question
LONGEST_ADDRESS: Final = 2000  # characters that a person can still look at
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
DECLINED: Final[JsonObject] = {"action": "decline"}
NO_ROOTS: Final[JsonObject] = {"roots": []}


class Asked(Struct, frozen=True):
    """A request of a server, and the name by which its question is known again."""

    name: str
    method: str
    params: JsonObject


def question_of(server: str, asked: Asked) -> Question | None:
    """What a person is asked; None where there is nothing to ask, or it cannot be."""
    if asked.method == SAMPLE:
        turn = sub_turn_of(asked.params)
        if turn is None:
            return None
        system = f"\n\nWith the system prompt:\n{turn.system}" if turn.system else ""
        text = f"Server {server} asks for an answer of the model to this:\n{turn.prompt}{system}"
        return Question(_short(text), name=asked.name)
    if asked.method != ELICIT:
        return None
    message = asked.params.get("message")
    said = clean(message) if isinstance(message, str) else ""
    if asked.params.get("mode") == "url":
        url = asked.params.get("url")
        if not isinstance(url, str) or not _is_address(url):
            return None
        text = f"Server {server} asks you to open this address: {url}\n{said}\nAllow it once you have done so."
        return Question(_short(text), name=asked.name)
    schema = asked.params.get("requestedSchema")
    if schema_trouble(schema):
        return None
    return Question(_short(f"Server {server} asks: {said}"), schema=clean_all(schema), name=asked.name)


def _is_address(url: str) -> bool:
    """Whether a person can see where it leads: `https://bank.example@evil.example` does not lead to a bank."""
    if not url.startswith(("https://", "http://")) or not url.isprintable() or len(url) > LONGEST_ADDRESS:
        return False
    try:
        place = urlsplit(url).netloc
    except ValueError:
        return False
    return bool(place) and "@" not in place and "\\" not in url and " " not in url


def filled_in(asked: Asked, verdict: Verdict) -> JsonObject:
    """The answer to an elicitation."""
    if not verdict.allowed:
        return declined(verdict.reason)
    if asked.params.get("mode") == "url":
        return {"action": "accept"}
    content = parse_object(verdict.result) if verdict.result else {}
    if content is None or not all(_is_plain(value) for value in content.values()):
        return declined("the form was not filled in")
    return {"action": "accept", "content": content}


def declined(reason: str = "") -> JsonObject:
    """No, and why."""
    return {**DECLINED, "_meta": {"reason": reason}} if reason else DECLINED


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in cast("list[Any]", value))
    return value is None or isinstance(value, str | int | float | bool)


def sub_turn_of(params: JsonObject) -> SubTurn | None:
    """The turn that a server asks for: one step, and no tools. None if there is nothing in it to be read."""
    given = params.get("messages")
    lines: list[str] = []
    for message in cast("list[Any]", given) if isinstance(given, list) else []:
        row = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        content = row.get("content")
        for block in cast("list[Any]", content) if isinstance(content, list) else [content]:
            text = cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else None
            if isinstance(text, str):
                lines.append(text if row.get("role") == "user" else f"{row.get('role')}: {text}")
    prompt, system = "\n\n".join(lines), params.get("systemPrompt")
    if not prompt.strip() or len(prompt) > LONGEST - 1000:  # what cannot be shown as a whole is not asked for
        return None
    said = clean(system) if isinstance(system, str) else ""
    return None if len(said) > 500 else SubTurn(clean(prompt), system=said, tools=(), max_steps=1)


def sampled(text: str) -> JsonObject:
    """What the model said, as a server is told."""
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "everturn",
        "stopReason": "endTurn",
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


# Rounds: what is kept of a call while a person is asked ----------------------------------------------------------


class Round(Struct, frozen=True, omit_defaults=True):
    """A call that waits for answers: everything that is needed to go on with it, in another process if need be."""

    number: int
    state: str | None = None
    requests: tuple[Asked, ...] = ()
    refused: tuple[str, ...] = ()  # keys that are answered with no
    asked: int = 0  # questions of the rounds before it
    is_sent: bool = False  # the answers are on their way


def next_round(result: JsonObject, before: Round | None) -> Round | str:
    """What a server wants to know before it goes on; a text says why it is not told."""
    number = 1 if before is None else before.number + 1
    asked = 0 if before is None else before.asked + len(before.requests)
    if number > MOST_ROUNDS:
        return f"it asked {MOST_ROUNDS} times over, and is answered no more"
    state, given = result.get("requestState"), result.get("inputRequests")
    rows = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    requests: list[Asked] = []
    refused: list[str] = []
    for key, row in rows.items():
        request = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        method, params = request.get("method"), request.get("params")
        plain = cast("JsonObject", params) if isinstance(params, dict) else {}
        is_too_much = asked + len(requests) >= MOST_QUESTIONS
        if method == ELICIT and is_too_much:
            refused.append(key)
        elif method == SAMPLE and is_too_much:
            return f"it asks more than {MOST_QUESTIONS} questions"
        elif method in (ELICIT, SAMPLE, ROOTS):
            requests.append(Asked(f"r{number}.{key}", cast("str", method), plain))
        else:
            return f"it asks for {str(method)[:50]!r}, which nobody here can do"
    if len(requests) > 2 * MOST_QUESTIONS:
        return "it asks for too much at once"
    if not isinstance(state, str | None) or (state is None and not rows):
        return "it asks for nothing, and does not go on"
    found = Round(number, state, tuple(requests), tuple(refused[:1000]), asked)
    if len(state or "") + len(canonical(rows)) > LARGEST_STATE:
        return f"it wants more than {LARGEST_STATE} characters to be kept for it"
    return found


def key_of(asked: Asked) -> str:
    """The server's own key of a request."""
    return asked.name.partition(".")[2]
