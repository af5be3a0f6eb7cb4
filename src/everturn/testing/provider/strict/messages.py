"""Anthropic Messages validation: refuses the requests that it refuses, with its messages: fields, and the form of
messages.

`tools` checks tools, `blocks` single blocks, `pairs` how blocks belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.testing.provider.faults import Refused, is_json_integer, is_list, is_object
from everturn.testing.provider.strict.blocks import check_assistant_block, check_user_block
from everturn.testing.provider.strict.pairs import RoleGroup, check_no_thinking, check_pairs, check_thinking_first
from everturn.testing.provider.strict.schemas import check_anthropic_schema
from everturn.testing.provider.strict.server_blocks import check_server_pairs
from everturn.testing.provider.strict.tools import check_tool_choice, check_tools, is_thinking

FIELDS = frozenset(
    "cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model "
    "output_config output_format service_tier speed stop_sequences stream system temperature thinking tool_choice "
    "tools top_k top_p".split()
)
_MIN_BUDGET = 1024
_MAX_CACHE_MARKS = 4


def check_anthropic(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Raise `Refused` for a request that the real one would refuse."""
    check_version(headers)
    check_fields(body)
    check_max_tokens(body)
    check_system(body)
    check_tools(body)
    check_tool_choice(body)
    check_thinking(body)
    check_output(body)
    turns = check_messages(body)
    check_pairs(turns)
    check_server_pairs(body, turns)
    check_tools_given(body, turns)
    if is_thinking(body):
        check_thinking_first(turns)
    else:
        check_no_thinking(turns)
    check_last(body, turns)
    check_cache_marks(body, turns)


def check_version(headers: Mapping[str, str]) -> None:
    """The version of the API is a header, and it is not optional."""
    if not headers.get("anthropic-version"):
        raise Refused("anthropic-version: header is required")


def check_fields(body: dict[str, Any]) -> None:
    """Every top-level field is documented; and, our own rule, the answer is streamed."""
    for name in body:
        if name not in FIELDS:
            raise Refused(f"{name}: Extra inputs are not permitted")
    if body.get("stream") is not True:
        raise Refused("stream: Input should be true (this provider always streams)")


def check_max_tokens(body: dict[str, Any]) -> None:
    """The limit is required."""
    limit = body.get("max_tokens")
    if limit is None:
        raise Refused("max_tokens: Field required")
    if not is_json_integer(limit):
        raise Refused("max_tokens: Input should be a valid integer")
    if limit < 1:
        raise Refused("max_tokens: Input should be greater than or equal to 1")


def check_system(body: dict[str, Any]) -> None:
    """The system prompt is a string or text blocks that are not empty."""
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    if not is_list(system):
        raise Refused("system: Input should be a valid string or list")
    for i, block in enumerate(system):
        if not is_object(block) or block.get("type") != "text":
            raise Refused(f"system.{i}.type: Input should be 'text'")
        text = block.get("text")
        if not isinstance(text, str):
            raise Refused(f"system.{i}.text: Field required")
        if not text and block.get("cache_control"):
            raise Refused(f"system.{i}: cache_control cannot be set for empty text blocks")
        if not text:
            raise Refused("system: text content blocks must be non-empty")


def check_thinking(body: dict[str, Any]) -> None:
    """Thinking has a budget below the limit, or none at all, and one temperature."""
    wanted = body.get("thinking")
    if wanted is None:
        return
    kind = wanted.get("type") if is_object(wanted) else None
    if kind not in ("enabled", "adaptive", "disabled"):
        tags = "'adaptive', 'disabled', 'enabled'"
        raise Refused(f"thinking: Input tag found using 'type' does not match any of the expected tags: {tags}")
    if kind == "enabled":
        budget = wanted.get("budget_tokens")
        if not is_json_integer(budget):
            raise Refused("thinking.enabled.budget_tokens: Field required")
        if budget < _MIN_BUDGET:
            raise Refused(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_MIN_BUDGET}")
        if budget >= body["max_tokens"]:
            raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if kind != "disabled" and body.get("temperature") not in (None, 1):
        raise Refused("`temperature` may only be set to 1 when thinking is enabled.")


def check_output(body: dict[str, Any]) -> None:
    """The format of the output is JSON of a schema in the documented subset."""
    config = body.get("output_config")
    wanted = config.get("format") if is_object(config) else None
    if wanted is None:
        return
    if not is_object(wanted) or wanted.get("type") != "json_schema":
        raise Refused("output_config.format.type: Input should be 'json_schema'")
    if not is_object(wanted.get("schema")):
        raise Refused("output_config.format.schema: Field required")
    check_anthropic_schema(wanted["schema"])


def check_messages(body: dict[str, Any]) -> list[RoleGroup]:
    """Messages have two roles and content; neighbours of one role are merged into one turn."""
    messages = body.get("messages")
    if messages is None:
        raise Refused("messages: Field required")
    if not is_list(messages) or not messages:
        raise Refused("messages: at least one message is required")
    model: str = body["model"]
    turns: list[RoleGroup] = []
    for i, message in enumerate(messages):
        role = message.get("role") if is_object(message) else None
        if role not in ("user", "assistant"):
            raise _unknown_role(i, role)
        blocks = _blocks(i, message.get("content"))
        check = check_user_block if role == "user" else check_assistant_block
        for path, block in blocks:
            check(path, block, model)
        if turns and turns[-1].role == role:
            turns[-1].blocks.extend(blocks)
        else:
            turns.append(RoleGroup(role, i, blocks))
    if turns[0].role != "user":
        raise Refused('messages: first message must use the "user" role')
    return turns


def _unknown_role(i: int, role: Any) -> Refused:
    if role == "system":
        return Refused(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    return Refused(f"messages.{i}.role: Input should be 'user' or 'assistant'")


def _blocks(i: int, content: Any) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(content, str):
        if not content:
            raise _empty(i)
        return [(f"messages.{i}.content", {"type": "text", "text": content})]
    if content is None:
        raise Refused(f"messages.{i}.content: Field required")
    if not is_list(content):
        raise Refused(f"messages.{i}.content: Input should be a valid list")
    if not content:
        raise _empty(i)
    for k, block in enumerate(content):
        if not is_object(block) or not isinstance(block.get("type"), str):
            raise Refused(f"messages.{i}.content.{k}: Unable to extract tag using discriminator 'type'")
    return [(f"messages.{i}.content.{k}", block) for k, block in enumerate(content)]


def _empty(i: int) -> Refused:
    text = "all messages must have non-empty content except for the optional final assistant message"
    return Refused(f"messages.{i}: {text}")


def check_tools_given(body: dict[str, Any], turns: list[RoleGroup]) -> None:
    """A conversation with calls lists its tools."""
    if not body.get("tools") and any(
        block["type"] in ("tool_use", "tool_result") for turn in turns for _, block in turn.blocks
    ):
        raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools")


def check_last(body: dict[str, Any], turns: list[RoleGroup]) -> None:
    """The last message is the user's, or one that was paused; where a prefill is allowed, it does not end with whitespace."""
    if turns[-1].role == "user" or any(block["type"] == "server_tool_use" for _, block in turns[-1].blocks):
        return
    if not body["model"].startswith("prefill-"):
        raise Refused(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    text = turns[-1].blocks[-1][1].get("text", "")
    if text != text.rstrip():
        raise Refused("messages: final assistant content cannot end with trailing whitespace")


def check_cache_marks(body: dict[str, Any], turns: list[RoleGroup]) -> None:
    """A request has at most four cache breakpoints."""
    system = body.get("system")
    marked = [block for turn in turns for _, block in turn.blocks]
    marked += [*(system if is_list(system) else ()), *(body.get("tools") or ())]
    count = sum("cache_control" in block and block["cache_control"] is not None for block in (*marked, body))
    if count > _MAX_CACHE_MARKS:
        text = f"A maximum of {_MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {count}."
        raise Refused(text)
