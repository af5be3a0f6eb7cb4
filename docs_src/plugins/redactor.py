import re

from msgspec.structs import replace

from everturn.core.hooks import AppendContext, CallContext, RequestContext
from everturn.core.parts import NoticePart, TextPart
from everturn.core.requests import RequestMessage, RequestPart, RequestResult

CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")


def hide(text: str) -> str:
    return CARD.sub("[card number]", text)


class Redactor:
    """Keeps card numbers away from the model, and away from the log where they come out of a tool."""

    name = "redactor"

    def on_call_end(self, ctx: CallContext) -> None:
        """A result, before it is written down; one that comes late passes here as well."""
        ctx.output = replace(ctx.output, text=hide(ctx.output.text), title=hide(ctx.output.title))

    def on_message_append(self, ctx: AppendContext) -> None:
        """What plugins and the runtime append, before it is written down. An answer is still empty here."""
        parts = tuple(
            replace(part, text=hide(part.text)) if isinstance(part, TextPart | NoticePart) else part
            for part in ctx.message.parts
        )
        ctx.message = replace(ctx.message, parts=parts)

    def on_before_request(self, ctx: RequestContext) -> None:
        """What goes out. The person's own message is in the log as they wrote it; the model does not read it so."""
        ctx.set_request_messages(_hidden(message) for message in ctx.body.messages)


def _hidden(message: RequestMessage) -> RequestMessage:
    # What the model wrote itself is left alone: it knows it already, and a provider may have signed it.
    if message.role == "assistant":
        return message
    parts: list[RequestPart] = [
        replace(part, text=hide(part.text)) if isinstance(part, TextPart | NoticePart | RequestResult) else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))
