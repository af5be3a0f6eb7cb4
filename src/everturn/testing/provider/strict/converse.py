"""Amazon Bedrock Converse validation: refuses what Bedrock refuses, and then what Claude refuses behind it.

The first part are rules of Converse itself, with its messages as far as they are known. The second one reads the request
as one of Anthropic Messages; Bedrock passes on what the model says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object
from everturn.testing.provider.strict.converse_body import EXTRA, as_messages, objects
from everturn.testing.provider.strict.messages import check_anthropic

FIELDS = frozenset(
    "additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig inferenceConfig messages model "
    "outputConfig performanceConfig promptVariables requestMetadata serviceTier system toolConfig".split()
)
_INFERENCE = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
_USER = frozenset({"text", "image", "document", "toolResult", "cachePoint", "guardContent"})
_ASSISTANT = frozenset({"text", "toolUse", "reasoningContent", "cachePoint"})
_RESULT = frozenset({"text", "json", "image", "document"})
_IMAGES = ("png", "jpeg", "gif", "webp")
_DOCUMENTS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
_TTLS = (None, "5m", "1h")
_NAME = re.compile(r"(?!.*\s\s)[A-Za-z0-9\s()\[\]-]{1,200}")
_MODEL_SAYS = "The model returned the following errors: "
Json = dict[str, Any]


def check_converse(body: Json, headers: Mapping[str, str]) -> None:
    """Raise `Refused` for a request that the real one would refuse."""
    for name in body:
        if name not in FIELDS:
            raise _malformed(f"#: extraneous key [{name}] is not permitted")
    inference = body.get("inferenceConfig", {})
    for name in inference:
        if name not in _INFERENCE:
            raise _malformed(f"#/inferenceConfig: extraneous key [{name}] is not permitted")
    for at, block in enumerate(objects(body.get("system"))):
        if len(block) != 1 or not ({"text", "cachePoint"} & block.keys()) or block.get("text") == "":
            raise _malformed(f"#/system/{at}: expected minLength: 1")
    check_tool_config(body)
    check_messages(body)
    read = as_messages(body)
    if "claude" not in str(body.get("model")):  # what such a model has in a field of its own is not known here
        read = {name: value for name, value in read.items() if name not in body.get(EXTRA, {})}
    try:
        check_anthropic(read, {**headers, "anthropic-version": "in the body"})
    except Refused as refused:
        raise Refused(_MODEL_SAYS + refused.message) from None


def _malformed(why: str) -> Refused:
    return Refused(f"Malformed input request: {why}, please reformat your input and try again.")


def check_tool_config(body: Json) -> None:
    """Tools have a description that is not empty, if any; there is no choice "none", and calls need a config."""
    config = body.get("toolConfig")
    if config is None:
        kinds = {kind for message in objects(body.get("messages")) for kind in _kinds(message)}
        if kinds & {"toolUse", "toolResult"}:
            raise Refused("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
        return
    if not is_object(config) or not is_list(config.get("tools")) or not config["tools"]:
        raise _malformed("#/toolConfig/tools: expected minimum item count: 1, found: 0")
    for at, tool in enumerate(config["tools"]):
        if tool.get("toolSpec", {}).get("description") == "":
            raise _malformed(f"#/toolConfig/tools/{at}/toolSpec/description: expected minLength: 1, actual: 0")
    choice = config.get("toolChoice")
    if choice is not None and (
        not is_object(choice) or len(choice) != 1 or not {"auto", "any", "tool"} & choice.keys()
    ):
        raise _malformed("#/toolConfig/toolChoice: required one of [auto, any, tool]")


def _kinds(message: Json) -> list[str]:
    return [kind for block in objects(message.get("content")) for kind in block]


def check_messages(body: Json) -> None:
    """Messages alternate and begin with a user; each has content; documents have names that differ."""
    before, names = "assistant", set[str]()
    for at, message in enumerate(objects(body.get("messages"))):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            raise _malformed(f"#/messages/{at}/role: {role} is not a valid enum value")
        if at == 0 and role != "user":
            raise Refused(
                "A conversation must start with a user message. Try again with a conversation that starts with one."
            )
        if role == before:
            raise Refused("A conversation must alternate between user and assistant roles. Make sure that it does.")
        before = str(role)
        if not is_list(content) or not content:
            raise Refused(
                f"The content field in the Message object at messages.{at} is empty. Add a ContentBlock object to the "
                "content field and try again."
            )
        for k, block in enumerate(content):
            _check_block(f"messages.{at}.content.{k}", block, _USER if role == "user" else _ASSISTANT, names)
        if "document" in _kinds(message) and "text" not in _kinds(message):
            raise Refused(f"A text block is required beside a document. Add one to messages.{at}.content.")


def _check_block(path: str, block: Any, kinds: frozenset[str], names: set[str]) -> None:
    if not is_object(block) or len(block) != 1:
        raise _malformed(f"#/{path}: expected exactly one member of the union")
    kind, value = next(iter(block.items()))
    if kind not in kinds:
        raise Refused(f"The {kind} block at {path} is not supported here.")
    if kind == "text" and not str(value).strip():
        raise Refused(
            f"The text field in the ContentBlock object at {path} is blank. Add text to the text field, and try again."
        )
    if kind == "image" and value.get("format") not in _IMAGES:
        raise _malformed(f"#/{path}/image/format: {value.get('format')} is not a valid enum value")
    if kind == "cachePoint" and (value.get("type") != "default" or value.get("ttl") not in _TTLS):
        raise _malformed(f"#/{path}/cachePoint: not a valid enum value")
    if kind == "document":
        _check_document(path, value, names)
    if kind == "toolResult":
        for k, inner in enumerate(value.get("content", ())):
            _check_block(f"{path}.toolResult.content.{k}", inner, _RESULT, names)


def _check_document(path: str, document: Json, names: set[str]) -> None:
    name = document.get("name")
    if document.get("format") not in _DOCUMENTS:
        raise _malformed(f"#/{path}/document/format: {document.get('format')} is not a valid enum value")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Refused(
            "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
            "parentheses, and square brackets. The name can't contain more than one consecutive whitespace character."
        )
    if name in names:
        raise Refused("Messages can not contain multiple documents with the same name. Use unique names.")
    names.add(name)
