"""A turn → OpenAI Chat Completions: chunks for a stream, or one whole answer. Tools that run here are not seen in it.

It has text, `reasoning_content`, and the calls that the client is to do. It has no approval: while a person is asked
elsewhere the stream stays open, until whoever drives the encoder gives up. Then it ends as if the answer had, with an
`everturn` object that names the gates.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everturn.core.asking import Gate
from everturn.core.deltas import Delta, ReasoningDelta, Shown, TextDelta
from everturn.core.events import (
    AnswerOpened,
    Event,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnParked,
)
from everturn.core.parts import Usage
from everturn.protocols.openai import Segments, call_name, told_of

DONE: Final = b"data: [DONE]\n\n"
BETWEEN_STEPS: Final = "\n\n"
_REASONS: Final = {"length": "length", "content_filter": "content_filter"}


class Completions:
    """One answer: a segment of a turn. `text` is what the client has of it, and `calls` what it is to do."""

    def __init__(
        self,
        session: str,
        turn: str,
        model: str,
        created: float,
        *,
        segment: int = 0,
        with_usage: bool = False,
        is_stream: bool = True,
    ) -> None:
        self.is_done = False
        self.is_waiting = False  # for a person, who is asked elsewhere
        self.failure = ""  # why there is no answer
        self.message = ""  # the answer, by the id that it has here
        self.calls: list[Gate] = []
        self.usage = Usage()
        self.segments = Segments(segment, only_clients=True)
        self._session, self._turn, self._with_usage, self._is_stream = session, turn, with_usage, is_stream
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._before = (0, 0)  # how many texts and thoughts there were before this step
        self._is_apart = False  # the next text is that of another step
        self._reason = "stop"
        self._head: dict[str, Any] = {"id": f"chatcmpl-{turn}-{segment}", "created": int(created), "model": model}

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self._texts)

    @property
    def call_names(self) -> list[str]:
        """The ids of the calls that the client is to do."""
        return [call_name(self._session, gate) for gate in self.calls]

    # As a stream -------------------------------------------------------------------------------------------------

    def begin(self) -> bytes:
        """The role."""
        return self._chunk({"role": "assistant", "content": ""})

    def feed(self, shown: Shown) -> bytes:
        """Text and reasoning as they come; at the end, the reason for it."""
        if isinstance(shown, TextDelta | ReasoningDelta):
            return self._delta(shown) if self.segments.is_mine(shown) else b""
        if not isinstance(shown, Event):
            return b""  # the arguments of a call, and progress: what runs here is not seen
        if not self.segments.take(shown):
            if isinstance(shown, AnswerOpened):
                self.message = shown.message.id
            return b""
        return self._event(shown)

    def end(self, why: str) -> bytes:
        """Nothing more; or an error, so that nobody takes a piece for the whole."""
        if self.is_done:
            return b""
        if why == "over":  # it was cancelled before it began
            return self._finish()
        self.is_done = True
        return self._broken(f"the stream was cut short ({why}); the turn goes on: see session {self._session}", why)

    def give_up(self) -> bytes:
        """End although a person has not answered yet."""
        return self._finish()

    # As a whole --------------------------------------------------------------------------------------------------

    def whole(self) -> dict[str, Any]:
        """The answer, once all of it was fed."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None, "refusal": None}
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self.calls:
            message["tool_calls"] = [self._call(gate) for gate in self.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._why()}
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": _usage(self.usage), "everturn": self._told()}

    # -------------------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> bytes:
        if isinstance(delta, ReasoningDelta):
            self._thoughts.append(delta.text)
            return self._chunk({"reasoning_content": delta.text})
        text = BETWEEN_STEPS + delta.text if self._is_apart else delta.text
        self._is_apart = False
        self._texts.append(text)
        return self._chunk({"content": text})

    def _event(self, event: Event) -> bytes:
        self.is_waiting = isinstance(event, TurnParked) and bool(self.segments.open) and not self.segments.is_parked
        match event:
            case AnswerOpened(message=message):
                self.message = message.id
            case StepStarted():
                self._before = (len(self._texts), len(self._thoughts))
                self._is_apart = bool(self._texts)
            case StepRestarted():
                if (
                    not self._is_stream
                ):  # what was streamed cannot be taken back in this protocol: it stands there twice
                    said, thought = self._before
                    del self._texts[said:], self._thoughts[thought:]
                self._is_apart = bool(self._texts)
            case StepFinished(usage=usage, finish=finish) | StepInterrupted(usage=usage, finish=finish):
                self.usage += usage
                self._reason = _REASONS.get(finish, "stop")
            case TurnParked() if self.segments.is_parked:
                self.calls = self.segments.calls
                return self._finish()
            case TurnFailed(problem=problem):
                self.failure, self.is_done = problem.text, True
                return self._broken(problem.text, problem.kind)
            case TurnCompleted() | TurnCancelled():
                return self._finish()
            case _:
                pass  # see UNSEEN in the tests: every event is either above or told not to be seen here
        return b""

    def _why(self) -> str:
        return "tool_calls" if self.calls else self._reason

    def _call(self, gate: Gate) -> dict[str, Any]:
        function = {"name": gate.tool, "arguments": gate.arguments}
        return {"id": call_name(self._session, gate), "type": "function", "function": function}

    def _told(self) -> dict[str, Any]:
        return told_of(self._session, self._turn, self.segments.open if self.is_waiting else ())

    def _finish(self) -> bytes:
        self.is_done = True
        calls = [{"index": at, **self._call(gate)} for at, gate in enumerate(self.calls)]
        said = self._chunk({"tool_calls": calls}) if calls else b""
        said += self._chunk({}, self._why(), everturn=self._told())
        if self._with_usage:
            head = {**self._head, "object": "chat.completion.chunk"}
            said += _data({**head, "choices": [], "usage": _usage(self.usage)})
        return said + DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **also: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**self._head, "object": "chat.completion.chunk", "choices": [choice], "usage": None, **also})

    def _broken(self, text: str, code: str) -> bytes:
        error = {"message": text, "type": "server_error", "code": code, "param": None}
        return _data({"error": error, "everturn": self._told()})


def _data(body: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(body)


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
