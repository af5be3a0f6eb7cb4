"""What a server lists → tools that a model can be told of, under names that every provider takes. Pure.

One bad tool harms no other: it is left out, and said to be. What a server claims of a tool is a claim.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from msgspec import Struct

from everturn.core.canonical import JsonObject, canonical, clean, clean_all
from everturn.core.events import Effects

MOST_TOOLS: Final = 500
LONGEST_NAME: Final = 128  # of a tool, as its server has it
LONGEST_DESCRIPTION: Final = 16_000
LARGEST_SCHEMA: Final = 100_000  # characters
LARGEST_LIST: Final = 1_000_000  # characters of what all tools of a server say of themselves
DEEPEST: Final = 40  # schemas within schemas
# Objects, lists and values. To check one takes about half a millisecond, so they are counted before any is checked.
MOST_NODES: Final = 2_000  # of one schema
MOST_NODES_LISTED: Final = 20_000  # of all the schemas on a page of a list
FULL_NAME: Final = 64  # what every provider takes
RESERVED: Final = ("invalid", "doomloop", "loadskill", "readresult")  # what the registry keeps for itself
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


class Listed(Struct, frozen=True):
    """A tool as its server tells of it."""

    name: str
    description: str
    schema: JsonObject
    annotations: JsonObject


def read_tools(raw: Any) -> tuple[list[Listed], list[str]]:
    """The tools that make sense, and what is wrong with the others."""
    if not isinstance(raw, list):
        return [], ["its list of tools is no list"]
    tools: dict[str, Listed] = {}
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


def bounded(tools: Sequence[Listed]) -> tuple[list[Listed], list[str]]:
    """As many as fit into a request to a model, of all pages together; and how many do not."""
    kept: list[Listed] = []
    size = 0
    for tool in tools[:MOST_TOOLS]:
        size += len(tool.description) + len(canonical(tool.schema))
        if size > LARGEST_LIST:
            break
        kept.append(tool)
    if len(kept) == len(tools):
        return kept, []
    most = f"{MOST_TOOLS} tools and {LARGEST_LIST} characters"
    return kept, [f"it has more than {most} of descriptions and schemas; those behind {len(kept)} were left out"]


def _read(row: Any) -> Listed | str:
    if not isinstance(row, dict):
        return "it is no object"
    tool = cast("dict[str, Any]", row)
    name, schema = tool.get("name"), tool.get("inputSchema")
    description, annotations = tool.get("description") or "", tool.get("annotations")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        return f"its name is not one: a text of at most {LONGEST_NAME} characters that can be printed"
    if not isinstance(description, str):
        return "its description is no text"
    if trouble := schema_trouble(schema):
        return trouble
    hints = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    kept = {key: value for key, value in hints.items() if isinstance(value, bool) or key == "title"}
    return Listed(clean(name), clean(description)[:LONGEST_DESCRIPTION], clean_all(schema), clean_all(kept))


def schema_trouble(schema: Any) -> str:
    """Why a schema cannot be shown to a model, for which a provider may refuse the whole request; "" if it can."""
    if not isinstance(schema, dict):
        return "it has no input schema"
    words = cast("dict[str, Any]", schema)
    if words.get("type") != "object":
        return "its input schema is not one of an object"
    if count_nodes(words, MOST_NODES) > MOST_NODES:
        return f"its input schema has more than {MOST_NODES} parts"
    if trouble := _shape_trouble(words, words, DEEPEST):
        return trouble
    if len(canonical(words)) > LARGEST_SCHEMA:
        return f"its input schema is longer than {LARGEST_SCHEMA} characters"
    return _meta_trouble(words)


def count_nodes(schema: Any, most: int) -> int:
    """Count the values in a schema, itself included; no further than to one more than `most`."""
    count, ahead = 0, [schema]
    while ahead and count <= most:
        node = ahead.pop()
        count += 1
        children: Iterable[Any] = ()
        if isinstance(node, dict):
            children = cast("dict[str, Any]", node).values()
        elif isinstance(node, list):
            children = cast("list[Any]", node)
        ahead.extend(islice(children, most + 1 - count))
    return count


def _shape_trouble(node: Any, root: JsonObject, deep: int) -> str:
    if deep == 0:
        return "its input schema is too deep"
    children: Iterable[Any] = ()
    if isinstance(node, dict):
        words = cast("dict[str, Any]", node)
        ref = words.get("$ref")
        if isinstance(ref, str) and not _leads_somewhere(ref, root):
            return f"its input schema refers to {ref[:100]!r}, which is not in it"
        children = words.values()
    elif isinstance(node, list):
        children = cast("list[Any]", node)
    return next((trouble for child in children if (trouble := _shape_trouble(child, root, deep - 1))), "")


def _leads_somewhere(ref: str, root: JsonObject) -> bool:
    if not ref.startswith("#"):
        return False
    if ref != "#" and not ref.startswith("#/"):
        return True  # an anchor, which the library of schemas knows
    found: Any = root
    for step in ref[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or step not in found:
            return False
        found = cast("dict[str, Any]", found)[step]
    return True


def _meta_trouble(schema: JsonObject) -> str:
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"its input schema makes no sense: {error.message[:200]}"
    except Exception as error:  # a `$schema` that is none
        return f"its input schema cannot be checked: {type(error).__name__}"
    return ""


def effects_of(annotations: Mapping[str, Any], said: Effects | None) -> Effects:
    """What a repeat would do. What the person says counts; else the server's claim, for want of a better."""
    if said is not None:
        return said
    if annotations.get("readOnlyHint") is True:
        return "read"
    return "write" if annotations.get("idempotentHint") is True else "once"


def full_names(server: str, tools: Sequence[str], servers: Sequence[str]) -> dict[str, str]:
    """What the tools of a server are called here: `server_tool`, and with a hash behind it where that is not enough.

    It depends on nothing but these names, so that a tool has the same one in every process.
    """
    prefixes = [_plain(other + "_") for other in servers if other != server]
    alike: dict[str, list[str]] = {}
    for tool in tools:
        alike.setdefault(_plain(tool), []).append(tool)
    names: dict[str, str] = {}
    for tool in tools:
        name = f"{server}_{_UNFIT.sub('_', tool)}"
        others = sorted(alike[_plain(tool)], key=lambda other: (bool(_UNFIT.search(other)), other))
        # Another server's names may begin like this one's: `a` with `b_c` and `a_b` with `c`.
        is_mistaken = any(_plain(name).startswith(prefix) for prefix in prefixes if len(prefix) >= len(_plain(server)))
        if others[0] != tool or is_mistaken or _plain(name) in RESERVED or len(name) > FULL_NAME:
            mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
            name = f"{name[: FULL_NAME - 9]}_{mark}"
        names[tool] = name
    return names


def _plain(name: str) -> str:
    """A name as the registry compares it."""
    return _UNFIT.sub("", name).replace("-", "").replace("_", "").casefold()
