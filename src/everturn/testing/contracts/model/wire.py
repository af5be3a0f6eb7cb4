"""Wire requests: reads a request of any format into one form, so that one test can check every format.

An adapter of a format that is not here overrides `ModelBench.sent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from everturn.testing.provider.gemini_signatures import SKIP
from everturn.testing.provider.strict.converse_body import as_messages

Json = dict[str, Any]


class WireRequest(Struct):
    """The parts of a request that the tests check. `choice` is "auto", "none", "required", or the name of a tool."""

    system: str = ""
    texts_by_role: list[tuple[str, str]] = []  # role and text
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
        """The text of all messages and results."""
        return "\n".join([*(text for _, text in self.texts_by_role), *(text for _, text in self.results)])

    def add_message(self, role: str, content: Any) -> None:
        """Read the content of a message: a text, or parts of it."""
        if texts := self.texts(content):
            self.texts_by_role.append((role, "".join(texts)))

    def texts(self, content: Any) -> list[str]:
        """The texts of some content; files are counted."""
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


def read_chat(body: Json) -> WireRequest:
    """OpenAI Chat Completions."""
    tools = [tool["function"] for tool in body.get("tools", ())]
    sent = WireRequest(tools=[tool["name"] for tool in tools], schemas=[tool["parameters"] for tool in tools])
    for message in body["messages"]:
        match message["role"]:
            case "system" | "developer":
                sent.system += "".join(sent.texts(message["content"]))
            case "tool":
                sent.results.append((message["tool_call_id"], "".join(sent.texts(message["content"]))))
            case role:
                sent.add_message(role, message["content"])
                sent.calls += [(call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())]
    sent.max_tokens = body.get("max_tokens") or body.get("max_completion_tokens")
    sent.schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    sent.choice = _chosen(body.get("tool_choice"), "function")
    return sent


def read_messages(body: Json) -> WireRequest:
    """Anthropic Messages."""
    tools = body.get("tools", ())
    sent = WireRequest(tools=[tool["name"] for tool in tools], schemas=[tool["input_schema"] for tool in tools])
    sent.system = "".join(sent.texts(body.get("system")))
    for message in body["messages"]:
        sent.add_message(message["role"], message["content"])
        for block in message["content"] if isinstance(message["content"], list) else ():
            _block(block, sent)
    sent.max_tokens = body["max_tokens"]
    sent.schema = body.get("output_config", {}).get("format", {}).get("schema")
    choice = body.get("tool_choice")
    sent.choice = {"any": "required"}.get(choice["type"], choice.get("name", choice["type"])) if choice else None
    return sent


def _block(block: Json, sent: WireRequest) -> None:
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


def read_responses(body: Json) -> WireRequest:
    """OpenAI Responses."""
    tools = body.get("tools", ())
    sent = WireRequest(tools=[tool["name"] for tool in tools], schemas=[tool["parameters"] for tool in tools])
    sent.system = body.get("instructions", "")
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                sent.add_message(item["role"], item["content"])
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


def read_gemini(body: Json) -> WireRequest:
    """Gemini. Where calls have no ids, a call and its result are matched by position."""
    declared = [declaration for tool in body.get("tools", ()) for declaration in tool.get("functionDeclarations", ())]
    sent = WireRequest(tools=[declaration["name"] for declaration in declared])
    sent.schemas = [
        declaration.get("parametersJsonSchema") or declaration.get("parameters") or {} for declaration in declared
    ]
    sent.system = "".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ()))
    for content in body["contents"]:
        role = "assistant" if content["role"] == "model" else "user"
        parts = content["parts"]
        texts = [part["text"] for part in parts if part.get("text") and not part.get("thought")]
        sent.texts_by_role += [(role, "".join(texts))] if texts else []
        for part in parts:
            _part(part, sent)
    config = body.get("generationConfig", {})
    sent.max_tokens = config.get("maxOutputTokens")
    sent.schema = config.get("responseJsonSchema") or config.get("responseSchema")
    choice = body.get("toolConfig", {}).get("functionCallingConfig")
    sent.choice = _mode(choice) if choice else None
    return sent


def _part(part: Json, sent: WireRequest) -> None:
    if signed := part.get("thoughtSignature"):
        sent.seals += [signed] if signed not in SKIP else []
    if call := part.get("functionCall"):
        sent.calls.append((call.get("id") or f"#{len(sent.calls)}", call["name"]))
    if result := part.get("functionResponse"):
        id = result.get("id") or f"#{len(sent.results)}"
        sent.results.append((id, "\n".join(str(value) for value in result["response"].values())))
        sent.failed += [id] if "error" in result["response"] else []
        for file in result.get("parts", ()):
            _part(file, sent)
    if file := part.get("inlineData"):
        sent.images += file["mimeType"].startswith("image/")
        sent.documents += file["mimeType"] == "application/pdf"


def _mode(choice: Json) -> str:
    mode: str = choice["mode"]
    only = choice.get("allowedFunctionNames")
    return only[0] if only else "required" if mode == "ANY" else mode.lower()


def read_ollama(body: Json) -> WireRequest:
    """Ollama. It has no tool choice, and its results name their tool."""
    tools = [tool["function"] for tool in body.get("tools", ())]
    sent = WireRequest(tools=[tool["name"] for tool in tools], schemas=[tool["parameters"] for tool in tools])
    for message in body["messages"]:
        sent.images += len(message.get("images", ()))
        match message["role"]:
            case "system":
                sent.system += message["content"]
            case "tool":
                sent.results.append((message.get("tool_call_id") or f"#{len(sent.results)}", message["content"]))
            case role:
                sent.texts_by_role += [(role, message["content"])] if message.get("content") else []
                for call in message.get("tool_calls", ()):
                    sent.calls.append((call.get("id") or f"#{len(sent.calls)}", call["function"]["name"]))
    sent.max_tokens = body.get("options", {}).get("num_predict")
    wanted = body.get("format")
    sent.schema = wanted if isinstance(wanted, dict) else None
    return sent


def _chosen(choice: str | Json | None, inside: str) -> str | None:
    if isinstance(choice, dict):
        chosen: Json = choice[inside] if inside else choice
        return chosen["name"]
    return choice


def ids_in_order(sent: WireRequest) -> Iterator[tuple[str, str]]:
    """The id of each call with that of the result in the same position."""
    return zip((id for id, _ in sent.calls), (id for id, _ in sent.results), strict=True)


def read_converse(body: Json) -> WireRequest:
    """Amazon Bedrock Converse."""
    sent = read_messages({"model": "", **as_messages(body)})
    sent.max_tokens = body.get("inferenceConfig", {}).get("maxTokens")
    return sent


READERS: Final[Mapping[str, Callable[[Json], WireRequest]]] = {
    "chat": read_chat,
    "messages": read_messages,
    "responses": read_responses,
    "gemini": read_gemini,
    "ollama": read_ollama,
    "converse": read_converse,
}
