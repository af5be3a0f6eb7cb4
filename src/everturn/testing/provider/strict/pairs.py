"""Anthropic Messages validation, pairs: refuses calls without their results, and calls without their thinking."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from everturn.testing.provider.faults import Refused

_THOUGHTS = ("thinking", "redacted_thinking")


class RoleGroup(Struct):
    """Neighbouring messages of one role; `at` is the index of the first, and every block knows its path."""

    role: str
    at: int
    blocks: list[tuple[str, dict[str, Any]]]


def check_pairs(turns: list[RoleGroup]) -> None:
    """Every call has its result at the beginning of the next message, and every result its call before it."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for n, turn in enumerate(turns):
        if turn.role == "user":
            _check_results(turns[n - 1].at if n else 0, turn, open_ids)
            open_ids = []
            continue
        if turn.blocks[-1][1]["type"] in ("thinking", "redacted_thinking"):
            raise Refused(f"messages.{turn.at}: The final block in an assistant message cannot be `thinking`.")
        open_ids = [block["id"] for _, block in turn.blocks if block["type"] == "tool_use"]
        for id in open_ids:
            if id in seen:
                raise Refused("messages: `tool_use` ids must be unique")
            seen.add(id)
    if open_ids:
        raise _unanswered(turns[-1].at, open_ids)


def _check_results(at: int, turn: RoleGroup, open_ids: list[str]) -> None:
    answered_ids: set[str] = set()
    in_front: set[str] = set()
    is_in_front = True
    for path, block in turn.blocks:
        if block["type"] != "tool_result":
            is_in_front = False
            continue
        id = block["tool_use_id"]
        if id in answered_ids:
            text = f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            raise Refused(text)
        if id not in open_ids:
            text = f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
            raise Refused(
                text + "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        answered_ids.add(id)
        if is_in_front:
            in_front.add(id)
    unanswered = [id for id in open_ids if id not in in_front]
    if unanswered:
        raise _unanswered(at, unanswered)


def _unanswered(at: int, ids: list[str]) -> Refused:
    return Refused(
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def check_no_thinking(turns: list[RoleGroup]) -> None:
    """With thinking off, a turn that is still calling tools has none."""
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    is_open = last is not None and turns[-1].role == "user" and turns[-1].blocks[0][1]["type"] == "tool_result"
    if last is not None and is_open and any(block["type"] in _THOUGHTS for _, block in last.blocks):
        raise Refused(
            f"messages.{last.at}: When thinking is disabled, an `assistant` message in the final position cannot contain "
            "`thinking`. To use thinking blocks, enable `thinking` in your request."
        )


def check_thinking_first(turns: list[RoleGroup]) -> None:
    """With thinking on, a turn that is still calling tools begins with the thinking that led to it."""
    last_input = max(
        (n for n, t in enumerate(turns) if t.role == "user" and any(b["type"] != "tool_result" for _, b in t.blocks)),
        default=-1,
    )
    steps = [turn for turn in turns[last_input + 1 :] if turn.role == "assistant"]
    if not any(block["type"] == "tool_use" for turn in steps for _, block in turn.blocks):
        return
    path, first = steps[0].blocks[0]
    if first["type"] not in ("thinking", "redacted_thinking"):
        raise Refused(
            f"{path}.type: Expected `thinking` or `redacted_thinking`, but found `{first['type']}`. When `thinking` is "
            "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
            "`tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
            "avoid this requirement, disable `thinking`."
        )
