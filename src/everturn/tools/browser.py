"""Tools that a page runs for a model: JavaScript in its sandbox, and files that never leave the browser.

Only what they are is said here; the page that claims and runs them comes with the web UI. It declares
`browser_js_eval` as it is said here: `scripts/web_types.py` writes that down for it.
"""

from __future__ import annotations

from typing import Final

from everturn.core.options import ClientTool

MOST_CODE: Final = 100_000  # characters
MOST_CONTENT: Final = 1_000_000
_PATH: Final = {
    "type": "string",
    "description": "Where it is, beneath the root: 'notes/today.md'. No '..', no leading '/'.",
    "minLength": 1,
    "maxLength": 1024,
}

USUAL_TIME: Final = 5_000  # milliseconds
MOST_TIME: Final = 30_000
BROWSER_JS_EVAL: Final = ClientTool(
    "browser_js_eval",
    "Run JavaScript in the person's browser, in a sandbox without page, network, cookies or storage. The code is the body "
    "of an async function: return what you want to know. console.log is captured. Files of this conversation: await "
    "files.list(path), files.read(path), files.write(path, text).",
    {
        "type": "object",
        "properties": {
            "code": {"type": "string", "maxLength": MOST_CODE, "description": "The body of an async function."},
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_TIME,
                "description": f"It is stopped then; {USUAL_TIME} if left out.",
            },
        },
        "required": ["code"],
        "additionalProperties": False,
    },
    result={
        "type": "object",
        "properties": {
            "value": {"description": "What was returned, as JSON."},
            "console": {"type": "array", "items": {"type": "string"}, "maxItems": 1000},
        },
        "required": ["value"],
        "additionalProperties": False,
    },
    effects="write",  # it may write files of the conversation
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
    result={
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
    effects="read",
)
BROWSER_READ_FILE: Final = ClientTool(
    "browser_read_file",
    "Read a text file that this conversation keeps in the person's browser.",
    {"type": "object", "properties": {"path": _PATH}, "required": ["path"], "additionalProperties": False},
    result={"type": "string", "maxLength": MOST_CONTENT},
    effects="read",
)
BROWSER_WRITE_FILE: Final = ClientTool(
    "browser_write_file",
    "Write a text file that this conversation keeps in the person's browser; what was there before is gone.",
    {
        "type": "object",
        "properties": {"path": _PATH, "content": {"type": "string", "maxLength": MOST_CONTENT}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    result={"type": "object", "properties": {"written": {"type": "integer", "minimum": 0}}, "required": ["written"]},
    effects="write",
)

BROWSER_TOOLS: Final = (BROWSER_JS_EVAL, BROWSER_LIST_DIRECTORY, BROWSER_READ_FILE, BROWSER_WRITE_FILE)
"""What a page declares when it sends: `TurnOptions(clients=BROWSER_TOOLS)`."""
