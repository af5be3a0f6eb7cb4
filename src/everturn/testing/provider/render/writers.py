"""Writer selection: the writer of a format, with the stream options of a request: usage, thinking, encrypted
reasoning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from everturn.testing.provider.faults import Format, is_object
from everturn.testing.provider.render.answer import Ending, Writer
from everturn.testing.provider.render.chat import ChatWriter
from everturn.testing.provider.render.converse import ConverseWriter
from everturn.testing.provider.render.gemini import GeminiWriter
from everturn.testing.provider.render.messages import MessagesWriter
from everturn.testing.provider.render.ollama import OllamaWriter, as_ollama
from everturn.testing.provider.render.responses import ResponsesWriter
from everturn.testing.provider.script import Call, Cite, Finish, Item, Redacted, Say, Think
from everturn.testing.provider.strict.gemini import shows_thoughts
from everturn.testing.provider.strict.ollama import hides_thinking
from everturn.testing.provider.strict.responses import is_encrypted
from everturn.testing.provider.strict.tools import is_thinking

Options = Literal["", "usage", "thinking", "thinking first", "encrypted"]
THOUGHT = Think("I need a tool for this.")


def options_of(format: Format, body: dict[str, Any], *, is_first: bool) -> Options:
    """The stream options of a request; at most one per format."""
    if format == "chat":
        wanted = body.get("stream_options")
        return "usage" if is_object(wanted) and wanted.get("include_usage") is True else ""
    if format in ("messages", "converse"):
        if not is_thinking(body):
            return ""
        return "thinking first" if is_first else "thinking"
    if format == "gemini":
        return "thinking" if shows_thoughts(body) else ""
    if format == "ollama":
        return "" if hides_thinking(body) else "thinking"
    return "encrypted" if is_encrypted(body) else ""


def prepare_items(format: Format, items: Sequence[Item], options: Options) -> Sequence[Item]:
    """The items, with reasoning in front if a thinking model is scripted to call tools without any.

    The real one never calls before it has thought, and refuses to continue a turn that looks as if it had.
    """
    if format != "messages":  # only this one pauses
        items = [item for item in items if not (isinstance(item, Finish) and item.reason == "paused")]
    if format not in ("messages", "responses", "gemini"):  # a text with a citation is a text there
        items = [Say(item.text, item.pieces) if isinstance(item, Cite) else item for item in items]
    if format == "ollama":
        return as_ollama(items)
    blocks = [item for item in items if isinstance(item, Think | Redacted | Say | Call)]
    if options != "thinking first" or not any(isinstance(item, Call) for item in blocks):
        return items
    return items if isinstance(blocks[0], Think | Redacted) else [THOUGHT, *items]


def writer_for(format: Format, model: str, ending: Ending, options: Options, seed: str) -> Writer:
    """The writer of a format, with the options of the request."""
    if format == "chat":
        return ChatWriter(model, ending, with_usage=options == "usage")
    if format == "converse":
        return ConverseWriter(model, ending, with_thinking=options.startswith("thinking"))
    if format == "messages":
        return MessagesWriter(model, ending, with_thinking=options.startswith("thinking"))
    if format == "gemini":
        return GeminiWriter(model, ending, with_thoughts=options == "thinking", seed=seed)
    if format == "ollama":
        return OllamaWriter(model, ending, with_thinking=options == "thinking")
    return ResponsesWriter(model, ending, with_encrypted=options == "encrypted", seed=seed)
