"""Reviewed: for each list of the inventory, what is mapped here, and why the rest is not.

What is mapped is asked of the wire formats where they have it as data. A release of an SDK package that adds a name fails
`tests/models/test_vendor_facts.py`: map it, or give the reason here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from everturn.models.formats import (
    chat_stream,
    converse_stream,
    gemini_server_tools,
    gemini_stream,
    messages_server_tools,
    messages_stream,
    responses_server_tools,
)
from everturn.models.formats.provider_tools import DECLARATIONS
from everturn.models.formats.responses_stream import ResponsesDecoder
from everturn.models.profile import Origin
from everturn.models.vendors import VENDORS

OURS_CALLED = "a call that we run, or its result, and not the provider's"
NOT_DECLARED = "sent only where a request declares its tool, and none of ours does"

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
        **dict.fromkeys(("codeExecution", "googleSearch", "retrieval", "urlContext"), MAPPED),
        **dict.fromkeys(
            ("enterpriseWebSearch", "exaAiSearch", "parallelAiSearch"),
            "another version of web_search on Vertex AI: provider_tool('web_search', google={'type': …})",
        ),
        **dict.fromkeys(("fileSearch", "googleMaps", "googleSearchRetrieval", "mcpServers"), GEMINI_OFF),
    },
    "Candidate": {
        **dict.fromkeys(gemini_server_tools.METADATA, MAPPED),
        "citationMetadata": "where a text repeats known works, and not what a tool found",
        **dict.fromkeys(("content", "finishMessage", "finishReason", "index"), "mapped"),
        **dict.fromkeys(("avgLogprobs", "logprobsResult", "safetyRatings", "tokenCount"), "says nothing about tools"),
        "continuationToken": "of long answers that are fetched later, which are not asked for",
    },
    "GroundingMetadata": {
        **dict.fromkeys(("webSearchQueries", "retrievalQueries", "groundingChunks", "groundingSupports"), MAPPED),
        "searchEntryPoint": "kept in the part's sealed data: a snippet of HTML that Google asks websites to show",
        "imageSearchQueries": GEMINI_OFF,
        **dict.fromkeys(("googleMapsWidgetContextToken", "sourceFlaggingUris"), GEMINI_OFF),
        "retrievalMetadata": GEMINI_OFF,
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

# Parameters -----------------------------------------------------------------------------------------------------------

PASSED: Final = "sent as it is, if it is given in `params`"
OURS: Final = "the wire format sets it, and refuses it in `params` where another place is meant for it"
KEPT_HERE: Final = "the log is the truth: the vendor is asked to keep nothing, and has no conversation to continue"
OF_THE_PACKAGE: Final = "an option of the package, and not of the API"

RESPONSES_PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(("model", "input", "instructions", "tools", "tool_choice", "store", "include"), MAPPED),
    **dict.fromkeys(("max_output_tokens", "text", "reasoning"), MAPPED),
    **dict.fromkeys(("conversation", "previous_response_id", "background"), f"{PASSED}; {KEPT_HERE}"),
    "context_management": f"{PASSED}; the conversation is compacted here",
    **dict.fromkeys(("access_programs", "image", "max_tool_calls", "metadata", "moderation", "prompt"), PASSED),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention"), MAPPED),
    **dict.fromkeys(("parallel_tool_calls", "prompt_cache_options"), PASSED),
    **dict.fromkeys(("safety_identifier", "service_tier", "stream_options"), PASSED),
    **dict.fromkeys(("temperature", "top_logprobs", "top_p", "truncation", "user"), PASSED),
}
CHAT_PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(("model", "messages", "tools", "tool_choice", "stream_options", "response_format"), MAPPED),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "reasoning_effort"), MAPPED),
    **dict.fromkeys(("function_call", "functions"), f"{PASSED}; older names of tools and tool_choice"),
    "n": f"{PASSED}; only the first choice is read",
    "web_search_options": f"{PASSED}; its citations are not read: provider_tool('web_search') is for `openai:`",
    **dict.fromkeys(("audio", "frequency_penalty", "logit_bias", "logprobs", "metadata", "modalities"), PASSED),
    **dict.fromkeys(("moderation", "parallel_tool_calls", "prediction", "presence_penalty"), PASSED),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention"), MAPPED),
    "prompt_cache_options": PASSED,
    **dict.fromkeys(("safety_identifier", "seed", "service_tier", "stop", "store", "temperature"), PASSED),
    **dict.fromkeys(("top_logprobs", "top_p", "user", "verbosity"), PASSED),
}
ANTHROPIC_PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(("model", "messages", "system", "tools", "tool_choice", "max_tokens"), MAPPED),
    **dict.fromkeys(("thinking", "output_config"), MAPPED),
    "cache_control": f"{PASSED}; markers are on messages, tools and the system prompt",
    "container": f"{PASSED}; containers are not used again between requests",
    **dict.fromkeys(("diagnostics", "inference_geo", "metadata", "service_tier", "speed"), PASSED),
    **dict.fromkeys(("stop_sequences", "user_profile_id", "workspace_id"), PASSED),
}
GOOGLE_PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(("systemInstruction", "tools", "toolConfig", "maxOutputTokens", "thinkingConfig"), MAPPED),
    **dict.fromkeys(("responseMimeType", "responseJsonSchema", "stopSequences"), MAPPED),
    "responseSchema": f"{PASSED}; output_schema is sent as responseJsonSchema",
    "cachedContent": f"{PASSED}; Gemini caches by itself, and explicit caches are not managed here",
    **dict.fromkeys(("automaticFunctionCalling", "httpOptions", "shouldReturnHttpResponse"), OF_THE_PACKAGE),
    "store": f"{PASSED}; {KEPT_HERE}",
    **dict.fromkeys(("automaticContinuation", "continuationToken"), f"{PASSED}; answers are continued here"),
    **dict.fromkeys(("audioTimestamp", "audioTranscriptionConfig", "candidateCount"), PASSED),
    **dict.fromkeys(("enableEnhancedCivicAnswers", "frequencyPenalty", "generationOutputConfig"), PASSED),
    **dict.fromkeys(("imageConfig", "labels", "logprobs", "mediaResolution", "modelArmorConfig"), PASSED),
    **dict.fromkeys(("modelSelectionConfig", "presencePenalty", "responseLogprobs", "responseModalities"), PASSED),
    **dict.fromkeys(("routingConfig", "safetySettings", "seed", "serviceTier", "speechConfig"), PASSED),
    **dict.fromkeys(("temperature", "topK", "topP"), PASSED),
}
BEDROCK_PARAMETERS: Mapping[str, str] = {
    **dict.fromkeys(("messages", "system", "inferenceConfig", "toolConfig", "outputConfig"), MAPPED),
    "additionalModelRequestFields": MAPPED,
    "modelId": "a part of the path",
    "promptVariables": f"{PASSED}; prompts of Prompt management are left out (decision 0234)",
    **dict.fromkeys(("additionalModelResponseFieldPaths", "guardrailConfig", "performanceConfig"), PASSED),
    **dict.fromkeys(("requestMetadata", "serviceTier"), PASSED),
}

# The rest --------------------------------------------------------------------------------------------------------------

DECLINED: Final = "none of ours: decision 0212 says which are offered"
OPENAI_TOOLS: Mapping[str, str] = {
    **dict.fromkeys(("function", *sorted(tool["type"] for tool in DECLARATIONS["responses"].values())), MAPPED),
    **dict.fromkeys(("apply_patch", "computer", "computer_use_preview", "custom"), OURS_CALLED),
    **dict.fromkeys(("local_shell", "shell"), OURS_CALLED),
    **dict.fromkeys(("namespace", "programmatic_tool_calling"), DECLINED),
    "tool_search": "find_tools does this, under our rules",
    **dict.fromkeys(
        ("web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"),
        "another version of web_search: provider_tool('web_search', openai={'type': …})",
    ),
}
ENDS_AS_OTHER: Final = "the answer ends with the finish reason `other`"
GEMINI_FINISHES: Mapping[str, str] = {
    **dict.fromkeys(gemini_stream.BROKEN_CALLS, "mapped as a call that is malformed, so that the model can repair it"),
    gemini_stream.UNSPECIFIED: "never sent in a last event",
    **dict.fromkeys(("LANGUAGE", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "MALFORMED_RESPONSE"), ENDS_AS_OTHER),
    gemini_stream.MISSING_SIGNATURE: "mapped as an error of a seal: the request is sent again without seals",
    "PUP_LIMITED_DISABLED": f"{ENDS_AS_OTHER}; the account is limited",
}
BEDROCK_BLOCKS: Mapping[str, str] = {
    **dict.fromkeys(("text", "image", "document", "toolUse", "toolResult", "cachePoint"), MAPPED),
    **dict.fromkeys(("reasoningContent", "citationsContent"), MAPPED),
    **dict.fromkeys(("video", "audio"), "files of this kind are told by name: no profile of ours accepts them"),
    **dict.fromkeys(("guardContent", "searchResult"), "parts of requests that we do not write"),
    **dict.fromkeys(("toolAddition", "toolRemoval"), "tools are declared whole with each request"),
}


ANTHROPIC_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "web_search": ("20250305", "20260209", "20260318"),
    "web_fetch": ("20250910", "20260209", "20260309", "20260318"),
    "code_execution": ("20250522", "20250825", "20260120", "20260521"),
}


class Review(Struct, frozen=True):
    """A list of the inventory: what is mapped, the rest with a reason, and whether other names may be mapped too."""

    mapped: frozenset[str]
    left_out: Mapping[str, str]
    may_map_more: bool = False  # also names that the package does not have, such as those of compatible servers


def _review(reasons: Mapping[str, str], mapped: Iterable[str] = (), *, may_map_more: bool = False) -> Review:
    known = frozenset(mapped) | {name for name, why in reasons.items() if why == MAPPED}
    return Review(known, {name: why for name, why in reasons.items() if why != MAPPED}, may_map_more)


def _events_of_responses() -> Iterable[str]:
    return ResponsesDecoder(VENDORS["openai"], Origin("openai", "m"), {})._readers  # pyright: ignore[reportPrivateUsage]


def _versions_of_anthropic() -> list[str]:
    """Versions of the tools that are declared: the options of `provider_tool` choose one."""
    return [f"{tool}_{version}" for tool, versions in ANTHROPIC_VERSIONS.items() for version in versions]


REVIEWS: Final[Mapping[str, Review]] = {
    "openai responses: parameters": _review(RESPONSES_PARAMETERS),
    "openai responses: items": _review(OPENAI_ITEMS, responses_server_tools.ITEMS),
    "openai responses: events": _review(OPENAI_EVENTS, _events_of_responses()),
    "openai responses: tools": _review(OPENAI_TOOLS),
    "openai chat: parameters": _review(CHAT_PARAMETERS),
    "openai chat: delta": _review(
        {
            **dict.fromkeys(("content", "refusal", "tool_calls"), MAPPED),
            "audio": "chat models here send no sound",
            "function_call": "the older form of tool_calls, for requests with `functions`",
            "role": "always the assistant's",
        }
    ),
    "openai chat: finish reasons": _review({}, chat_stream.FINISHES, may_map_more=True),
    "anthropic: parameters": _review(ANTHROPIC_PARAMETERS),
    "anthropic: blocks": _review(ANTHROPIC_BLOCKS, (messages_server_tools.CALL, *messages_server_tools.RESULTS)),
    "anthropic: deltas": _review(
        {}, ("text_delta", "input_json_delta", "citations_delta", "thinking_delta", "signature_delta")
    ),
    "anthropic: events": _review(
        {},
        (
            "message_start",
            "message_delta",
            "message_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
        ),
    ),
    "anthropic: tools": _review(ANTHROPIC_TOOLS, _versions_of_anthropic()),
    "anthropic: stop reasons": _review({}, messages_stream.FINISHES),
    "anthropic: counted tools": _review({}, ("web_search_requests", "web_fetch_requests")),
    "google: parameters": _review(GOOGLE_PARAMETERS),
    "google: finish reasons": _review(GEMINI_FINISHES, gemini_stream.FINISHES),
    "google: tool types": _review(GEMINI_TOOL_TYPES, gemini_server_tools.TOOL_TYPES),
    **{f"google: {name}": _review(reasons) for name, reasons in GEMINI.items()},
    "bedrock: parameters": _review(BEDROCK_PARAMETERS),
    "bedrock: events": _review(
        {"messageStart": "says nothing yet"},
        (
            *(name for name in converse_stream.EXCEPTIONS if name != "modelTimeoutException"),
            "contentBlockDelta",
            "contentBlockStart",
            "contentBlockStop",
            "messageStop",
            "metadata",
        ),
    ),
    "bedrock: blocks": _review(BEDROCK_BLOCKS),
    "bedrock: deltas": _review(
        {
            **dict.fromkeys(("text", "toolUse", "reasoningContent", "citation"), MAPPED),
            "toolResult": "of tools that Bedrock runs (systemTool), which are not declared (decision 0234)",
            "image": "of models that draw in a conversation, which no profile has",
        }
    ),
    "bedrock: tools": _review(
        {
            **dict.fromkeys(("toolSpec", "cachePoint"), MAPPED),
            "systemTool": "tools that Bedrock runs are left out (decision 0234)",
        }
    ),
    "bedrock: inference": _review({}, ("maxTokens", "temperature", "topP", "stopSequences")),
    "bedrock: stop reasons": _review(
        dict.fromkeys(("malformed_model_output", "malformed_tool_use"), ENDS_AS_OTHER), converse_stream.FINISHES
    ),
}
