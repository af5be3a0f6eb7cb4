"""Chat Completions encoder: a turn as OpenAI chunks, or as one whole completion. Tools that run on the server are not shown.

It has text, `reasoning_content`, and the calls that the client is to run. It has no approvals: while a gate waits for a
person in another client, the stream stays open until the caller of the encoder gives up. Then it ends like a complete
answer, with an `everturn` object that names the gates.
"""

from __future__ import annotations

from typing import Any, Final

from everturn.core.deltas import Delta, ReasoningDelta, TextDelta, TurnItem
from everturn.core.events import (
    AgentSwitched,
    AnswerStarted,
    Event,
    OutputRejected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gates import Gate
from everturn.core.parts import Usage
from everturn.protocols.openai_common import TurnSegments, call_name, everturn_object
from everturn.protocols.sse_frames import DONE, encode_frame

BETWEEN_STEPS: Final = "\n\n"
_REASONS: Final = {"length": "length", "content_filter": "content_filter"}


class ChatCompletionsEncoder:
    """Encodes one completion: a segment of a turn. `text` is what the client has of it, and `calls` what it is to run."""

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
        self.is_waiting = False  # for a person to answer a gate in another client
        self.failure = ""  # the error, if there is no answer
        self.message = ""  # the id of the answer
        self.calls: list[Gate] = []
        self.usage = Usage()
        self.segments = TurnSegments(segment, only_clients=True)
        self._session, self._turn, self._with_usage, self._is_stream = session, turn, with_usage, is_stream
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._before = (0, 0)  # number of texts and thoughts before this step
        self._holds_text = False  # until its step is finished
        self._needs_separator = False  # the next text belongs to another step
        self._continues = False  # the text of the next step belongs to that of the last one
        self._reason = "stop"
        self._head: dict[str, Any] = {"id": f"chatcmpl-{turn}-{segment}", "created": int(created), "model": model}

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def call_names(self) -> list[str]:
        """The ids of the calls that the client is to run."""
        return [call_name(self._session, gate) for gate in self.calls]

    # Streamed ----------------------------------------------------------------------------------------------------

    def begin(self) -> bytes:
        """The first chunk, with the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def feed(self, shown: TurnItem) -> bytes:
        """Encode text and reasoning as they arrive, and the finish reason at the end."""
        if isinstance(shown, TextDelta | ReasoningDelta):
            return self._delta(shown) if self.segments.is_mine(shown) else b""
        if isinstance(shown, TurnStarted | AgentSwitched):
            # A typed output may be rejected, and streamed text cannot be taken back in this protocol.
            is_typed = shown.options.needs_agent and "output_schema" in (shown.options.params or {})
            self._holds_text = self._is_stream and is_typed
        if not isinstance(shown, Event):
            return b""  # the arguments of a call, and progress: tools that run on the server are not shown
        if not self.segments.apply(shown):
            if isinstance(shown, AnswerStarted):
                self.message = shown.message.id
            return b""
        return self._event(shown)

    def end(self, why: str) -> bytes:
        """Nothing more; or an error, so that a client does not take a partial answer for a whole one."""
        if self.is_done:
            return b""
        if why == "over":  # the turn was cancelled before it began
            return self._finish()
        self.is_done = True
        return self._error_chunk(
            f"the stream was cut short ({why}); the turn goes on: see session {self._session}", why
        )

    def give_up(self) -> bytes:
        """End although the gate was not answered."""
        return self._finish()

    # Whole -------------------------------------------------------------------------------------------------------

    def whole(self) -> dict[str, Any]:
        """The completion, once the whole segment was fed."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None, "refusal": None}
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self.calls:
            message["tool_calls"] = [self._call(gate) for gate in self.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason()}
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": _usage(self.usage), "everturn": self._everturn_fields()}

    # -------------------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> bytes:
        if isinstance(delta, ReasoningDelta):
            self._thoughts.append(delta.text)
            return self._chunk({"reasoning_content": delta.text})
        text = BETWEEN_STEPS + delta.text if self._needs_separator else delta.text
        self._needs_separator = False
        self._texts.append(text)
        return b"" if self._holds_text else self._chunk({"content": text})

    def _event(self, event: Event) -> bytes:
        self.is_waiting = (
            isinstance(event, TurnSuspended) and bool(self.segments.open) and not self.segments.is_suspended
        )
        match event:
            case AnswerStarted(message=message):
                self.message, self._continues = message.id, False
            case StepStarted():
                self._before = (len(self._texts), len(self._thoughts))
                self._needs_separator = bool(self._texts) and not self._continues
            case StepRestarted() | OutputRejected():
                # Streamed text cannot be taken back in this protocol, so the client has it twice.
                if self._holds_text or not self._is_stream:
                    texts, thoughts = self._before
                    del self._texts[texts:], self._thoughts[thoughts:]
                self._needs_separator = bool(self._texts) and not self._continues
            case StepFinished(usage=usage, finish=finish) | StepInterrupted(usage=usage, finish=finish):
                self.usage += usage
                self._reason = _REASONS.get(finish, "stop")
                self._continues = isinstance(event, StepFinished) and event.continues
                if self._holds_text and (held := "".join(self._texts[self._before[0] :])):
                    return self._chunk({"content": held})
            case TurnSuspended() if self.segments.is_suspended:
                self.calls = self.segments.calls
                return self._finish()
            case TurnFailed(problem=problem):
                self.failure, self.is_done = problem.text, True
                return self._error_chunk(problem.text, problem.kind)
            case TurnCompleted() | TurnCancelled():
                return self._finish()
            case _:
                pass  # see UNSEEN in the tests: every event is either above or listed there
        return b""

    def _finish_reason(self) -> str:
        return "tool_calls" if self.calls else self._reason

    def _call(self, gate: Gate) -> dict[str, Any]:
        function = {"name": gate.tool, "arguments": gate.arguments}
        return {"id": call_name(self._session, gate), "type": "function", "function": function}

    def _everturn_fields(self) -> dict[str, Any]:
        return everturn_object(self._session, self._turn, self.segments.open if self.is_waiting else ())

    def _finish(self) -> bytes:
        self.is_done = True
        calls = [{"index": at, **self._call(gate)} for at, gate in enumerate(self.calls)]
        data = self._chunk({"tool_calls": calls}) if calls else b""
        data += self._chunk({}, self._finish_reason(), everturn=self._everturn_fields())
        if self._with_usage:
            head = {**self._head, "object": "chat.completion.chunk"}
            data += encode_frame({**head, "choices": [], "usage": _usage(self.usage)})
        return data + DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **also: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return encode_frame(
            {**self._head, "object": "chat.completion.chunk", "choices": [choice], "usage": None, **also}
        )

    def _error_chunk(self, text: str, code: str) -> bytes:
        error = {"message": text, "type": "server_error", "code": code, "param": None}
        return encode_frame({"error": error, "everturn": self._everturn_fields()})


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
