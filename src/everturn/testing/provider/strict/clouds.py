"""Cloud validation: refuses the tools of a vendor's own API that its copy in a cloud does not have, and the other way round.

The fields that only Vertex AI or only the Gemini API has are those of google-genai, which refuses the same
(`tests/models/test_provider_tool_types.py` compares them). The message about several tools is that of Vertex AI
(github.com/symfony/ai/pull/387), the one about images that of Azure OpenAI (examples of github.com/vercel/ai). Which tools
of Anthropic Vertex AI has is from Google's page about web search with Claude; the message is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object
from everturn.testing.provider.routes import Cloud

Json = dict[str, Any]
VERTEX_TOOLS = ("retrieval", "enterpriseWebSearch", "parallelAiSearch", "exaAiSearch")
GEMINI_API_TOOLS = ("fileSearch", "mcpServers")
GEMINI_API_PARTS = ("toolCall", "toolResponse", "partMetadata")
GEMINI_API_CONFIG = ("includeServerSideToolInvocations",)
VERTEX_SEARCHES = ("googleSearch", "urlContext", *VERTEX_TOOLS)


def check_gemini_place(request: Json, cloud: Cloud) -> None:
    """Vertex AI and the Gemini API each refuse the fields that only the other one has."""
    refused = GEMINI_API_TOOLS if cloud == "vertex" else VERTEX_TOOLS
    for i, tool in enumerate(request.get("tools", ())):
        _refuse(tool, refused, f"tools[{i}]")
    if cloud == "vertex":
        _refuse(request.get("toolConfig", {}), GEMINI_API_CONFIG, "tool_config")
        for i, content in enumerate(request.get("contents", ())):
            for k, part in enumerate(content.get("parts", ())):
                _refuse(part, GEMINI_API_PARTS, f"contents[{i}].parts[{k}]")


def check_vertex_mix(tools: Sequence[Json]) -> None:
    """Older models on Vertex AI have several tools only if all of them search."""
    declared = [field for tool in tools for field in tool]
    if len(declared) > 1 and not all(field in VERTEX_SEARCHES for field in declared):
        raise Refused("Multiple tools are supported only when they are all search tools.")


def check_cloud_tools(body: Json, cloud: Cloud) -> None:
    """Azure OpenAI streams no images that a tool makes; of Anthropic's tools, Vertex AI has the web search."""
    tools = body.get("tools")
    kinds = [str(tool.get("type", "")) for tool in tools if is_object(tool)] if is_list(tools) else []
    if cloud == "azure" and "image_generation" in kinds:
        raise Refused("ImageGen as a tool is not supported in streaming mode.")
    if cloud == "vertex":
        for kind in kinds:
            if kind.startswith(("web_fetch_", "code_execution_")):
                raise Refused(f"tools: '{kind}' is not available on Vertex AI (our own words)")


def _refuse(value: Json, fields: Sequence[str], path: str) -> None:
    for field in fields:
        if field in value:
            raise Refused(f"Invalid JSON payload received. Unknown name \"{field}\" at '{path}': Cannot find field.")
