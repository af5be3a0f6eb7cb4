"""Validation by family: refuses what only some models behind the chat format refuse; the prefix of a model's name
decides.

- mistral-…: ids of nine letters and digits, no user message after a tool message, fields of its own
- deepseek-…, kimi-…: reasoning is sent back with the calls it led to; no output schemas, no forced calls
- o-…, gpt-5…: max_completion_tokens, and no temperature
- alternate-…: a local chat template: user and assistant alternate; a schema becomes a grammar
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from everturn.testing.provider.faults import Refused, is_object
from everturn.testing.provider.strict.schemas import broken, check_grammar_schema

_NONE: frozenset[str] = frozenset()
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_KIMI_ID = re.compile(r"functions\.[A-Za-z0-9_-]+:\d+")

_FIELDS = {
    "mistral-": frozenset({"random_seed", "safe_prompt", "prompt_mode"}),
    "deepseek-": frozenset({"thinking"}),
    "kimi-": frozenset({"thinking"}),
    "alternate-": frozenset({"top_k", "min_p", "repetition_penalty", "chat_template_kwargs", "grammar"}),
}


def fields_of_family(model: str) -> frozenset[str]:
    """Fields besides OpenAI's that a family accepts."""
    return next((fields for prefix, fields in _FIELDS.items() if model.startswith(prefix)), _NONE)


def check_family(model: str, body: dict[str, Any]) -> None:
    """Raise `Refused` for what this family would refuse; the messages are well-formed already."""
    for prefix, rules in _RULES.items():
        if model.startswith(prefix):
            for rule in rules:
                rule(body)


def _calls(body: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The messages that make calls, with their index."""
    return [(i, message) for i, message in enumerate(body["messages"]) if message.get("tool_calls")]


def check_mistral_fields(body: dict[str, Any]) -> None:
    """Mistral has neither of these."""
    for name in ("stream_options", "max_completion_tokens"):
        if name in body:
            raise Refused(f"body.{name}: Extra inputs are not permitted", code="3051")


def check_mistral_ids(body: dict[str, Any]) -> None:
    """Mistral's ids have nine letters and digits."""
    for _, message in _calls(body):
        for call in message["tool_calls"]:
            if not _MISTRAL_ID.fullmatch(call["id"]):
                text = f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
                raise Refused(text, code="3280", kind="invalid_function_call")


def check_mistral_order(body: dict[str, Any]) -> None:
    """With Mistral the assistant follows a tool message, and the last message is not the assistant's."""
    messages = body["messages"]
    for before, message in itertools.pairwise(messages):
        if before["role"] == "tool" and message["role"] == "user":
            raise _bad_order("Unexpected role 'user' after role 'tool'")
    last = messages[-1]
    if last["role"] not in ("user", "tool") and last.get("prefix") is not True:
        text = f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {last['role']}"
        raise _bad_order(text)


def _bad_order(text: str) -> Refused:
    return Refused(text, code="3230", kind="invalid_request_message_order")


def check_deepseek_reasoning(body: dict[str, Any]) -> None:
    """DeepSeek requires its reasoning back with the calls, if only as an empty string."""
    for i, message in _calls(body):
        if not isinstance(message.get("reasoning_content"), str):
            text = (
                f"Missing `reasoning_content` field in the assistant message at message index {i}. For more "
                "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
            )
            raise Refused(text)


def check_kimi_reasoning(body: dict[str, Any]) -> None:
    """Kimi requires its reasoning back with the calls, and not an empty string."""
    for i, message in _calls(body):
        if not (isinstance(message.get("reasoning_content"), str) and message["reasoning_content"]):
            text = f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {i}"
            raise Refused(text)


def check_kimi_ids(body: dict[str, Any]) -> None:
    """Kimi's ids name the function and count."""
    for _, message in _calls(body):
        for call in message["tool_calls"]:
            if not _KIMI_ID.fullmatch(call["id"]):
                raise Refused(f"Invalid request: tool_call_id {call['id']} is not of the form functions.name:index")


def check_deepseek_format(body: dict[str, Any]) -> None:
    """DeepSeek has a JSON mode, and enforces no schema."""
    if is_object(wanted := body.get("response_format")) and wanted.get("type") == "json_schema":
        raise broken("deepseek.no-schema", "This response_format type is unavailable now")


def check_kimi_choice(body: dict[str, Any]) -> None:
    """Kimi forces no call while it thinks."""
    choice = body.get("tool_choice")
    if choice not in (None, "auto", "none"):
        raise broken("kimi.forced-call", f"tool_choice '{choice}' is incompatible with thinking enabled")


def check_grammar_format(body: dict[str, Any]) -> None:
    """llama.cpp converts a schema into a grammar."""
    if is_object(wanted := body.get("response_format")) and wanted.get("type") == "json_schema":
        check_grammar_schema(wanted["json_schema"]["schema"])


def check_reasoning_limit(body: dict[str, Any]) -> None:
    """Reasoning models count their reasoning too, under another name."""
    if body.get("max_tokens") is not None:
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        raise Refused(text, "max_tokens", "unsupported_parameter")


def check_reasoning_temperature(body: dict[str, Any]) -> None:
    """Reasoning models have one temperature."""
    temperature = body.get("temperature")
    if temperature is not None and temperature != 1:
        text = (
            f"Unsupported value: 'temperature' does not support {temperature} with this model. "
            "Only the default (1) value is supported."
        )
        raise Refused(text, "temperature", "unsupported_value")


def check_alternation(body: dict[str, Any]) -> None:
    """A chat template requires that user and assistant alternate; results are on the assistant's side."""
    before = "assistant"
    messages = body["messages"]
    for message in messages[messages[0]["role"] == "system" :]:
        role = message["role"]
        expected = {"assistant": ("user", "tool"), "tool": ("user", "tool", "assistant"), "user": ("assistant",)}
        if role not in expected[before]:
            raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")
        before = role


_Rule = Callable[[dict[str, Any]], None]
_REASONING: tuple[_Rule, ...] = (check_reasoning_limit, check_reasoning_temperature)
_RULES: dict[str, tuple[_Rule, ...]] = {
    "mistral-": (check_mistral_fields, check_mistral_ids, check_mistral_order),
    "deepseek-": (check_deepseek_reasoning, check_deepseek_format),
    "kimi-": (check_kimi_reasoning, check_kimi_ids, check_kimi_choice),
    "o-": _REASONING,
    "gpt-5": _REASONING,
    "alternate-": (check_alternation, check_grammar_format),
}
