"""Anthropic Messages validation, server tools: refuses calls without results, changed results, and undeclared tools.

The fields are those of the `anthropic` package: `ServerToolUseBlockParam`, `WebSearchToolResultBlockParam` and the
others of `ContentBlockParam`, and of `ToolUnionParam` for declarations; `tests/models/test_provider_tool_types.py`
compares them. The rule of pairs is the API's answer in anthropic-sdk-python#961 and #1339.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.testing.provider.faults import Refused, is_json_integer, is_list, is_object
from everturn.testing.provider.server_tools import DECLARED_AS, is_own_id
from everturn.testing.provider.signatures import is_sealed
from everturn.testing.provider.strict.pairs import RoleGroup

_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
CALL_NAMES = (*DECLARED_AS, "tool_search_tool_bm25", "tool_search_tool_regex")
RESULTS = (
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
)
DECLARATIONS = (
    "bash_20250124",
    "browser_toolset_20260801",
    "code_execution_20250522",
    "code_execution_20250825",
    "code_execution_20260120",
    "code_execution_20260521",
    "computer_toolset_20260801",
    "memory_20250818",
    "text_editor_20250124",
    "text_editor_20250429",
    "text_editor_20250728",
    "tool_search_tool_bm25",
    "tool_search_tool_bm25_20251119",
    "tool_search_tool_regex",
    "tool_search_tool_regex_20251119",
    "web_fetch_20250910",
    "web_fetch_20260209",
    "web_fetch_20260309",
    "web_fetch_20260318",
    "web_search_20250305",
    "web_search_20260209",
    "web_search_20260318",
)


def check_declaration(path: str, tool: dict[str, Any]) -> None:
    """A tool that Anthropic runs has a known type, and the name of that type."""
    kind = str(tool.get("type"))
    if kind not in DECLARATIONS:
        raise Refused(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    name = next((name for name in ("web_search", "web_fetch", "code_execution") if kind.startswith(f"{name}_20")), "")
    if name and tool.get("name") != name:
        raise Refused(f"{path}.{kind}.name: Input should be '{name}'")


def check_server_call(path: str, block: dict[str, Any], model: str) -> None:
    """A call has a known name, and goes back as it came."""
    id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise Refused(f"{path}.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'")
    if name not in CALL_NAMES:
        raise Refused(f"{path}.server_tool_use.name: Input should be one of {', '.join(CALL_NAMES)}")
    if not is_object(arguments):
        raise Refused(f"{path}.server_tool_use.input: Input should be a valid dictionary")
    if not is_own_id(model, id, str(name), arguments):
        raise Refused(f"{path}: `server_tool_use` blocks cannot be modified (our own rule: its id signs its input)")


def check_server_result(path: str, block: dict[str, Any], model: str) -> None:
    """A result names its call and has the content of its kind; what was found is sealed."""
    kind, content = block["type"], block.get("content")
    if not isinstance(block.get("tool_use_id"), str):
        raise Refused(f"{path}.{kind}.tool_use_id: Field required")
    if content is None:
        raise Refused(f"{path}.{kind}.content: Field required")
    if is_object(content) and str(content.get("type", "")).endswith("_error"):
        if not isinstance(content.get("error_code"), str):
            raise Refused(f"{path}.{kind}.content.error_code: Field required")
        return
    if kind == "web_search_tool_result":
        for k, found in enumerate(content if is_list(content) else [None]):
            _check_search_result(f"{path}.{kind}.content.{k}", found, model)
    elif kind in ("code_execution_tool_result", "bash_code_execution_tool_result"):
        _check_code_result(f"{path}.{kind}.content", content)
    elif kind == "web_fetch_tool_result" and not (is_object(content) and isinstance(content.get("url"), str)):
        raise Refused(f"{path}.{kind}.content.url: Field required")


def _check_code_result(path: str, content: Any) -> None:
    if not is_object(content):
        raise Refused(f"{path}: Input should be a valid dictionary")
    for name in ("stdout", "stderr"):
        if not isinstance(content.get(name), str):
            raise Refused(f"{path}.{name}: Field required")
    if not is_json_integer(content.get("return_code")):
        raise Refused(f"{path}.return_code: Field required")


def _check_search_result(path: str, found: Any, model: str) -> None:
    if not is_object(found) or found.get("type") != "web_search_result":
        raise Refused(f"{path}.type: Input should be 'web_search_result'")
    for name in ("title", "url", "encrypted_content"):
        if not isinstance(found.get(name), str):
            raise Refused(f"{path}.{name}: Field required")
    if not is_sealed("web", model, found["encrypted_content"]):
        raise Refused(f"{path}: Invalid `encrypted_content` in `web_search_result` block")


def check_citations(path: str, block: dict[str, Any], model: str) -> None:
    """The citations of a text go back as they came."""
    citations = block.get("citations")
    if citations is None:
        return
    if not is_list(citations):
        raise Refused(f"{path}.text.citations: Input should be a valid list")
    for k, each in enumerate(citations):
        where = f"{path}.text.citations.{k}"
        if not is_object(each) or each.get("type") != "web_search_result_location":
            raise Refused(f"{where}: Input tag does not match any of the expected tags")
        if not isinstance(each.get("cited_text"), str) or not isinstance(each.get("url"), str):
            raise Refused(f"{where}.cited_text: Field required")
        if not is_sealed("idx", model, str(each.get("encrypted_index"))):
            raise Refused(f"{where}: Invalid `encrypted_index` in `citations`")


def check_server_pairs(body: dict[str, Any], turns: list[RoleGroup]) -> None:
    """Every call has its result in the same message, or in the next one behind nothing but results of other calls.

    In the last message a call may be open: the API continues there.
    """
    seen: set[str] = set()
    open_calls: dict[str, str] = {}
    for n, turn in enumerate(turns):
        if turn.role == "user":
            if open_calls and any(block["type"] != "tool_result" for _, block in turn.blocks):
                raise _unanswered(turns[n - 1].at, open_calls)
            continue
        before, open_calls = dict(open_calls), {}
        for path, block in turn.blocks:
            if block["type"] == "server_tool_use":
                _check_declared(path, block["name"], body)
                if block["id"] in seen:
                    raise Refused("messages: `server_tool_use` ids must be unique")
                seen.add(block["id"])
                open_calls[block["id"]] = block["name"]
            elif block["type"] in RESULTS:
                id = block["tool_use_id"]
                called = open_calls.pop(id, None) or before.pop(id, None)
                if called is None:
                    raise Refused(
                        f"{path}: unexpected `tool_use_id` found in `{block['type']}` blocks: {id}. Each "
                        f"`{block['type']}` block must have a corresponding `server_tool_use` block before it."
                    )
                if block["type"] != f"{called}_tool_result":
                    raise Refused(f"{path}: `{block['type']}` does not answer a call of {called}")
        if before:
            raise _unanswered(turn.at, before)


def _check_declared(path: str, name: str, body: dict[str, Any]) -> None:
    wanted = DECLARED_AS.get(name, name)
    tools = body.get("tools")
    if not any(is_object(tool) and tool.get("name") == wanted for tool in (tools if is_list(tools) else ())):
        raise Refused(f"{path}: `server_tool_use` of {name}, but the request does not declare {wanted}")


def _unanswered(at: int, calls: dict[str, str]) -> Refused:
    id, name = next(iter(calls.items()))
    return Refused(
        f"messages.{at}: `{name}` tool use with id `{id}` was found without a corresponding `{name}_tool_result` block"
    )
