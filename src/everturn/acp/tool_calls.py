"""Tool calls for an editor: kind, title, locations and diff, from the name and the arguments of a call. Pure."""

from __future__ import annotations

import posixpath
from typing import Any, Final

from everturn.core.canonical_json import parse_object
from everturn.core.todos import read_todos

JsonObject = dict[str, Any]
KINDS: Final = {
    "read_file": "read",
    "list_directory": "read",
    "read_result": "read",
    "search_files": "search",
    "web_search": "search",
    "write_file": "edit",
    "edit_file": "edit",
    "run_shell": "execute",
    "run_python": "execute",
    "run_javascript": "execute",
    "fetch_url": "fetch",
}
"""Names of our tools → kinds of ACP; every other tool is `other`."""
SUBJECTS: Final = ("path", "command", "url", "query", "pattern")  # the argument that a title shows
MAX_TITLE: Final = 120


def describe_call(name: str, arguments: str, root: str) -> JsonObject:
    """The fields of a tool call that its arguments decide. `root` is the folder that paths are relative to."""
    values = parse_object(arguments) or {}
    fields: JsonObject = {"title": make_title(name, values), "kind": KINDS.get(name, "other"), "rawInput": values}
    path = values.get("path")
    if root and isinstance(path, str) and KINDS.get(name) in ("read", "edit"):
        location: JsonObject = {"path": absolute_path(root, path)}
        line = values.get("offset")
        if isinstance(line, int) and not isinstance(line, bool) and line > 0:
            location["line"] = line
        fields["locations"] = [location]
    if (diff := make_diff(name, values, root)) is not None:
        fields["content"] = [diff]
    return fields


def make_title(name: str, values: JsonObject) -> str:
    """The name of a tool and what it works on."""
    subject = next((values[key] for key in SUBJECTS if isinstance(values.get(key), str)), "")
    title = " ".join(f"{name} {subject}".split())
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"


def make_diff(name: str, values: JsonObject, root: str) -> JsonObject | None:
    """The change that a call of a file tool makes, as an editor shows it."""
    path = values.get("path")
    if not isinstance(path, str) or not root:
        return None
    old, new = (
        (None, values.get("content")) if name == "write_file" else (values.get("old_text"), values.get("new_text"))
    )
    if name not in ("write_file", "edit_file") or not isinstance(new, str) or not isinstance(old, str | None):
        return None
    return {"type": "diff", "path": absolute_path(root, path), "oldText": old, "newText": new}


def absolute_path(root: str, path: str) -> str:
    """A path of a tool, which is relative to the root."""
    return posixpath.normpath(posixpath.join(root, path.lstrip("/")))


def text_content(text: str) -> JsonObject:
    """A text among the content of a tool call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def make_plan(tool: str, arguments: str) -> list[JsonObject] | None:
    """The entries of the plan that a call of `write_todos` writes; None for any other call."""
    if (todos := read_todos(tool, arguments)) is None:
        return None
    return [{"content": todo.content, "priority": "medium", "status": todo.status} for todo in todos]
