"""Messages of a turn as messages of Inspect: what `inspect view` shows of a sample."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from everturn.core.canonical_json import parse_object
from everturn.core.events import CallFinished, StepFinished, TurnStarted
from everturn.core.parts import ReasoningPart, TextPart, ToolPart, Usage
from everturn.evals.bridges.runs import missing_library
from everturn.evals.trajectory import collect_calls
from everturn.replay.recording import Recording

EXTRA: Final = "inspect"
try:
    _model: Any = import_module("inspect_ai.model")
    _tool: Any = import_module("inspect_ai.tool")
except ImportError as error:
    raise missing_library("inspect_ai", EXTRA, error) from None

ERRORS: Final = {"denied": "approval", "cancelled": "cancelled", "timed_out": "timeout"}
"""State of a finished call → type of the error of its message; any other state but `completed` is `unknown`."""

DIVERGENT: Final = "divergent: the recording does not have this call, so the run ended here and the tool did not run"


def to_messages(recording: Recording, divergent: str = "") -> list[Any]:
    """Return the messages of a recording: instructions, questions, answers with their calls, and results.

    `divergent` is the call that ended the run, as a text. Its log says that it was stopped; its tool was never started.
    """
    messages: list[Any] = []
    stopped = {call.call for call in collect_calls(recording.events) if str(call) == divergent}
    names: dict[str, str] = {}  # call -> tool
    system = ""
    for event in recording.events:
        match event:
            case TurnStarted(input=question, options=options):
                if options.system and options.system != system:
                    system = options.system
                    messages.append(_model.ChatMessageSystem(content=system))
                if question is not None:
                    messages.append(_model.ChatMessageUser(content=question.text))
            case StepFinished(parts=parts):
                calls = [part for part in parts if isinstance(part, ToolPart)]
                names |= {part.call: part.name for part in calls}
                messages.append(_answer(parts, calls))
            case CallFinished(call=call) if call in names:
                messages.append(_result(event, names[call], call in stopped and event.state != "completed"))
            case _:
                pass
    return messages


def _answer(parts: Any, calls: list[ToolPart]) -> Any:
    content: list[Any] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append(_model.ContentText(text=part.text))
        elif isinstance(part, ReasoningPart):
            content.append(_model.ContentReasoning(reasoning=part.text))
    return _model.ChatMessageAssistant(content=content or "", tool_calls=[_call(part) for part in calls] or None)


def _call(part: ToolPart) -> Any:
    arguments = parse_object(part.arguments)
    error = None if arguments is not None else f"the arguments are not a JSON object: {part.arguments}"
    return _tool.ToolCall(id=part.call, function=part.name, arguments=arguments or {}, parse_error=error)


def _result(event: CallFinished, tool: str, is_divergent: bool) -> Any:
    error = None
    if is_divergent:
        error = _tool.ToolCallError("unknown", DIVERGENT)
    elif event.state != "completed":
        error = _tool.ToolCallError(ERRORS.get(event.state, "unknown"), event.output.text or event.state)
    content = "" if is_divergent else event.output.text
    return _model.ChatMessageTool(content=content, tool_call_id=event.call, function=tool, error=error)


def short_conversation(question: str, answer: str) -> list[Any]:
    """Return the messages of a sample whose log is not known: the question, and the answer if there is one."""
    messages = [_model.ChatMessageUser(content=question)]
    return [*messages, _model.ChatMessageAssistant(content=answer)] if answer else messages


def to_output(text: str, model: str, usage: Usage | None = None) -> Any:
    """Return an answer, with its token usage."""
    output = _model.ModelOutput.from_content(model, text)
    output.usage = None if usage is None else _to_usage(usage)
    return output


def _to_usage(usage: Usage) -> Any:
    """Return token usage as Inspect counts it: its input tokens are those that no cache had."""
    return _model.ModelUsage(
        input_tokens=max(usage.input - usage.cached - usage.written, 0),
        output_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        input_tokens_cache_read=usage.cached or None,
        input_tokens_cache_write=usage.written or None,
        reasoning_tokens=usage.reasoning or None,
        total_cost=usage.cost,
    )
