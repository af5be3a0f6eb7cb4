"""Tools for the tests of `everturn run`; what they really did is in the file that EVERTURN_DONE names."""

import os
import time

from everturn import tool


def _did(text: str) -> None:
    with open(os.environ["EVERTURN_DONE"], "a", encoding="utf-8") as file:
        file.write(text + "\n")


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


@tool()
def pay(amount: int) -> str:
    """Pay."""
    _did(f"pay {amount}")
    return f"paid {amount}"


@tool(read_only=True)
def brood(seconds: int) -> str:
    """Sit in a thread that nothing can stop."""
    _did("brood")
    time.sleep(seconds)
    return "done"
