"""What OpenAI's clients send → what was said anew. Of a history they bring only what is new counts; the rest is looked
at to know the conversation again, and never believed.

Fields that we do not know are ignored, for there are new ones every month; those that would change the answer and cannot
be honoured are refused.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Meta, Struct

from everturn import api
from everturn.access.access import Access
from everturn.core.options import ClientTool
from everturn.server.problems import Refusal

Json = dict[str, Any]
Many = Meta(max_length=10_000)
Tokens = Annotated[int, Meta(ge=1, le=2**53)]


class ChatMessage(Struct, frozen=True):
    """A message of Chat Completions."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: api.Text | list[Json] | None = None
    tool_calls: Annotated[list[Json], Many] | None = None
    tool_call_id: api.Name | None = None


class Wanted(Struct, frozen=True, kw_only=True):
    """What both of them may ask for."""

    model: api.Name = ""
    stream: bool | None = False
    temperature: float | None = None
    top_p: float | None = None
    tools: Annotated[list[Json], Meta(max_length=200)] | None = None
    tool_choice: str | Json | None = None
    metadata: dict[str, str] | None = None


class ChatBody(Wanted, frozen=True, kw_only=True):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=10_000)]
    stream_options: Json | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = 1
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    seed: Annotated[int, Meta(ge=-(2**53), le=2**53)] | None = None
    stop: str | list[str] | None = None
    reasoning_effort: str | None = None
    response_format: Json | None = None
    user: Annotated[str, Meta(max_length=1000)] | None = None  # of whoever uses the client: one of those it speaks for


class ResponsesBody(Wanted, frozen=True, kw_only=True):
    """POST /v1/responses."""

    input: api.Text | Annotated[list[Json], Many] = ""
    previous_response_id: Annotated[str, Meta(max_length=1000)] | None = None
    background: bool | None = False
    store: bool | None = True  # a turn is kept whatever is asked
    instructions: str | list[Json] | None = None
    max_output_tokens: Tokens | None = None
    reasoning: Json | None = None
    text: Json | None = None
    conversation: str | Json | None = None


def refused(text: str, where: str) -> Refusal:
    """What cannot be honoured."""
    return Refusal("bad_request", text, where)


class New(Struct):
    """What is new in what a client sent."""

    text: str = ""
    files: list[str] = []  # data: addresses, still to be kept
    results: dict[str, str] = {}  # the id of a call -> what came of it
    approvals: dict[str, tuple[bool, str]] = {}  # the id of a request -> yes or no, and why
    has_history: bool = False
    has_system: bool = False

    @property
    def has_said(self) -> bool:
        """Whether a person says something."""
        return bool(self.text or self.files)

    @property
    def has_answers(self) -> bool:
        """Whether something is answered that was asked."""
        return bool(self.results or self.approvals)


# Texts and files -------------------------------------------------------------------------------------------------------


def text_of(content: object) -> tuple[str, list[str]]:
    """The text of a message, and the files in it."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    files: list[str] = []
    if not isinstance(content, list):
        raise refused("the content of a message is a text, or a list of parts", "content")
    for part in cast("list[object]", content):
        match part:
            case {"type": "text" | "input_text" | "output_text", "text": str(text)} | {
                "type": "refusal",
                "refusal": str(text),
            }:
                texts.append(text)
            case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
                files.append(url)
            case {"type": "file", "file": {"file_data": str(data)}} | {"type": "input_file", "file_data": str(data)}:
                files.append(data)
            case _:
                raise refused("of parts only texts, pictures and files are taken here", "content")
    return "".join(texts), files


async def kept(access: Access, files: Sequence[str]) -> list[str]:
    """Keep files that came along; an address that would have to be fetched is refused, for it may lead anywhere."""
    names: list[str] = []
    for file in files:
        head, comma, data = file.partition(",")
        if not head.startswith("data:") or not comma:
            raise refused("a file comes as a data: address with its bytes, or is uploaded to /api/files", "content")
        media_type, *marks = head[5:].split(";")
        try:
            raw = base64.b64decode(data, validate=True) if "base64" in marks else unquote_to_bytes(data)
        except ValueError:
            raise refused("this file is not base64", "content") from None
        names.append((await access.attach(raw, media_type or "application/octet-stream", "")).file)
    return names


# Chat Completions ------------------------------------------------------------------------------------------------------


def chat_new(messages: Sequence[ChatMessage]) -> tuple[New, list[ChatMessage]]:
    """What is new, and the conversation that it goes on from.

    The prompt is the agent's, so a client's own is set aside wherever it stands.
    """
    talk = [message for message in messages if message.role not in ("system", "developer")]
    new = New(has_system=len(talk) != len(messages))
    at = max((at + 1 for at, message in enumerate(talk) if message.role == "assistant"), default=0)
    said: list[str] = []
    for message in talk[at:]:
        text, files = text_of(message.content)
        if message.role == "tool":
            new.results[message.tool_call_id or ""] = text
        else:
            said.append(text)
            new.files += files
    new.text, new.has_history = "\n\n".join(said), at > 0
    return new, talk[:at]


def conversation(user: str, of: str | None, messages: Sequence[ChatMessage]) -> str:
    """By what a conversation of somebody is known again: all that was said in it, and what was called.

    `of` is whom a client that speaks for many says that it is.
    """
    told: list[Any] = []
    for message in messages:
        text, files = text_of(message.content)
        calls = [str(call.get("id", "")) for call in message.tool_calls or ()]
        told.append([message.role, text, files, calls, message.tool_call_id or ""])
    return hashlib.sha256(msgspec.json.encode(["conversation", user, of or "", told])).hexdigest()


def copied_of(user: str, key: str) -> str:
    """By what the copy of a conversation is known again that was made for a request with a key."""
    return hashlib.sha256(msgspec.json.encode(["copy", user, key])).hexdigest()


def asked_of(user: str, call: str) -> str:
    """By what a call is known again that a client was asked to do."""
    return hashlib.sha256(msgspec.json.encode(["call", user, call])).hexdigest()


# Responses -------------------------------------------------------------------------------------------------------------

OURS: Final = ("assistant", "reasoning", "function_call", "mcp_call", "mcp_approval_request", "mcp_list_tools")


def responses_new(given: str | Sequence[Json], instructions: object) -> New:
    """What is new in the input: what people say after the last thing that is ours, and every answer."""
    new = New(has_system=bool(instructions))
    if isinstance(given, str):
        new.text = given
        return new
    said: list[str] = []
    for item in given:
        kind = item.get("role") if item.get("type", "message") == "message" else item.get("type")
        if kind in OURS:
            said, new.files, new.has_history = [], [], True
        elif kind in ("system", "developer"):
            new.has_system = True
        elif kind == "user":
            text, files = text_of(item.get("content"))
            said.append(text)
            new.files += files
        elif kind == "function_call_output":
            new.results[str(item.get("call_id", ""))] = text_of(item.get("output"))[0]
        elif kind == "mcp_approval_response" and isinstance(item.get("approve"), bool):
            why = item.get("reason")
            new.approvals[str(item.get("approval_request_id", ""))] = (
                item["approve"],
                why if isinstance(why, str) else "",
            )
        else:
            raise refused(f"an item of type {str(kind)[:40]!r} is not taken here", "input")
    new.text = "\n\n".join(said)
    return new


# What the turn is told -------------------------------------------------------------------------------------------------


def agent_of(model: str, agents: Sequence[str]) -> tuple[str, str]:
    """`model` as they call it → an agent and, after a slash, one of its models."""
    if model in agents:
        return model, ""
    agent, _, its = model.partition("/")
    return agent, its


def clients_of(tools: Sequence[Json] | None) -> list[ClientTool]:
    """Functions that the client brings → tools that it runs."""
    clients: list[ClientTool] = []
    for tool in tools or ():
        if tool.get("type") != "function":
            raise refused("of tools only functions are taken; what runs here is configured here", "tools")
        inner = tool.get("function")
        function = cast("Json", inner) if isinstance(inner, dict) else tool
        schema: object = function.get("parameters") or {"type": "object", "properties": {}}
        if not isinstance(schema, dict):
            raise refused("the parameters of a function are a JSON Schema", "tools")
        name, about = str(function.get("name", "")), str(function.get("description") or "")
        clients.append(ClientTool(name, about, cast("dict[str, object]", schema)))
    return clients


def said_of(body: ChatBody | ResponsesBody, new: New, files: list[str], agents: Sequence[str]) -> Json:
    """The fields of `api.Said`."""
    if body.tool_choice not in (None, "auto"):
        raise refused("tool_choice: the agent chooses its tools; leave it out, or say auto", "tool_choice")
    agent, model = agent_of(body.model, agents)
    if agent not in agents:  # what their clients know of it: a model, and 404
        raise Refusal("unknown_model", f"there is no model {agent[:80]!r}; there are: {', '.join(agents)}", "model")
    params: Json = {"temperature": body.temperature, "top_p": body.top_p}
    if isinstance(body, ChatBody):
        if body.n not in (None, 1):
            raise refused("there is one answer to a message; ask again for another", "n")
        params |= {"seed": body.seed, "stop": body.stop, "reasoning_effort": body.reasoning_effort}
        params["max_tokens"] = body.max_completion_tokens or body.max_tokens
        form = body.response_format
    else:
        if body.conversation is not None:
            raise refused("a conversation is gone on with by previous_response_id", "conversation")
        params |= {"max_tokens": body.max_output_tokens, "reasoning_effort": (body.reasoning or {}).get("effort")}
        form = (body.text or {}).get("format")
    if isinstance(form, dict) and cast("Json", form).get("type") != "text":
        raise refused("answers are text here; a form of an answer is part of an agent's configuration", "format")
    params = {name: value for name, value in params.items() if value is not None}
    said = {"text": new.text, "files": files, "agent": agent, "model": model, "clients": clients_of(body.tools)}
    return {**said, "params": params or None}
