"""Every type of the pinned vendor packages that a provider's tool can send is mapped, or listed here with the reason.

A newer package that adds one fails this test: somebody then maps it, or says why not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Required, get_args, get_origin, get_type_hints

import pytest

from everturn.models.formats import gemini_server_tools, messages_server_tools, responses_server_tools
from everturn.models.formats.messages_stream import FINISHES
from everturn.models.formats.provider_tools import DECLARATIONS
from everturn.models.formats.responses_stream import ResponsesDecoder
from everturn.models.profile import Origin
from everturn.models.vendors import VENDORS
from everturn.testing.provider import strict_items, strict_proto, strict_server_blocks

anthropic_types = pytest.importorskip("anthropic.types")
openai_types = pytest.importorskip("openai.types.responses")
google_types = pytest.importorskip("google.genai.types")

OURS_CALLED = "a call that we run, or its result, and not the provider's"
NOT_DECLARED = "sent only where a request declares its tool, and none of ours does"

# What is not mapped, and why ------------------------------------------------------------------------------------------

ANTHROPIC_BLOCKS: Mapping[str, str] = {
    "text": "mapped as text",
    "thinking": "mapped as reasoning",
    "redacted_thinking": "mapped as reasoning",
    "tool_use": OURS_CALLED,
    "container_upload": "a block of requests: a file for the container, which the files API uploads",
}
ANTHROPIC_TOOLS: Mapping[str, str] = {
    "bash_20250124": OURS_CALLED,
    "browser_toolset_20260801": OURS_CALLED,
    "computer_toolset_20260801": OURS_CALLED,
    "custom": OURS_CALLED,
    "memory_20250818": OURS_CALLED,
    "text_editor_20250124": OURS_CALLED,
    "text_editor_20250429": OURS_CALLED,
    "text_editor_20250728": OURS_CALLED,
    "tool_search_tool_bm25": "find_tools does this, under our rules",
    "tool_search_tool_bm25_20251119": "find_tools does this, under our rules",
    "tool_search_tool_regex": "find_tools does this, under our rules",
    "tool_search_tool_regex_20251119": "find_tools does this, under our rules",
}
OPENAI_ITEMS: Mapping[str, str] = {
    "additional_tools": NOT_DECLARED,
    "apply_patch_call": OURS_CALLED,
    "apply_patch_call_output": OURS_CALLED,
    "compaction": "the conversation is compacted here: the log is the truth",
    "computer_call": OURS_CALLED,
    "computer_call_output": OURS_CALLED,
    "custom_tool_call": OURS_CALLED,
    "custom_tool_call_output": OURS_CALLED,
    "function_call": OURS_CALLED,
    "function_call_output": OURS_CALLED,
    "local_shell_call": OURS_CALLED,
    "local_shell_call_output": OURS_CALLED,
    "mcp_approval_request": "never sent: provider_tool('mcp') has require_approval = 'never' and refuses others",
    "mcp_approval_response": "never sent: provider_tool('mcp') has require_approval = 'never' and refuses others",
    "message": "mapped as text",
    "program": NOT_DECLARED,
    "program_output": NOT_DECLARED,
    "reasoning": "mapped as reasoning",
    "shell_call": OURS_CALLED,
    "shell_call_output": OURS_CALLED,
    "tool_search_call": "find_tools does this, under our rules",
    "tool_search_output": "find_tools does this, under our rules",
}
PROGRESS = "progress of an item that `response.output_item.done` has whole"
WHOLE = "repeats what deltas or the item have"
OPENAI_EVENTS: Mapping[str, str] = {
    "error": "raised as an error",
    "response.audio.delta": "chat models of Responses send no sound",
    "response.audio.done": "chat models of Responses send no sound",
    "response.audio.transcript.delta": "chat models of Responses send no sound",
    "response.audio.transcript.done": "chat models of Responses send no sound",
    "response.code_interpreter_call.completed": PROGRESS,
    "response.code_interpreter_call.in_progress": PROGRESS,
    "response.code_interpreter_call.interpreting": PROGRESS,
    "response.code_interpreter_call_code.delta": PROGRESS,
    "response.code_interpreter_call_code.done": PROGRESS,
    "response.compaction.compacting": "the conversation is compacted here: the log is the truth",
    "response.content_part.added": WHOLE,
    "response.content_part.done": WHOLE,
    "response.created": "says nothing yet",
    "response.custom_tool_call_input.delta": OURS_CALLED,
    "response.custom_tool_call_input.done": OURS_CALLED,
    "response.file_search_call.completed": PROGRESS,
    "response.file_search_call.in_progress": PROGRESS,
    "response.file_search_call.searching": PROGRESS,
    "response.function_call_arguments.done": WHOLE,
    "response.image_generation_call.completed": PROGRESS,
    "response.image_generation_call.generating": PROGRESS,
    "response.image_generation_call.in_progress": PROGRESS,
    "response.image_generation_call.partial_image": "a draft of an image; the item has the image",
    "response.in_progress": "says nothing yet",
    "response.mcp_call.completed": PROGRESS,
    "response.mcp_call.failed": PROGRESS,
    "response.mcp_call.in_progress": PROGRESS,
    "response.mcp_call_arguments.delta": PROGRESS,
    "response.mcp_call_arguments.done": PROGRESS,
    "response.mcp_list_tools.completed": PROGRESS,
    "response.mcp_list_tools.failed": PROGRESS,
    "response.mcp_list_tools.in_progress": PROGRESS,
    "response.output_text.done": WHOLE,
    "response.queued": "only of background responses, which are not asked for",
    "response.reasoning_summary_part.done": WHOLE,
    "response.reasoning_summary_text.done": WHOLE,
    "response.reasoning_text.done": WHOLE,
    "response.refusal.done": WHOLE,
    "response.shell_call_command.added": OURS_CALLED,
    "response.shell_call_command.delta": OURS_CALLED,
    "response.shell_call_command.done": OURS_CALLED,
    "response.shell_call_output_content.delta": OURS_CALLED,
    "response.shell_call_output_content.done": OURS_CALLED,
    "response.web_search_call.completed": PROGRESS,
    "response.web_search_call.in_progress": PROGRESS,
    "response.web_search_call.searching": PROGRESS,
}

GEMINI_OFF = "sent only where a request declares its tool, and none of ours does (decision 0200)"
MAPPED = "mapped"
INPUT = "of requests, or of models that hear and speak"
GEMINI: Mapping[str, Mapping[str, str]] = {
    "Part": {
        **dict.fromkeys(gemini_server_tools.PARTS, MAPPED),
        "audioTranscription": INPUT,
        "fileData": INPUT,
        "functionResponse": OURS_CALLED,
        "mediaProcessing": INPUT,
        "mediaResolution": INPUT,
        "partMetadata": INPUT,
        "speechMetadata": INPUT,
        "videoMetadata": INPUT,
        **dict.fromkeys(("text", "thought", "thoughtSignature", "functionCall", "inlineData"), "mapped"),
    },
    "Tool": {
        "computerUse": OURS_CALLED,
        "functionDeclarations": OURS_CALLED,
        **dict.fromkeys(("codeExecution", "googleSearch", "urlContext"), MAPPED),
        **dict.fromkeys(("enterpriseWebSearch", "exaAiSearch", "fileSearch", "googleMaps"), GEMINI_OFF),
        **dict.fromkeys(("googleSearchRetrieval", "mcpServers", "parallelAiSearch", "retrieval"), GEMINI_OFF),
    },
    "Candidate": {
        **dict.fromkeys(gemini_server_tools.METADATA, MAPPED),
        "citationMetadata": "where a text repeats known works, and not what a tool found",
        **dict.fromkeys(("content", "finishMessage", "finishReason", "index"), "mapped"),
        **dict.fromkeys(("avgLogprobs", "logprobsResult", "safetyRatings", "tokenCount"), "says nothing about tools"),
        "continuationToken": "of long answers that are fetched later, which are not asked for",
    },
    "GroundingMetadata": {
        **dict.fromkeys(("webSearchQueries", "groundingChunks", "groundingSupports"), MAPPED),
        "searchEntryPoint": "kept in the part's sealed data: a snippet of HTML that Google asks websites to show",
        "imageSearchQueries": GEMINI_OFF,
        **dict.fromkeys(("googleMapsWidgetContextToken", "sourceFlaggingUris"), GEMINI_OFF),
        **dict.fromkeys(("retrievalMetadata", "retrievalQueries"), GEMINI_OFF),
    },
    "GroundingChunk": {**dict.fromkeys(("web", "retrievedContext", "maps"), MAPPED), "image": GEMINI_OFF},
    "GroundingSupport": {
        **dict.fromkeys(("segment", "groundingChunkIndices"), MAPPED),
        "confidenceScores": "of older models only, and a citation has no place for it",
        "renderedParts": GEMINI_OFF,
    },
    "Segment": dict.fromkeys(("startIndex", "endIndex", "partIndex", "text"), MAPPED),
    "UrlMetadata": dict.fromkeys(("retrievedUrl", "urlRetrievalStatus"), MAPPED),
}
GEMINI_TOOL_TYPES: Mapping[str, str] = {
    "TOOL_TYPE_UNSPECIFIED": "never sent",
    "GOOGLE_MAPS": GEMINI_OFF,
    "FILE_SEARCH": GEMINI_OFF,
    "MEDIA_PROCESSING": GEMINI_OFF,
}


def members(union: Any) -> Iterator[Any]:
    """The classes of a union, however it is wrapped."""
    for each in get_args(union):
        if isinstance(each, type):
            yield each
        elif get_origin(each) is not None:
            yield from members(each)


def literals(cls: Any, field: str = "type") -> set[str]:
    """The values that a field can have."""
    found: set[str] = set()
    fields = getattr(cls, "model_fields", None)
    pending = [fields[field].annotation if fields is not None and field in fields else hints(cls).get(field)]
    while pending:
        hint = pending.pop()
        if get_origin(hint) is Literal:
            found |= {str(value) for value in get_args(hint)}
        else:
            pending += get_args(hint)
    return found


def hints(cls: Any) -> dict[str, Any]:
    return {} if hasattr(cls, "model_fields") else get_type_hints(cls, include_extras=True)


def types_of(union: Any) -> set[str]:
    return {kind for cls in members(union) for kind in literals(cls)}


def required(cls: Any) -> set[str]:
    return {name for name, hint in hints(cls).items() if get_origin(hint) is Required} - {"type"}


def test_blocks_of_anthropic() -> None:
    mapped = {messages_server_tools.CALL, *messages_server_tools.RESULTS}
    assert types_of(anthropic_types.ContentBlock) == mapped | ANTHROPIC_BLOCKS.keys()
    assert mapped.isdisjoint(ANTHROPIC_BLOCKS)
    assert literals(anthropic_types.ServerToolUseBlock, "name") == set(messages_server_tools.CALL_NAMES)


def test_tools_of_anthropic() -> None:
    declared = {declaration["type"] for declaration in DECLARATIONS["messages"].values()}
    versions = {
        kind for kind in types_of(anthropic_types.ToolUnionParam) if kind.startswith(tuple(DECLARATIONS["messages"]))
    }
    assert declared <= versions
    assert types_of(anthropic_types.ToolUnionParam) == versions | ANTHROPIC_TOOLS.keys()


def test_stop_reasons_and_deltas_of_anthropic() -> None:
    assert set(get_args(anthropic_types.StopReason)) == set(FINISHES)
    deltas = {"text_delta", "input_json_delta", "citations_delta", "thinking_delta", "signature_delta"}
    assert types_of(anthropic_types.RawContentBlockDelta) == deltas


def test_items_and_events_of_openai() -> None:
    assert types_of(openai_types.ResponseOutputItem) == responses_server_tools.ITEMS.keys() | OPENAI_ITEMS.keys()
    assert responses_server_tools.ITEMS.keys().isdisjoint(OPENAI_ITEMS)
    read = ResponsesDecoder(VENDORS["openai"], Origin("openai", "m"), {})._readers.keys()
    assert types_of(openai_types.ResponseStreamEvent) == read | OPENAI_EVENTS.keys()
    assert read.isdisjoint(OPENAI_EVENTS)


def test_tools_of_openai_exist() -> None:
    declared = {declaration["type"] for declaration in DECLARATIONS["responses"].values()}
    assert declared <= types_of(openai_types.ToolParam)
    assert set(responses_server_tools.INCLUDES.values()) <= set(get_args(openai_types.ResponseIncludable))


@pytest.mark.parametrize("name", sorted(GEMINI))
def test_fields_of_google(name: str) -> None:
    fields = getattr(google_types, name).model_fields
    assert {field.alias or python_name for python_name, field in fields.items()} == GEMINI[name].keys()


def test_tools_of_google() -> None:
    declared = {field for declaration in DECLARATIONS["gemini"].values() for field in declaration}
    assert declared == {field for field, why in GEMINI["Tool"].items() if why == MAPPED}
    types = {each.value for each in google_types.ToolType}
    assert types == gemini_server_tools.TOOL_TYPES.keys() | GEMINI_TOOL_TYPES.keys()
    assert gemini_server_tools.TOOL_TYPES.keys().isdisjoint(GEMINI_TOOL_TYPES)
    config = google_types.ToolConfig.model_fields
    assert "includeServerSideToolInvocations" in {field.alias for field in config.values()}


@pytest.mark.parametrize("name", ["ExecutableCode", "CodeExecutionResult", "ToolCall", "ToolResponse"])
def test_the_strict_provider_has_the_fields_of_google(name: str) -> None:
    fields = getattr(google_types, name).model_fields
    assert set(strict_proto.MESSAGES[name]) == {field.alias or python for python, field in fields.items()}
    for kind, values in (("ToolType", "ToolType"), ("Outcome", "Outcome"), ("Language", "Language")):
        known = {each.value for each in getattr(google_types, values)}
        assert set(strict_proto.ENUMS[kind]) == {value for value in known if "UNSPECIFIED" not in value}


def test_the_strict_provider_has_the_rules_of_the_packages() -> None:
    assert set(strict_server_blocks.DECLARATIONS) | {"custom"} == types_of(anthropic_types.ToolUnionParam)
    assert set(strict_server_blocks.CALL_NAMES) == literals(anthropic_types.ServerToolUseBlockParam, "name")
    assert set(strict_server_blocks.RESULTS) <= types_of(anthropic_types.ContentBlockParam)
    params = {kind: cls for cls in members(openai_types.ResponseInputItemParam) for kind in literals(cls)}
    for kind, fields in strict_items.HOSTED.items():
        assert set(fields) == required(params[kind]), kind
