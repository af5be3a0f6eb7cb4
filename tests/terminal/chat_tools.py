"""Tools for the chat of the tests; what they really did is in the file that EVERTURN_DONE names."""

import os

from everturn import ToolError, tool

SECRET = "From: ada\nThe word is hunter2.\nAgain: hunter2."


def _did(text: str) -> None:
    if path := os.environ.get("EVERTURN_DONE"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")


@tool(approval="ask")
def send_mail(to: str, text: str, urgent: bool = False) -> str:
    """Send a mail."""
    _did(f"mail {to} {len(text)} {urgent}")
    return f"sent to {to}"


@tool(approval="ask", subjects={"path": "path"})
def save(path: str, text: str) -> str:
    """Save a text."""
    _did(f"save {path}")
    return f"saved {path}"


@tool(approval="always")
def shout(text: str) -> str:
    """Shout a text."""
    _did(f"shout {text}")
    return text.upper()


@tool(read_only=True)
def inbox(folder: str) -> str:
    """Read the mails of a folder."""
    _did(f"inbox {folder}")
    return SECRET


@tool(read_only=True)
def fail() -> str:
    """Fail."""
    raise ToolError("it broke: hunter2")
