"""Tools of every kind that rules can be about, for `random_configurations.py`."""

from everturn import tool


@tool(approval="ask", read_only=True, subjects={"path": "path"})
def look(path: str) -> str:
    """Look at a file."""
    return path


@tool(approval="ask", subjects={"path": "path"})
def write(path: str = "notes/new.md", text: str = "hello") -> str:
    """Write a file."""
    return path


@tool(approval="ask", subjects={"command": "command"})
def shell(command: str) -> str:
    """Run a command."""
    return command


@tool(approval="always")
def shout(text: str) -> str:
    """Shout."""
    return text


@tool
def note(text: str) -> str:
    """Note something."""
    return text


@tool(approval="deny")
def launch(text: str = "now") -> str:
    """Launch."""
    return text
