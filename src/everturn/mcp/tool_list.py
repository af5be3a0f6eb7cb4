"""MCP tool list: validates the tools that a server lists, limits their size, and gives them names that every provider
accepts. Pure.

One invalid tool does not affect the others: it is left out and reported. A server's statements about a tool are only
claims.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypedDict, cast

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, encode_canonical, replace_surrogates, replace_surrogates_in
from everturn.mcp.config import Annotation
from everturn.mcp.tasks import TaskSupport, read_task_support

MOST_TOOLS: Final = 500
LONGEST_NAME: Final = 128  # of a tool, as its server has it
LONGEST_DESCRIPTION: Final = 16_000
LARGEST_SCHEMA: Final = 100_000  # characters
LARGEST_LIST: Final = 1_000_000  # characters of the descriptions and schemas of all tools of a server
DEEPEST: Final = 40  # schemas within schemas
# Objects, lists and values. Validating one takes about half a millisecond, so they are counted first.
MOST_NODES: Final = 2_000  # of one schema
MOST_NODES_LISTED: Final = 20_000  # of all the schemas on a page of a list
FULL_NAME: Final = 64  # characters; every provider accepts these
RESERVED: Final = ("invalid", "doomloop", "loadskill", "readresult")  # names that the registry reserves
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


class ListedTool(Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: JsonObject
    annotations: JsonObject
    task_support: TaskSupport = "forbidden"


def read_tools(raw: Any) -> tuple[list[ListedTool], list[str]]:
    """Return the valid tools, and the problems of the others."""
    if not isinstance(raw, list):
        return [], ["its list of tools is no list"]
    tools: dict[str, ListedTool] = {}
    problems: list[str] = []
    rows = cast("list[Any]", raw)
    left = MOST_NODES_LISTED
    for at, row in enumerate(rows[:MOST_TOOLS]):
        if left <= 0:
            problems.append(f"its schemas have more than {MOST_NODES_LISTED} parts; those behind {at} were left out")
            break
        left -= count_nodes(row, MOST_NODES)
        tool = _read(row)
        if isinstance(tool, str):
            name = cast("dict[str, Any]", row).get("name") if isinstance(row, dict) else None
            problems.append(f"tool {str(name)[:LONGEST_NAME]!r}: {tool}" if name else f"tool number {at + 1}: {tool}")
        elif tool.name in tools:
            problems.append(f"tool {tool.name!r}: it is listed twice; the first is used")
        else:
            tools[tool.name] = tool
    if len(rows) > MOST_TOOLS:
        problems.append(f"it lists {len(rows)} tools; those behind the first {MOST_TOOLS} were left out")
    return list(tools.values()), problems


def limit_tools(tools: Sequence[ListedTool]) -> tuple[list[ListedTool], list[str]]:
    """Return as many tools as fit into a request to a model, over all pages; and a problem if some do not."""
    kept: list[ListedTool] = []
    size = 0
    for tool in tools[:MOST_TOOLS]:
        size += len(tool.description) + len(encode_canonical(tool.schema))
        if size > LARGEST_LIST:
            break
        kept.append(tool)
    if len(kept) == len(tools):
        return kept, []
    most = f"{MOST_TOOLS} tools and {LARGEST_LIST} characters"
    return kept, [f"it has more than {most} of descriptions and schemas; those behind {len(kept)} were left out"]


def _read(row: Any) -> ListedTool | str:
    if not isinstance(row, dict):
        return "it is no object"
    tool = cast("dict[str, Any]", row)
    name, schema = tool.get("name"), tool.get("inputSchema")
    description, annotations = tool.get("description") or "", tool.get("annotations")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        return f"its name is not one: a text of at most {LONGEST_NAME} characters that can be printed"
    if not isinstance(description, str):
        return "its description is no text"
    if trouble := find_schema_problem(schema):
        return trouble
    hints = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    kept = {key: value for key, value in hints.items() if isinstance(value, bool) or key == "title"}
    return ListedTool(
        replace_surrogates(name),
        replace_surrogates(description)[:LONGEST_DESCRIPTION],
        replace_surrogates_in(schema),
        replace_surrogates_in(kept),
        read_task_support(tool),
    )


def find_schema_problem(schema: Any) -> str:
    """Return why a schema cannot be sent to a model (a provider may refuse the whole request for it); "" if it can."""
    if not isinstance(schema, dict):
        return "it has no input schema"
    words = cast("dict[str, Any]", schema)
    if words.get("type") != "object":
        return "its input schema is not one of an object"
    if count_nodes(words, MOST_NODES) > MOST_NODES:
        return f"its input schema has more than {MOST_NODES} parts"
    if trouble := _shape_problem(words, words, DEEPEST):
        return trouble
    if len(encode_canonical(words)) > LARGEST_SCHEMA:
        return f"its input schema is longer than {LARGEST_SCHEMA} characters"
    return _metaschema_problem(words)


def count_nodes(schema: Any, most: int) -> int:
    """Count the values in a schema, itself included; stops at one more than `most`."""
    count, pending = 0, [schema]
    while pending and count <= most:
        node = pending.pop()
        count += 1
        children: Iterable[Any] = ()
        if isinstance(node, dict):
            children = cast("dict[str, Any]", node).values()
        elif isinstance(node, list):
            children = cast("list[Any]", node)
        pending.extend(islice(children, most + 1 - count))
    return count


def _shape_problem(node: Any, root: JsonObject, deep: int) -> str:
    if deep == 0:
        return "its input schema is too deep"
    children: Iterable[Any] = ()
    if isinstance(node, dict):
        words = cast("dict[str, Any]", node)
        ref = words.get("$ref")
        if isinstance(ref, str) and not _resolves(ref, root):
            return f"its input schema refers to {ref[:100]!r}, which is not in it"
        children = words.values()
    elif isinstance(node, list):
        children = cast("list[Any]", node)
    return next((trouble for child in children if (trouble := _shape_problem(child, root, deep - 1))), "")


def _resolves(ref: str, root: JsonObject) -> bool:
    if not ref.startswith("#"):
        return False
    if ref != "#" and not ref.startswith("#/"):
        return True  # an anchor, which the jsonschema library resolves
    current: Any = root
    for step in ref[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(current, dict) or step not in current:
            return False
        current = cast("dict[str, Any]", current)[step]
    return True


def _metaschema_problem(schema: JsonObject) -> str:
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"its input schema is invalid: {error.message[:200]}"
    except Exception as error:  # an invalid `$schema`
        return f"its input schema cannot be checked: {type(error).__name__}"
    return ""


class RepeatHints(TypedDict):
    """Fields of a `ToolSpec` that say what a repeated call does."""

    read_only: bool
    idempotent: bool


def repeat_hints(annotations: Mapping[str, Any], configured: Annotation | None) -> RepeatHints:
    """Return whether a call may be repeated: what the configuration says, else what the server's annotations claim."""
    if configured is not None:
        return RepeatHints(read_only=configured == "read_only", idempotent=configured == "idempotent")
    return RepeatHints(
        read_only=annotations.get("readOnlyHint") is True, idempotent=annotations.get("idempotentHint") is True
    )


def assign_tool_names(server: str, tools: Sequence[str], servers: Sequence[str]) -> dict[str, str]:
    """Return the names of a server's tools here: `server_tool`, with a hash appended where that is ambiguous or too
    long.

    The names depend on nothing but these arguments, so that a tool has the same name in every process.
    """
    prefixes = [_plain(other + "_") for other in servers if other != server]
    by_plain_name: dict[str, list[str]] = {}
    for tool in tools:
        by_plain_name.setdefault(_plain(tool), []).append(tool)
    names: dict[str, str] = {}
    for tool in tools:
        name = f"{server}_{_UNFIT.sub('_', tool)}"
        others = sorted(by_plain_name[_plain(tool)], key=lambda other: (bool(_UNFIT.search(other)), other))
        # Names of two servers may collide: `a` with `b_c` and `a_b` with `c`.
        is_ambiguous = any(_plain(name).startswith(prefix) for prefix in prefixes if len(prefix) >= len(_plain(server)))
        if others[0] != tool or is_ambiguous or _plain(name) in RESERVED or len(name) > FULL_NAME:
            suffix = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
            name = f"{name[: FULL_NAME - 9]}_{suffix}"
        names[tool] = name
    return names


def _plain(name: str) -> str:
    """Return a name as the registry compares it."""
    return _UNFIT.sub("", name).replace("-", "").replace("_", "").casefold()
