"""A request as a provider got it → what it says, in our words: so that one test can look at every format.

An adapter of a format that is not here overrides `ModelBench.sent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

Json = dict[str, Any]


class Sent(Struct):
    """What of a request the tests look at. `choice` is "auto", "none", "required", or the name of a tool."""

    system: str = ""
    said: list[tuple[str, str]] = []  # role and text
    calls: list[tuple[str, str]] = []  # id and name
    results: list[tuple[str, str]] = []  # id and text
    failed: list[str] = []  # the ids of results that are marked as failures, in formats that mark them
    seals: list[str] = []
    tools: list[str] = []
    schemas: list[Json] = []  # of the tools
    images: int = 0
    documents: int = 0
    max_tokens: int | None = None
    schema: Json | None = None
    choice: str | None = None

    @property
    def text(self) -> str:
        """Everything anybody said or brought."""
        return "\n".join([*(text for _, text in self.said), *(text for _, text in self.results)])

    def take(self, role: str, content: Any) -> None:
        """Read the content of a message: a text, or parts of it."""
        if texts := self.texts(content):
            self.said.append((role, "".join(texts)))

    def texts(self, content: Any) -> list[str]:
        """The texts of some content, while files are counted."""
        if isinstance(content, str):
            return [content]
        texts: list[str] = []
        for part in content or ():
            match part["type"]:
                case "text" | "input_text" | "output_text":
                    texts.append(part["text"])
                case "image" | "image_url" | "input_image":
                    self.images += 1
                case "document" | "file" | "input_file":
                    self.documents += 1
                case _:
                    pass
        return texts


def read_chat(body: Json) -> Sent:
    """OpenAI Chat Completions."""
    tools = [tool["function"] for tool in body.get("tools", ())]
    sent = Sent(tools=[tool["name"] for tool in tools], schemas=[tool["parameters"] for tool in tools])
    for message in body["messages"]:
        match message["role"]:
            case "system" | "developer":
                sent.system += "".join(sent.texts(message["content"]))
            case "tool":
                sent.results.append((message["tool_call_id"], "".join(sent.texts(message["content"]))))
            case role:
                sent.take(role, message["content"])
                sent.calls += [(call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())]
    sent.max_tokens = body.get("max_tokens") or body.get("max_completion_tokens")
    sent.schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    sent.choice = _chosen(body.get("tool_choice"), "function")
    return sent


def read_messages(body: Json) -> Sent:
    """Anthropic Messages."""
    tools = body.get("tools", ())
    sent = Sent(tools=[tool["name"] for tool in tools], schemas=[tool["input_schema"] for tool in tools])
    sent.system = "".join(sent.texts(body.get("system")))
    for message in body["messages"]:
        sent.take(message["role"], message["content"])
        for block in message["content"] if isinstance(message["content"], list) else ():
            _block(block, sent)
    sent.max_tokens = body["max_tokens"]
    sent.schema = body.get("output_config", {}).get("format", {}).get("schema")
    choice = body.get("tool_choice")
    sent.choice = {"any": "required"}.get(choice["type"], choice.get("name", choice["type"])) if choice else None
    return sent


def _block(block: Json, sent: Sent) -> None:
    match block["type"]:
        case "tool_use":
            sent.calls.append((block["id"], block["name"]))
        case "tool_result":
            sent.results.append((block["tool_use_id"], "".join(sent.texts(block["content"]))))
            sent.failed += [block["tool_use_id"]] if block.get("is_error") else []
        case "thinking":
            sent.seals.append(block["signature"])
        case "redacted_thinking":
            sent.seals.append(block["data"])
        case _:
            pass


def read_responses(body: Json) -> Sent:
    """OpenAI Responses."""
    tools = body.get("tools", ())
    sent = Sent(tools=[tool["name"] for tool in tools], schemas=[tool["parameters"] for tool in tools])
    sent.system = body.get("instructions", "")
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                sent.take(item["role"], item["content"])
            case "function_call":
                sent.calls.append((item["call_id"], item["name"]))
            case "function_call_output":
                sent.results.append((item["call_id"], "".join(sent.texts(item["output"]))))
            case "reasoning":
                sent.seals.append(item["encrypted_content"])
            case _:
                pass
    sent.max_tokens = body.get("max_output_tokens")
    sent.schema = body.get("text", {}).get("format", {}).get("schema")
    sent.choice = _chosen(body.get("tool_choice"), "")
    return sent


def _chosen(choice: str | Json | None, inside: str) -> str | None:
    if isinstance(choice, dict):
        found: Json = choice[inside] if inside else choice
        return found["name"]
    return choice


def ids_in_order(sent: Sent) -> Iterator[tuple[str, str]]:
    """The id of each call beside that of the result in the same place."""
    return zip((id for id, _ in sent.calls), (id for id, _ in sent.results), strict=True)


READERS: Final[Mapping[str, Callable[[Json], Sent]]] = {
    "chat": read_chat,
    "messages": read_messages,
    "responses": read_responses,
}
