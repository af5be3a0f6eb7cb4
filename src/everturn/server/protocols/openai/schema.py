"""OpenAI request schema: the bodies of Chat Completions and Responses, and what is new in them.

A client sends the whole history, but only what is new counts; the rest serves to recognise the conversation and is never
trusted. Unknown fields are ignored, because OpenAI adds new ones every month; those that would change the answer and
cannot be honoured are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct

from everturn import api
from everturn.access.access import Access
from everturn.core.options import ClientTool
from everturn.server.errors import RequestError
from everturn.server.protocols.data_url import decode_data_url

Json = dict[str, Any]
Many = Meta(max_length=10_000)
Tokens = Annotated[int, Meta(ge=1, le=2**53)]


class ChatMessage(Struct, frozen=True):
    """A message of Chat Completions."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: api.Text | list[Json] | None = None
    tool_calls: Annotated[list[Json], Many] | None = None
    tool_call_id: api.Name | None = None


class RequestOptions(Struct, frozen=True, kw_only=True):
    """Options that both endpoints have."""

    model: api.Name = ""
    stream: bool | None = False
    temperature: float | None = None
    top_p: float | None = None
    tools: Annotated[list[Json], Meta(max_length=200)] | None = None
    tool_choice: str | Json | None = None
    metadata: dict[str, str] | None = None


class ChatBody(RequestOptions, frozen=True, kw_only=True):
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
    user: Annotated[str, Meta(max_length=1000)] | None = None  # the end user of a client that serves many


class ResponsesBody(RequestOptions, frozen=True, kw_only=True):
    """POST /v1/responses."""

    input: api.Text | Annotated[list[Json], Many] = ""
    previous_response_id: Annotated[str, Meta(max_length=1000)] | None = None
    background: bool | None = False
    store: bool | None = True  # a turn is stored in any case
    instructions: str | list[Json] | None = None
    max_output_tokens: Tokens | None = None
    reasoning: Json | None = None
    text: Json | None = None
    conversation: str | Json | None = None


def bad_request(text: str, where: str) -> RequestError:
    """The error for a request that cannot be honoured."""
    return RequestError("bad_request", text, where)


class NewInput(Struct):
    """The new part of a request: message, files, results and approvals."""

    text: str = ""
    files: list[str] = []  # data: URLs, not stored yet
    results: dict[str, str] = {}  # call id -> its result
    approvals: dict[str, tuple[bool, str]] = {}  # approval request id -> whether approved, and the reason
    has_history: bool = False
    has_system: bool = False

    @property
    def has_message(self) -> bool:
        """Whether there is a new message of the person."""
        return bool(self.text or self.files)

    @property
    def has_answers(self) -> bool:
        """Whether there are answers to gates."""
        return bool(self.results or self.approvals)


# Texts and files -------------------------------------------------------------------------------------------------------


def parse_content(content: object) -> tuple[str, list[str]]:
    """The text of a message, and the files in it."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    files: list[str] = []
    if not isinstance(content, list):
        raise bad_request("the content of a message must be a string or a list of parts", "content")
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
                raise bad_request("only text, image and file parts are supported", "content")
    return "".join(texts), files


async def store_files(access: Access, files: Sequence[str]) -> list[str]:
    """Store files of a message. A URL that would have to be fetched is refused, because it may lead anywhere."""
    names: list[str] = []
    for file in files:
        try:
            decoded = decode_data_url(file)
        except ValueError:
            raise bad_request("this file is not base64", "content") from None
        if decoded is None:
            raise bad_request("send a file as a data: URL, or upload it to /api/files", "content")
        names.append((await access.files.upload(decoded.content, decoded.media_type, "")).file)
    return names


# Chat Completions ------------------------------------------------------------------------------------------------------


def split_chat_messages(messages: Sequence[ChatMessage]) -> tuple[NewInput, list[ChatMessage]]:
    """Split messages into what is new and the conversation before it.

    The prompt is the agent's, so system messages are ignored wherever they stand.
    """
    turns_only = [message for message in messages if message.role not in ("system", "developer")]
    new = NewInput(has_system=len(turns_only) != len(messages))
    at = max((at + 1 for at, message in enumerate(turns_only) if message.role == "assistant"), default=0)
    texts: list[str] = []
    for message in turns_only[at:]:
        text, files = parse_content(message.content)
        if message.role == "tool":
            new.results[message.tool_call_id or ""] = text
        else:
            texts.append(text)
            new.files += files
    new.text, new.has_history = "\n\n".join(texts), at > 0
    return new, turns_only[:at]


def conversation_fingerprint(user: str, of: str | None, messages: Sequence[ChatMessage]) -> str:
    """The fingerprint of a user's conversation: all its texts, files and calls.

    `of` is the end user that a client which serves many names.
    """
    history: list[Any] = []
    for message in messages:
        text, files = parse_content(message.content)
        calls = [str(call.get("id", "")) for call in message.tool_calls or ()]
        history.append([message.role, text, files, calls, message.tool_call_id or ""])
    return hashlib.sha256(msgspec.json.encode(["conversation", user, of or "", history])).hexdigest()


def copy_fingerprint(user: str, key: str) -> str:
    """The fingerprint of a conversation's copy that was made for a request with this idempotency key."""
    return hashlib.sha256(msgspec.json.encode(["copy", user, key])).hexdigest()


def call_fingerprint(user: str, call: str) -> str:
    """The fingerprint of a call that a client was asked to run."""
    return hashlib.sha256(msgspec.json.encode(["call", user, call])).hexdigest()


# Responses -------------------------------------------------------------------------------------------------------------

MODEL_ITEMS: Final = ("assistant", "reasoning", "function_call", "mcp_call", "mcp_approval_request", "mcp_list_tools")


def parse_responses_input(request_input: str | Sequence[Json], instructions: object) -> NewInput:
    """What is new in the input: the person's messages after the last item of ours, and every answer."""
    new = NewInput(has_system=bool(instructions))
    if isinstance(request_input, str):
        new.text = request_input
        return new
    texts: list[str] = []
    for item in request_input:
        kind = item.get("role") if item.get("type", "message") == "message" else item.get("type")
        if kind in MODEL_ITEMS:
            texts, new.files, new.has_history = [], [], True
        elif kind in ("system", "developer"):
            new.has_system = True
        elif kind == "user":
            text, files = parse_content(item.get("content"))
            texts.append(text)
            new.files += files
        elif kind == "function_call_output":
            new.results[str(item.get("call_id", ""))] = parse_content(item.get("output"))[0]
        elif kind == "mcp_approval_response" and isinstance(item.get("approve"), bool):
            why = item.get("reason")
            new.approvals[str(item.get("approval_request_id", ""))] = (
                item["approve"],
                why if isinstance(why, str) else "",
            )
        else:
            raise bad_request(f"an item of type {str(kind)[:40]!r} is not supported", "input")
    new.text = "\n\n".join(texts)
    return new


# Options of the turn -----------------------------------------------------------------------------------------------


def split_model(model: str, agents: Sequence[str]) -> tuple[str, str]:
    """Split a `model` into an agent and, after a slash, one of its models."""
    if model in agents:
        return model, ""
    agent, _, its = model.partition("/")
    return agent, its


def parse_client_tools(tools: Sequence[Json] | None) -> list[ClientTool]:
    """Convert a request's functions to client tools."""
    clients: list[ClientTool] = []
    for tool in tools or ():
        if tool.get("type") != "function":
            raise bad_request(
                "only tools of type function are supported; tools of the server are configured on the server", "tools"
            )
        inner = tool.get("function")
        function = cast("Json", inner) if isinstance(inner, dict) else tool
        schema: object = function.get("parameters") or {"type": "object", "properties": {}}
        if not isinstance(schema, dict):
            raise bad_request("the parameters of a function must be a JSON Schema", "tools")
        name, about = str(function.get("name", "")), str(function.get("description") or "")
        clients.append(ClientTool(name, about, cast("dict[str, object]", schema)))
    return clients


def message_fields(body: ChatBody | ResponsesBody, new: NewInput, files: list[str], agents: Sequence[str]) -> Json:
    """The fields of a message that is sent: text, files, agent, model, client tools and model parameters."""
    if body.tool_choice not in (None, "auto"):
        raise bad_request("tool_choice: the agent chooses its tools; leave it out, or set it to auto", "tool_choice")
    agent, model = split_model(body.model, agents)
    if agent not in agents:  # their clients expect an unknown model and 404
        raise RequestError(
            "unknown_model", f"there is no model {agent[:80]!r}; there are: {', '.join(agents)}", "model"
        )
    params: Json = {"temperature": body.temperature, "top_p": body.top_p}
    if isinstance(body, ChatBody):
        if body.n not in (None, 1):
            raise bad_request("n must be 1: send the request again for another answer", "n")
        params |= {"seed": body.seed, "stop": body.stop, "reasoning_effort": body.reasoning_effort}
        params["max_tokens"] = body.max_completion_tokens or body.max_tokens
        answer_format = body.response_format
    else:
        if body.conversation is not None:
            raise bad_request("conversation is not supported; continue with previous_response_id", "conversation")
        params |= {"max_tokens": body.max_output_tokens, "reasoning_effort": (body.reasoning or {}).get("effort")}
        answer_format = (body.text or {}).get("format")
    if isinstance(answer_format, dict) and cast("Json", answer_format).get("type") != "text":
        raise bad_request(
            "this field is not supported; set output_type of the agent in everturn.toml instead", "format"
        )
    params = {name: value for name, value in params.items() if value is not None}
    fields = {
        "text": new.text,
        "files": files,
        "agent": agent,
        "model": model,
        "clients": parse_client_tools(body.tools),
    }
    return {**fields, "params": params or None}
