"""Browser tools: the client tools that the web UI runs for a model: JavaScript in a sandbox, and files that stay in the
browser.

This module only declares them; the web UI claims and runs the calls. The web UI's own declaration of `browser_js_eval`
is generated from this one by `scripts/web_types.py`.
"""

from __future__ import annotations

from typing import Final

from everturn.core.options import ClientTool

MAX_CODE_LENGTH: Final = 100_000  # characters
MAX_CONTENT_LENGTH: Final = 1_000_000
_PATH: Final = {
    "type": "string",
    "description": "Where it is, beneath the root: 'notes/today.md'. No '..', no leading '/'.",
    "minLength": 1,
    "maxLength": 1024,
}

DEFAULT_TIMEOUT_MS: Final = 5_000  # milliseconds
MAX_TIMEOUT_MS: Final = 30_000
BROWSER_JS_EVAL: Final = ClientTool(
    "browser_js_eval",
    "Run JavaScript in the person's browser, in a sandbox without page, network, cookies or storage. The code is the body "
    "of an async function: return what you want to know. console.log is captured. Files of this conversation: await "
    "files.list(path), files.read(path), files.write(path, text).",
    {
        "type": "object",
        "properties": {
            "code": {"type": "string", "maxLength": MAX_CODE_LENGTH, "description": "The body of an async function."},
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_TIMEOUT_MS,
                "description": f"It is stopped then; {DEFAULT_TIMEOUT_MS} if left out.",
            },
        },
        "required": ["code"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "value": {"description": "What was returned, as JSON."},
            "console": {"type": "array", "items": {"type": "string"}, "maxItems": 1000},
        },
        "required": ["value"],
        "additionalProperties": False,
    },
    idempotent=True,  # it may write files of the conversation
    lease=60.0,
)
BROWSER_LIST_DIRECTORY: Final = ClientTool(
    "browser_list_directory",
    "List a directory of the files that this conversation keeps in the person's browser.",
    {
        "type": "object",
        "properties": {"path": {**_PATH, "minLength": 0, "description": "The directory; '' is the root."}},
        "additionalProperties": False,
    },
    output_schema={
        "type": "array",
        "maxItems": 10_000,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "kind": {"enum": ["file", "directory"]},
                "size": {"type": "integer", "minimum": 0},
            },
            "required": ["name", "kind"],
            "additionalProperties": False,
        },
    },
    read_only=True,
)
BROWSER_READ_FILE: Final = ClientTool(
    "browser_read_file",
    "Read a text file that this conversation keeps in the person's browser.",
    {"type": "object", "properties": {"path": _PATH}, "required": ["path"], "additionalProperties": False},
    output_schema={"type": "string", "maxLength": MAX_CONTENT_LENGTH},
    read_only=True,
)
BROWSER_WRITE_FILE: Final = ClientTool(
    "browser_write_file",
    "Write a text file that this conversation keeps in the person's browser; what was there before is gone.",
    {
        "type": "object",
        "properties": {"path": _PATH, "content": {"type": "string", "maxLength": MAX_CONTENT_LENGTH}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {"written": {"type": "integer", "minimum": 0}},
        "required": ["written"],
    },
    idempotent=True,
)

BROWSER_TOOLS: Final = (BROWSER_JS_EVAL, BROWSER_LIST_DIRECTORY, BROWSER_READ_FILE, BROWSER_WRITE_FILE)
"""The web UI declares these when it sends a message: `TurnOptions(clients=BROWSER_TOOLS)`."""
