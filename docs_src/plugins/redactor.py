import re
from typing import TypeVar

from msgspec.structs import replace

from everturn import TextPart
from everturn.core.hooks import AppendContext, CallContext, RequestContext
from everturn.core.parts import NoticePart, Part
from everturn.core.requests import RequestMessage, RequestPart, RequestResult

CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
AnyPart = TypeVar("AnyPart", bound=Part | RequestPart)


def hide(text: str) -> str:
    return CARD.sub("[card number]", text)


def hidden(part: AnyPart) -> AnyPart:
    if isinstance(part, TextPart | NoticePart | RequestResult):
        return replace(part, text=hide(part.text))
    return part


class Redactor:
    """Keeps card numbers from the model, and from the log where a tool brings them."""

    name = "redactor"

    def on_call_end(self, ctx: CallContext) -> None:
        """A result, before it is written down. One that comes late passes here too."""
        output = ctx.output
        ctx.output = replace(output, text=hide(output.text), title=hide(output.title))

    def on_message_append(self, ctx: AppendContext) -> None:
        """What plugins and the runtime append. An answer is still empty here."""
        parts = tuple(hidden(part) for part in ctx.message.parts)
        ctx.message = replace(ctx.message, parts=parts)

    def on_before_request(self, ctx: RequestContext) -> None:
        """What goes out. The log has the person's message as they wrote it."""
        ctx.set_request_messages(outgoing(message) for message in ctx.body.messages)


def outgoing(message: RequestMessage) -> RequestMessage:
    # What the model wrote is left alone: it knows it, and a provider may sign it.
    if message.role == "assistant":
        return message
    return replace(message, parts=tuple(hidden(part) for part in message.parts))
