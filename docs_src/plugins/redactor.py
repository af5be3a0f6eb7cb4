import re
from typing import TypeVar

from msgspec.structs import replace

from everturn import TextPart
from everturn.events import NoticePart, Part
from everturn.models import RequestMessage, RequestPart, RequestResult
from everturn.plugins import AppendContext, CallContext, RequestContext

CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
AnyPart = TypeVar("AnyPart", bound=Part | RequestPart)


def hide(text: str) -> str:
    return CARD.sub("[card number]", text)


def hidden(part: AnyPart) -> AnyPart:
    if isinstance(part, TextPart | NoticePart | RequestResult):
        return replace(part, text=hide(part.text))
    return part


class Redactor:
    """Removes card numbers from requests and from tool results."""

    name = "redactor"

    def on_call_end(self, ctx: CallContext) -> None:
        """Redact a tool result before it is logged; also called for late results."""
        output = ctx.output
        ctx.output = replace(output, text=hide(output.text), title=hide(output.title))

    def on_message_append(self, ctx: AppendContext) -> None:
        """Redact messages of plugins and the app; an answer is still empty here."""
        parts = tuple(hidden(part) for part in ctx.message.parts)
        ctx.message = replace(ctx.message, parts=parts)

    def on_before_request(self, ctx: RequestContext) -> None:
        """Redact the request; the log keeps the person's message unchanged."""
        ctx.set_request_messages(outgoing(message) for message in ctx.body.messages)


def outgoing(message: RequestMessage) -> RequestMessage:
    # Keep the model's own text: a provider may have signed it.
    if message.role == "assistant":
        return message
    return replace(message, parts=tuple(hidden(part) for part in message.parts))
